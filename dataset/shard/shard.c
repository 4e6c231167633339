/* SPDX-License-Identifier: Apache-2.0 */
#include "dataset/shard/shard.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/core/mem.h"
#include "base/core/program.h"
#include "dataset/shard/commit.h"
#include "dataset/shard/ids.h"
#include "dataset/shard/prefix.h"

enum {
    AT_VERSION = 9,
    AT_DTYPE = 17,
    AT_NSEQ = 18,
    AT_NDOC = 26,
};

void shard_header(unsigned char ret[SHARD_HEADER], enum shard_dtype t, uint64_t nseq,
                  uint64_t ndocs)
{
    memcpy(ret, "MMIDIDX\0", AT_VERSION);
    store_u64(ret + AT_VERSION, 1);
    ret[AT_DTYPE] = (unsigned char)t;
    store_u64(ret + AT_NSEQ, nseq);
    store_u64(ret + AT_NDOC, ndocs + 1);
}

uint32_t shard_dtype_width(enum shard_dtype t)
{
    switch (t) {
    case SHARD_U8:
    case SHARD_I8:
        return 1;
    case SHARD_I16:
    case SHARD_U16:
        return 2;
    case SHARD_I32:
        return 4;
    case SHARD_I64:
        return 8;
    }
    return 0;
}

const char *shard_dtype_name(enum shard_dtype t)
{
    static const char *const name[] = {"?", "u8", "i8", "i16", "i32", "i64", "?", "?", "u16"};
    return (unsigned)t < sizeof(name) / sizeof(name[0]) ? name[t] : "?";
}

/* ---- opening ------------------------------------------------------------------------------ */

/* A shard that was opened late is mapped on shard_touch, by whichever thread is first. */
struct shard_late {
    pthread_mutex_t lock;
    atomic_bool touched;
    bool in_order; /* the .bin is expected to be read sequentially */
};

/* First and last entries of the arrays. */
struct ends {
    unsigned char head[SHARD_HEADER + 4]; /* and the first length */
    int32_t first_length, last_length;
    int64_t first_offset, last_offset;
    int64_t first_doc, last_doc;
};

/* Bytes [at, at + n) of the .idx, which are inside it. */
static int read_at(const struct shard *s, int fd, uint64_t at, void *ret, size_t n, struct err *e)
{
    ssize_t got;
    do
        got = pread(fd, ret, n, (off_t)at);
    while (got < 0 && errno == EINTR);
    if (got < 0)
        return err_sys(e, errno, "%s: cannot read", s->idx.path);
    if ((size_t)got < n)
        return err_set(e, ERR_IO, "%s: shrank below the %zu bytes that it had when it was opened",
                       s->idx.path, s->idx.size);
    return 0;
}

static int check_magic(const struct shard *s, const unsigned char *d, struct err *e)
{
    const char *name = s->idx.path;
    if (s->idx.size >= 8 && !memcmp(d, "TNTIDX\0\0", 8))
        return err_set(e, ERR_DATA,
                       "%s: is of the old TNTIDX kind (lazy, cached); '" WEFT_PREFIX
                       "prep import' turns it into a dataset",
                       name);
    if (s->idx.size < 9 || memcmp(d, "MMIDIDX\0\0", 9) != 0)
        return err_set(e, ERR_DATA, "%s: does not begin with MMIDIDX at byte 0: not a token index",
                       name);
    if (s->idx.size < SHARD_HEADER)
        return err_set(e, ERR_DATA, "%s: has %zu bytes, its header alone needs %d", name,
                       s->idx.size, SHARD_HEADER);
    if (load_u64(d + AT_VERSION) != 1)
        return err_set(e, ERR_DATA, "%s: version %" PRIu64 " at byte %d, only 1 is supported", name,
                       load_u64(d + AT_VERSION), AT_VERSION);
    return 0;
}

/* Sizes of all arrays, with checked arithmetic. */
static int check_sizes(struct shard *s, const unsigned char *d, struct err *e)
{
    const char *name = s->idx.path;
    s->dtype = (enum shard_dtype)d[AT_DTYPE];
    s->width = shard_dtype_width(s->dtype);
    if (!s->width)
        return err_set(e, ERR_DATA, "%s: dtype code %d at byte %d is not an integer type", name,
                       d[AT_DTYPE], AT_DTYPE);
    uint64_t nseq = load_u64(d + AT_NSEQ), entries = load_u64(d + AT_NDOC), seq, doc, size;
    bool fits = checked_mul(nseq, 12, &seq) && checked_mul(entries, 8, &doc) &&
                checked_add(seq, doc, &size) && checked_add(size, SHARD_HEADER, &size) &&
                entries > 0;
    s->has_modes = fits && nseq && s->idx.size - size == nseq;
    if (!fits || (s->idx.size != size && !s->has_modes))
        return err_set(e, ERR_DATA,
                       "%s: has %zu bytes, which is not what its header's %" PRIu64
                       " sequences and %" PRIu64 " document entries need",
                       name, s->idx.size, nseq, entries);
    if (nseq > INT32_MAX)
        return err_set(e, ERR_DATA, "%s: %" PRIu64 " sequences, at most 2147483647 are supported",
                       name, nseq);
    s->nseq = nseq;
    s->ndocs = entries - 1;
    return 0;
}

/* Where the arrays begin in the .idx. */
static uint64_t offsets_at(const struct shard *s)
{
    return SHARD_HEADER + 4 * s->nseq;
}

static uint64_t docs_at(const struct shard *s)
{
    return offsets_at(s) + 8 * s->nseq;
}

/* The end of one array and the beginning of the next take one read. */
static int read_ends(const struct shard *s, int fd, struct ends *ret, struct err *e)
{
    unsigned char b[16];
    int code = 0;
    if (s->nseq) {
        ret->first_length = load_i32(ret->head + SHARD_HEADER);
        code = read_at(s, fd, offsets_at(s) - 4, b, 12, e);
        ret->last_length = load_i32(b);
        ret->first_offset = load_i64(b + 4);
    }
    if (!code)
        code = read_at(s, fd, docs_at(s) - 8, b, 16, e);
    ret->last_offset = load_i64(b);
    ret->first_doc = load_i64(b + 8);
    if (!code)
        code = read_at(s, fd, docs_at(s) + 8 * s->ndocs, b, 8, e);
    ret->last_doc = load_i64(b);
    return code;
}

static int check_ends(struct shard *s, const struct ends *at, struct err *e)
{
    const char *name = s->idx.path;
    if (at->first_doc != 0)
        return err_set(e, ERR_DATA, "%s: the first document begins at sequence %" PRId64 ", not 0",
                       name, at->first_doc);
    if ((uint64_t)at->last_doc != s->nseq)
        return err_set(e, ERR_DATA,
                       "%s: the last document ends at sequence %" PRId64 ", not at %" PRIu64, name,
                       at->last_doc, s->nseq);
    if (!s->nseq)
        return 0;
    if (at->first_length < 0 || at->last_length < 0)
        return err_set(e, ERR_DATA, "%s: the first or the last sequence has a negative length",
                       name);
    if (at->first_offset != 0)
        return err_set(e, ERR_DATA, "%s: the first sequence begins at byte %" PRId64 ", not 0",
                       name, at->first_offset);
    if (at->last_offset < 0) {
        err_set(e, ERR_DATA, "%s: the last sequence begins at byte %" PRId64, name,
                at->last_offset);
        return err_hint(
            e, "offsets beyond 2^31 were written wrongly by Megatron-LM before 0.15 when "
               "it merged shards under numpy 2; '" WEFT_PREFIX "prep verify --repair' repairs it");
    }
    s->bytes = (uint64_t)at->last_offset + (uint64_t)at->last_length * s->width;
    return 0;
}

/* Explains what exists instead of an .idx that could not be opened. */
static int explain(const char *prefix, int code, struct err *e)
{
    struct err why = {0};
    char *found = NULL;
    int other = code == ERR_IO ? prefix_find(prefix, &found, &why) : 0;
    free(found);
    if (other && e)
        *e = why;
    return other ? other : code;
}

static int open_idx(struct shard *s, const char *prefix, struct err *e)
{
    struct ends at = {{0}};
    int fd = -1;
    char *path = mem_printf("%s.idx", prefix);
    int code = map_later(&s->idx, path, &fd, e);
    free(path);
    if (code)
        return explain(prefix, code, e);
    size_t n = sizeof(at.head);
    code = read_at(s, fd, 0, at.head, s->idx.size < n ? s->idx.size : n, e);
    if (!code)
        code = check_magic(s, at.head, e);
    if (!code)
        code = check_sizes(s, at.head, e);
    if (!code)
        code = read_ends(s, fd, &at, e);
    if (!code)
        code = check_ends(s, &at, e);
    close(fd);
    return code;
}

/*
 * Megatron-LM of mid-2023, and Megatron-DeepSpeed still, write each document's end-of-document
 * token into the .bin without counting it in the .idx. Then the .bin has one more token for each
 * document with text.
 */
static bool eods_uncounted(const struct shard *s, uint64_t excess)
{
    uint64_t filled = 0;
    if (shard_touch(s, NULL))
        return false;
    for (uint64_t d = 0; d < s->ndocs; d++)
        filled += load_i64(s->doc + 8 * (d + 1)) > load_i64(s->doc + 8 * d);
    return filled && excess == filled * s->width;
}

static int check_bin_size(const struct shard *s, struct err *e)
{
    if (s->bin.size == s->bytes)
        return 0;
    err_set(e, ERR_DATA, "%s: has %zu bytes, but %s counts %" PRIu64, s->bin.path, s->bin.size,
            s->idx.path, s->bytes);
    if (s->bin.size > s->bytes && eods_uncounted(s, s->bin.size - s->bytes))
        return err_hint(e, "the difference is one token for each document: Megatron-DeepSpeed (and "
                           "Megatron-LM 23.06) did not count the end-of-document tokens of "
                           "--append-eod; '" WEFT_PREFIX "prep verify --repair' repairs it");
    return err_hint(e, "the two files do not belong together, or one was truncated; '" WEFT_PREFIX
                       "prep verify' reports more");
}

static int open_bin(struct shard *s, const char *prefix, struct err *e)
{
    char *path = mem_printf("%s.bin", prefix);
    int code = map_later(&s->bin, path, NULL, e);
    free(path);
    if (!code)
        code = check_bin_size(s, e);
    s->has_bin = !code;
    return code;
}

/* A .bin that is not needed may be missing, but if it exists it must match the .idx. */
static int look_at_bin(struct shard *s, const char *prefix, struct err *e)
{
    struct stat st;
    char *path = mem_printf("%s.bin", prefix);
    int code = stat(path, &st) ? 0 : open_bin(s, prefix, e);
    free(path);
    if (!code)
        map_close(&s->bin);
    s->has_bin = false;
    return code;
}

/* Is there another .idx now than the one opened, or one where there was none? */
static bool replaced(const struct shard *s, const char *prefix)
{
    struct stat st;
    char *path = mem_printf("%s.idx", prefix);
    bool there = !stat(path, &st), was = s->idx.path != NULL;
    free(path);
    return there && was && (st.st_dev != s->idx.device || st.st_ino != s->idx.number);
}

int shard_open_late(struct shard *s, const char *prefix, bool idx_only, struct err *e)
{
    for (;;) { /* retry if the shard is replaced meanwhile: the files may be of both */
        *s = (struct shard){.idx.slot = -1, .bin.slot = -1};
        int code = commit_finish(prefix, e);
        if (code)
            return code;
        s->prefix = mem_strdup(prefix);
        s->late = mem_new(1, sizeof(*s->late));
        pthread_mutex_init(&s->late->lock, NULL);
        code = open_idx(s, prefix, e);
        if (!code)
            code = idx_only ? look_at_bin(s, prefix, e) : open_bin(s, prefix, e);
        bool again = replaced(s, prefix);
        if (code || again)
            shard_close(s);
        if (!again)
            return code;
    }
}

int shard_open(struct shard *s, const char *prefix, struct err *e)
{
    int code = shard_open_late(s, prefix, false, e);
    if (!code) {
        s->late->in_order = true;
        code = shard_touch(s, e);
    }
    if (code)
        shard_close(s);
    return code;
}

void shard_close(struct shard *s)
{
    if (s->idx.path)
        map_close(&s->idx);
    if (s->bin.path)
        map_close(&s->bin);
    if (s->late)
        pthread_mutex_destroy(&s->late->lock);
    free(s->late);
    free(s->prefix);
    *s = (struct shard){.idx.slot = -1, .bin.slot = -1};
}

/* ---- maps ---------------------------------------------------------------------------------- */

bool shard_touched(const struct shard *s)
{
    return atomic_load_explicit(&s->late->touched, memory_order_acquire);
}

static int make_maps(struct shard *s, struct err *e)
{
    int code = map_now(&s->idx, e);
    if (!code && s->has_bin)
        code = map_now(&s->bin, e);
    if (code)
        return code;
    if (s->has_bin && !s->late->in_order)
        map_random(&s->bin);
    s->length = s->idx.data + SHARD_HEADER;
    s->offset = s->idx.data + offsets_at(s);
    s->doc = s->idx.data + docs_at(s);
    atomic_store_explicit(&s->late->touched, true, memory_order_release);
    return 0;
}

int shard_touch(const struct shard *s, struct err *e)
{
    if (shard_touched(s))
        return 0;
    pthread_mutex_lock(&s->late->lock);
    /* the caller's struct is not really const, and no thread reads these fields before */
    int code = shard_touched(s) ? 0 : make_maps((struct shard *)(uintptr_t)s, e);
    pthread_mutex_unlock(&s->late->lock);
    return code;
}

void shard_leave(struct shard *s)
{
    atomic_store_explicit(&s->late->touched, false, memory_order_relaxed);
    s->length = s->offset = s->doc = NULL;
    map_leave(&s->idx);
    if (s->has_bin)
        map_leave(&s->bin);
}

int shard_begins(const struct shard *s, uint64_t i, int64_t *ret, struct err *e)
{
    BUG_ON(i > s->nseq, "sequence %" PRIu64 " of %" PRIu64, i, s->nseq);
    struct map is;
    unsigned char b[8];
    int fd;
    if (i == 0 || i == s->nseq) { /* checked when it was opened */
        *ret = i ? (int64_t)s->bytes : 0;
        return 0;
    }
    if (shard_touched(s)) {
        *ret = load_i64(s->offset + 8 * i);
        return map_check(&s->idx, e);
    }
    int code = map_later(&is, s->idx.path, &fd, e);
    if (code)
        return code;
    if (is.device != s->idx.device || is.number != s->idx.number || is.size != s->idx.size)
        code = err_set(e, ERR_IO, "%s: was replaced while it was open", s->idx.path);
    else
        code = read_at(s, fd, offsets_at(s) + 8 * i, b, 8, e);
    *ret = code ? 0 : load_i64(b);
    close(fd);
    map_close(&is);
    return code;
}

/* ---- touching ----------------------------------------------------------------------------- */

int shard_sequence(const struct shard *s, uint64_t i, struct shard_view *ret, struct err *e)
{
    BUG_ON(!s->has_bin, "%s was opened without its .bin", s->prefix);
    BUG_ON(i >= s->nseq, "sequence %" PRIu64 " of %" PRIu64, i, s->nseq);
    int code = shard_touch(s, e);
    if (code)
        return code;
    int32_t n = shard_length(s, i);
    int64_t at = load_i64(s->offset + 8 * i);
    uint64_t size = s->bin.size, bytes = (uint64_t)(n < 0 ? 0 : n) * s->width;
    if (n < 0 || at < 0 || (uint64_t)at > size || bytes > size - (uint64_t)at ||
        (uint64_t)at % s->width)
        return err_set(e, ERR_DATA,
                       "%s: sequence %" PRIu64 " has %" PRId32 " tokens at byte %" PRId64
                       ", outside of the %zu bytes of %s",
                       s->idx.path, i, n, at, s->bin.size, s->bin.path);
    *ret = (struct shard_view){s->bin.data + at, (uint32_t)n};
    return map_check(&s->idx, e);
}

int shard_document(const struct shard *s, uint64_t d, uint64_t *ret_first, uint64_t *ret_end,
                   struct err *e)
{
    BUG_ON(d >= s->ndocs, "document %" PRIu64 " of %" PRIu64, d, s->ndocs);
    int code = shard_touch(s, e);
    if (code)
        return code;
    uint64_t first = load_u64(s->doc + 8 * d), end = load_u64(s->doc + 8 * (d + 1));
    if (first > end || end > s->nseq)
        return err_set(e, ERR_DATA,
                       "%s: document %" PRIu64 " claims sequences %" PRId64 " to %" PRId64
                       " of %" PRIu64,
                       s->idx.path, d, (int64_t)first, (int64_t)end, s->nseq);
    *ret_first = first;
    *ret_end = end;
    return map_check(&s->idx, e);
}

static int64_t id_at(const struct shard *s, const unsigned char *p, uint64_t i)
{
    p += i * s->width;
    switch (s->dtype) {
    case SHARD_U8:
        return *p;
    case SHARD_I8:
        return (int8_t)*p;
    case SHARD_I16:
        return (int16_t)load_u16(p);
    case SHARD_U16:
        return load_u16(p);
    case SHARD_I32:
        return load_i32(p);
    case SHARD_I64:
        break;
    }
    return load_i64(p);
}

static int bad_id(const struct shard *s, uint64_t seq, uint64_t from, const unsigned char *p,
                  uint64_t n, int64_t limit, struct err *e)
{
    for (uint64_t i = 0; i < n; i++) {
        int64_t id = id_at(s, p, i);
        if (id < 0 || id >= limit)
            return err_set(e, ERR_DATA,
                           "%s: token id %" PRId64 " at byte %" PRIu64 " (sequence %" PRIu64
                           ", token %" PRIu64 ") is not in 0..%" PRId64,
                           s->bin.path, id, (uint64_t)(p - s->bin.data) + i * s->width, seq,
                           from + i, limit - 1);
    }
    return err_set(e, ERR_IO, "%s: changed while it was read", s->bin.path);
}

int shard_read(const struct shard *s, uint64_t i, uint64_t from, uint64_t n, int64_t limit,
               int32_t *ret, struct err *e)
{
    BUG_ON(limit > SHARD_ANY_ID, "ids below %" PRId64 " do not fit", limit);
    struct shard_view v;
    int code = shard_sequence(s, i, &v, e);
    if (code)
        return code;
    if (from > v.n || n > v.n - from)
        return err_set(e, ERR_DATA,
                       "%s: sequence %" PRIu64 " has %" PRIu32 " tokens, not %" PRIu64
                       " after token %" PRIu64,
                       s->idx.path, i, v.n, n, from);
    const unsigned char *p = v.data + from * s->width;
    bool good = ids_widen(s->dtype, p, n, limit, ret);
    code = map_check(&s->bin, e);
    if (!code && !good)
        code = bad_id(s, i, from, p, n, limit, e);
    return code;
}

void shard_prefetch(const struct shard *s, uint64_t i, uint64_t from, uint64_t n,
                    enum shard_prefetch what)
{
    enum { LINE = 64 };
    if (what == SHARD_PREFETCH_ENTRY) {
        __builtin_prefetch(s->length + 4 * i);
        __builtin_prefetch(s->offset + 8 * i);
        return;
    }
    uint64_t size = s->bin.size, at = load_u64(s->offset + 8 * i);
    if (at > size || from > (size - at) / s->width || n > (size - at) / s->width - from)
        return;
    at += from * s->width;
    n *= s->width;
    if (what == SHARD_PREFETCH_DISK)
        map_soon(&s->bin, at, n);
    else
        for (uint64_t k = at % LINE; k < n + at % LINE; k += LINE)
            __builtin_prefetch(s->bin.data + at + k - at % LINE);
}

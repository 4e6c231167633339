/* SPDX-License-Identifier: Apache-2.0 */
#include "dataset/shard_write.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/hash.h"
#include "base/mem.h"
#include "dataset/commit.h"

/*
 * One word of the lengths' file: the length of a sequence, the top bit set on the last of its
 * document. Written sequences are never empty, so a bare top bit is free to stand for an empty
 * document.
 */
enum { WAIT = 1 << 14 /* words */ };
static const uint32_t last_bit = UINT32_C(1) << 31;

enum shard_dtype shard_dtype_for(int64_t vocab_size)
{
    return vocab_size > 0 && vocab_size < 65500 ? SHARD_U16 : SHARD_I32;
}

int shard_pack(enum shard_dtype t, int64_t vocab_size, const int32_t *id, size_t n, void *ret,
               struct err *e)
{
    int64_t limit = vocab_size > 0 ? vocab_size : t == SHARD_U16 ? 1 << 16 : SHARD_ANY_ID;
    uint32_t top = 0;
    if (t == SHARD_U16) {
        unsigned char *p = ret;
        for (size_t i = 0; i < n; i++) {
            top = (uint32_t)id[i] > top ? (uint32_t)id[i] : top;
            store_u16(p + 2 * i, (uint16_t)id[i]);
        }
    } else {
        for (size_t i = 0; i < n; i++)
            top = (uint32_t)id[i] > top ? (uint32_t)id[i] : top;
        if (n)
            memcpy(ret, id, n * sizeof(*id));
    }
    if (top < limit)
        return 0;
    size_t i = 0;
    while (id[i] >= 0 && id[i] < limit)
        i++;
    return err_set(e, ERR_DATA, "token %zu has id %" PRId32 ", which is not in 0..%" PRId64, i,
                   id[i], limit - 1);
}

/* ---- the lengths' file -------------------------------------------------------------------- */

static uint64_t idx_size(const struct shard_writer *w)
{
    return 34 + 12 * w->nseq + 8 * (w->ndocs + 1);
}

static int spill_open(struct shard_writer *w, const char *prefix, struct err *e)
{
    char *dir = path_dir(prefix);
    w->spill = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (w->spill < 0) { /* not every file system has unnamed files */
        char *name = path_join(dir, ".weft-lengths.XXXXXX");
        w->spill = mkostemp(name, O_CLOEXEC);
        int saved = errno;
        if (w->spill >= 0)
            unlink(name);
        free(name);
        errno = saved;
    }
    int saved = errno;
    free(dir);
    return w->spill < 0 ? err_sys(e, saved, "%s.idx: cannot create a file beside it", prefix) : 0;
}

static int spill_flush(struct shard_writer *w, struct err *e)
{
    const char *p = (const char *)w->wait;
    size_t n = w->nwait * sizeof(*w->wait);
    while (n) {
        ssize_t k = write(w->spill, p, n);
        if (k < 0 && errno == EINTR)
            continue;
        if (k < 0 && (errno == ENOSPC || errno == EDQUOT)) {
            err_set(e, ERR_IO, "%s: the disk is full (%" PRIu64 " bytes were needed so far)",
                    w->idx.path, idx_size(w));
            return err_hint(e, "free some space there or name another place, and run it again");
        }
        if (k < 0)
            return err_sys(e, errno, "%s: cannot write beside it", w->idx.path);
        p += k;
        n -= (size_t)k;
    }
    w->nspilled += w->nwait;
    w->nwait = 0;
    return 0;
}

static int spill_put(struct shard_writer *w, uint32_t word, struct err *e)
{
    /* the newest word stays, for the end of its document may still mark it */
    if (w->nwait == WAIT) {
        uint32_t newest = w->wait[--w->nwait];
        int code = spill_flush(w, e);
        w->wait[w->nwait++] = newest;
        if (code)
            return code;
    }
    w->wait[w->nwait++] = word;
    return 0;
}

/* ---- documents ---------------------------------------------------------------------------- */

static int open_file(const struct shard_writer *w, const char *suffix, struct outfile *f,
                     struct err *e)
{
    char *path = mem_printf("%s%s", w->prefix, suffix);
    int code = outfile_open_in(f, path, w->folder, e);
    free(path);
    return code;
}

/* Another writer that starts now may take the folder for a dead one's until there is a file in it.
 */
static int open_files(struct shard_writer *w, struct err *e)
{
    int code;
    bool again;
    do {
        free(w->folder);
        w->folder = NULL;
        code = outdir_create(w->prefix, &w->folder, e);
        if (code)
            return code;
        code = open_file(w, ".bin", &w->bin, e);
        again = code && !file_exists(w->folder);
    } while (again);
    return code ? code : open_file(w, ".idx", &w->idx, e);
}

int shard_writer_open(struct shard_writer *w, const char *prefix, int64_t vocab_size, struct err *e)
{
    *w = (struct shard_writer){.vocab_size = vocab_size,
                               .dtype = shard_dtype_for(vocab_size),
                               .bin.fd = -1,
                               .idx.fd = -1,
                               .manifest.fd = -1,
                               .spill = -1};
    w->width = shard_dtype_width(w->dtype);
    w->prefix = mem_strdup(prefix);
    w->wait = mem_new(WAIT, sizeof(*w->wait));
    w->bin_hash = xxh_create();
    w->idx_hash = xxh_create();
    int code = open_files(w, e);
    if (!code)
        code = spill_open(w, prefix, e);
    if (code)
        shard_writer_abort(w);
    return code;
}

static int too_long(const struct shard_writer *w, uint64_t n, struct err *e)
{
    return err_set(e, ERR_DATA, "%s.idx: a sequence of %" PRIu64 " tokens, at most 2147483647 fit",
                   w->prefix, n);
}

int shard_writer_part(struct shard_writer *w, const void *packed, size_t n, struct err *e)
{
    if (n > INT32_MAX - w->part)
        return too_long(w, w->part + n, e);
    w->part += n;
    w->ntokens += n;
    xxh_add(w->bin_hash, packed, n * w->width);
    return outfile_write(&w->bin, packed, n * w->width, e);
}

int shard_writer_put(struct shard_writer *w, const void *packed, size_t n, struct err *e)
{
    uint64_t all = w->part + n;
    if (!all)
        return 0;
    if (n > INT32_MAX || all > INT32_MAX)
        return too_long(w, all, e);
    if (w->nseq == INT32_MAX)
        return err_set(e, ERR_DATA,
                       "%s.idx: more than 2147483647 sequences do not fit; "
                       "write several shards",
                       w->prefix);
    int code = spill_put(w, (uint32_t)all, e);
    if (code)
        return code;
    w->part = 0;
    w->nseq++;
    w->open_seq++;
    w->ntokens += n;
    xxh_add(w->bin_hash, packed, n * w->width);
    return outfile_write(&w->bin, packed, n * w->width, e);
}

int shard_writer_add(struct shard_writer *w, const int32_t *id, size_t n, struct err *e)
{
    void *packed = mem_new(n ? n : 1, w->width);
    int code = shard_pack(w->dtype, w->vocab_size, id, n, packed, e);
    if (code)
        err_wrap(e, "%s, document %" PRIu64, w->prefix, w->ndocs);
    else
        code = shard_writer_put(w, packed, n, e);
    free(packed);
    return code;
}

int shard_writer_end_document(struct shard_writer *w, struct err *e)
{
    int code = 0;
    if (w->open_seq)
        w->wait[w->nwait - 1] |= last_bit;
    else
        code = spill_put(w, last_bit, e);
    w->open_seq = 0;
    w->ndocs += !code;
    return code;
}

/* ---- the .idx ----------------------------------------------------------------------------- */

static int idx_write(struct shard_writer *w, const void *p, size_t n, struct err *e)
{
    xxh_add(w->idx_hash, p, n);
    return outfile_write(&w->idx, p, n, e);
}

/* What a pass over the lengths carries along. */
struct pass {
    enum { LENGTHS, OFFSETS, DOCUMENTS } what;
    uint64_t at;  /* bytes of .bin before the next sequence */
    uint64_t seq; /* sequences before it */
};

/* Turns n words into elements of one array; returns their bytes. */
static size_t convert(struct pass *p, const uint32_t *word, size_t n, uint32_t width,
                      unsigned char *ret)
{
    unsigned char *out = ret;
    for (size_t i = 0; i < n; i++) {
        uint32_t length = word[i] & ~last_bit;
        if (p->what == LENGTHS && length) {
            store_u32(out, length);
            out += 4;
        } else if (p->what == OFFSETS && length) {
            store_u64(out, p->at);
            out += 8;
        }
        p->at += (uint64_t)length * width;
        p->seq += length != 0;
        if (p->what == DOCUMENTS && word[i] & last_bit) {
            store_u64(out, p->seq);
            out += 8;
        }
    }
    return (size_t)(out - ret);
}

static int spill_read(const struct shard_writer *w, uint64_t from, size_t n, uint32_t *ret,
                      struct err *e)
{
    char *p = (char *)ret;
    size_t left = n * sizeof(*ret);
    off_t at = (off_t)(from * sizeof(*ret));
    while (left) {
        ssize_t k = pread(w->spill, p, left, at);
        if (k < 0 && errno == EINTR)
            continue;
        if (k <= 0)
            return err_sys(e, k ? errno : EIO, "%s: cannot read the lengths back", w->idx.path);
        p += k;
        at += k;
        left -= (size_t)k;
    }
    return 0;
}

static int idx_pass(struct shard_writer *w, struct pass p, unsigned char *out, struct err *e)
{
    int code = 0;
    for (uint64_t from = 0; !code && from < w->nspilled; from += WAIT) {
        size_t n = w->nspilled - from < WAIT ? (size_t)(w->nspilled - from) : WAIT;
        code = spill_read(w, from, n, w->wait, e);
        if (!code)
            code = idx_write(w, out, convert(&p, w->wait, n, w->width, out), e);
    }
    return code;
}

static int idx_build(struct shard_writer *w, struct err *e)
{
    unsigned char head[34] = "MMIDIDX";
    store_u64(head + 9, 1);
    head[17] = (unsigned char)w->dtype;
    store_u64(head + 18, w->nseq);
    store_u64(head + 26, w->ndocs + 1);
    const unsigned char zero[8] = {0};
    unsigned char *out = mem_new(WAIT, 8);
    int code = spill_flush(w, e);
    if (!code)
        code = idx_write(w, head, sizeof(head), e);
    if (!code)
        code = idx_pass(w, (struct pass){.what = LENGTHS}, out, e);
    if (!code)
        code = idx_pass(w, (struct pass){.what = OFFSETS}, out, e);
    if (!code)
        code = idx_write(w, zero, sizeof(zero), e); /* the first document begins at 0 */
    if (!code)
        code = idx_pass(w, (struct pass){.what = DOCUMENTS}, out, e);
    free(out);
    return code;
}

/* ---- the end ------------------------------------------------------------------------------ */

static int manifest_prepare(struct shard_writer *w, struct manifest *m, struct err *e)
{
    m->documents = w->ndocs;
    m->sequences = w->nseq;
    m->tokens = w->ntokens;
    m->dtype = w->dtype;
    m->bin_bytes = w->bin.size;
    m->idx_bytes = w->idx.size;
    xxh_text(w->bin_hash, m->bin_xxh);
    xxh_text(w->idx_hash, m->idx_xxh);
    struct buf b = {0};
    manifest_text(m, &b);
    int code = open_file(w, ".manifest.json", &w->manifest, e);
    if (!code)
        code = outfile_write(&w->manifest, b.data, b.len, e);
    if (!code)
        code = outfile_sync(&w->manifest, e);
    buf_finish(&b);
    return code;
}

int shard_writer_prepare(struct shard_writer *w, struct manifest *m, struct err *e)
{
    BUG_ON(w->open_seq || w->part,
           "%s: %" PRIu64 " sequences and %" PRIu64 " tokens of an open document", w->prefix,
           w->open_seq, w->part);
    int code = idx_build(w, e);
    if (!code)
        code = outfile_sync(&w->bin, e);
    if (!code)
        code = outfile_sync(&w->idx, e);
    if (!code && m)
        code = manifest_prepare(w, m, e);
    w->prepared = !code;
    return code;
}

int shard_writer_commit(struct shard_writer *w, struct err *e)
{
    bool done;
    BUG_ON(!w->prepared, "%s: commit without prepare", w->prefix);
    int code = commit_publish(w->folder, w->prefix, &done, e);
    if (done) {
        outfile_leave(&w->bin);
        outfile_leave(&w->manifest);
        outfile_leave(&w->idx);
        free(w->folder);
        w->folder = NULL;
    }
    shard_writer_abort(w);
    return code;
}

int shard_writer_finish(struct shard_writer *w, struct manifest *m, struct err *e)
{
    int code = shard_writer_prepare(w, m, e);
    if (!code)
        return shard_writer_commit(w, e);
    shard_writer_abort(w);
    return code;
}

void shard_writer_abort(struct shard_writer *w)
{
    outfile_abort(&w->bin);
    outfile_abort(&w->idx);
    outfile_abort(&w->manifest);
    if (w->folder)
        rmdir(w->folder);
    free(w->folder);
    xxh_destroy(w->bin_hash);
    xxh_destroy(w->idx_hash);
    if (w->wait && w->spill >= 0)
        close(w->spill);
    free(w->wait);
    free(w->prefix);
    *w = (struct shard_writer){.bin.fd = -1, .idx.fd = -1, .manifest.fd = -1, .spill = -1};
}

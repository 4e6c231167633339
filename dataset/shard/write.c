/* SPDX-License-Identifier: Apache-2.0 */
#include "dataset/shard/write.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/core/bytes.h"
#include "base/core/hash.h"
#include "base/core/mem.h"
#include "dataset/shard/commit.h"

enum {
    WAIT = 1 << 14, /* words */
    AGAIN = 1 << 20 /* bytes read at once */
};

/* ---- the lengths' file -------------------------------------------------------------------- */

static int put_word(struct shard_writer *w, uint32_t word, struct err *e)
{
    return spill_add(&w->lengths, &word, sizeof(word), e);
}

/* The held sequence is not the last of its document. */
static int put_held(struct shard_writer *w, struct err *e)
{
    int code = w->held ? put_word(w, w->held, e) : 0;
    w->held = 0;
    return code;
}

/* ---- documents ---------------------------------------------------------------------------- */

/* Overwrites a file that an earlier process may have left. */
static int write_open_file(const struct shard_writer *w, const char *suffix, struct outfile *f,
                           struct err *e)
{
    char *path = mem_printf("%s%s", w->prefix, suffix);
    int code = w->lengths_path ? outfile_resume(f, path, w->folder, 0, e)
                               : outfile_open_in(f, path, w->folder, e);
    free(path);
    return code;
}

static int write_open_files(struct shard_writer *w, struct err *e)
{
    char *bin = mem_printf("%s.bin", w->prefix);
    int code = outdir_create(w->prefix, bin, &w->bin, &w->folder, e);
    free(bin);
    return code ? code : write_open_file(w, ".idx", &w->idx, e);
}

static void init(struct shard_writer *w, const char *prefix, enum shard_dtype dtype,
                 int64_t vocab_size)
{
    *w = (struct shard_writer){.vocab_size = vocab_size,
                               .dtype = dtype,
                               .width = shard_dtype_width(dtype),
                               .prefix = mem_strdup(prefix),
                               .bin_hash = xxh_create(),
                               .idx_hash = xxh_create(),
                               .bin.fd = -1,
                               .idx.fd = -1,
                               .manifest.fd = -1,
                               .lengths.fd = -1};
}

int shard_writer_open(struct shard_writer *w, const char *prefix, int64_t vocab_size, struct err *e)
{
    init(w, prefix, shard_dtype_for(vocab_size), vocab_size);
    int code = write_open_files(w, e);
    if (!code)
        code = spill_open(&w->lengths, w->idx.path, e);
    if (code)
        shard_writer_abort(w);
    return code;
}

/* ---- resuming ------------------------------------------------------------------------------- */

/* The digest of the tokens written so far. */
static int hash_again(struct shard_writer *w, const struct shard_mark *m, struct err *e)
{
    char got[XXH_TEXT];
    int fd = open(w->bin.tmp, O_RDONLY | O_CLOEXEC), code = 0;
    if (fd < 0)
        return err_sys(e, errno, "%s: cannot open", w->bin.tmp);
    char *p = mem_new(AGAIN, 1);
    for (uint64_t left = m->bin_bytes; left && !code;) {
        ssize_t k = read(fd, p, left < AGAIN ? (size_t)left : AGAIN);
        if (k < 0 && errno == EINTR)
            continue;
        if (k <= 0) {
            code = err_sys(e, k ? errno : EIO, "%s: cannot read", w->bin.tmp);
            break;
        }
        xxh_add(w->bin_hash, p, (size_t)k);
        left -= (uint64_t)k;
    }
    free(p);
    close(fd);
    if (code)
        return code;
    xxh_text(w->bin_hash, got);
    if (!m->bin_bytes || !strcmp(got, m->bin_xxh))
        return 0;
    return err_set(e, ERR_INTEGRITY,
                   "%s: its first %" PRIu64 " bytes have XXH3-128 %s, and had %s when they were "
                   "written",
                   w->bin.tmp, m->bin_bytes, got, m->bin_xxh);
}

static int resume(struct shard_writer *w, const struct shard_place *at, const struct shard_mark *m,
                  struct err *e)
{
    char *bin = mem_printf("%s.bin", w->prefix);
    int code = 0;
    if (mkdir(at->folder, 0777) && errno != EEXIST)
        code = err_sys(e, errno, "%s: cannot create the folder", at->folder);
    if (!code)
        code = outfile_resume(&w->bin, bin, at->folder, m->bin_bytes, e);
    if (!code)
        code = hash_again(w, m, e);
    if (!code)
        code = spill_open_at(&w->lengths, at->lengths, m->length_bytes, bin, e);
    free(bin);
    return code;
}

int shard_writer_resume(struct shard_writer *w, const char *prefix, enum shard_dtype dtype,
                        int64_t vocab_size, const struct shard_place *at,
                        const struct shard_mark *mark, struct err *e)
{
    init(w, prefix, dtype, vocab_size);
    w->folder = mem_strdup(at->folder);
    w->lengths_path = mem_strdup(at->lengths);
    w->nseq = mark->sequences;
    w->ndocs = mark->documents;
    w->ntokens = mark->tokens;
    int code = resume(w, at, mark, e);
    if (code)
        shard_writer_leave(w);
    return code;
}

int shard_writer_mark(struct shard_writer *w, struct shard_mark *ret, struct err *e)
{
    BUG_ON(w->open_seq || w->part, "%s: a mark inside a document", w->prefix);
    int code = outfile_sync(&w->bin, e);
    if (!code)
        code = spill_sync(&w->lengths, e);
    *ret = (struct shard_mark){.bin_bytes = w->bin.size,
                               .length_bytes = w->lengths.size,
                               .sequences = w->nseq,
                               .documents = w->ndocs,
                               .tokens = w->ntokens};
    xxh_text(w->bin_hash, ret->bin_xxh);
    return code;
}

int shard_writer_flush(struct shard_writer *w, struct err *e)
{
    int code = outfile_flush(&w->bin, e);
    return code ? code : spill_flush(&w->lengths, e);
}

/* ---- sequences ------------------------------------------------------------------------------ */

static int too_long(const struct shard_writer *w, uint64_t n, struct err *e)
{
    return err_set(e, ERR_DATA, "%s.idx: a sequence of %" PRIu64 " tokens, at most 2147483647 fit",
                   w->prefix, n);
}

int shard_too_many(const struct shard_writer *w, struct err *e)
{
    return err_set(e, ERR_DATA,
                   "%s.idx: more than 2147483647 sequences do not fit; "
                   "write several shards",
                   w->prefix);
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

/* Ends a sequence after n more tokens. */
static int end_sequence(struct shard_writer *w, size_t n, struct err *e)
{
    uint64_t all = w->part + n;
    if (n > INT32_MAX || all > INT32_MAX)
        return too_long(w, all, e);
    if (w->nseq == INT32_MAX)
        return shard_too_many(w, e);
    int code = put_held(w, e);
    if (code)
        return code;
    w->held = (uint32_t)all;
    w->part = 0;
    w->nseq++;
    w->open_seq++;
    w->ntokens += n;
    return 0;
}

int shard_writer_put(struct shard_writer *w, const void *packed, size_t n, struct err *e)
{
    if (!(w->part + n))
        return 0;
    int code = end_sequence(w, n, e);
    if (code)
        return code;
    xxh_add(w->bin_hash, packed, n * w->width);
    return outfile_write(&w->bin, packed, n * w->width, e);
}

int shard_writer_sequence(struct shard_writer *w, size_t n, struct err *e)
{
    return w->part + n ? end_sequence(w, n, e) : 0;
}

void shard_writer_place(struct shard_writer *w, size_t n, struct buf *runs)
{
    while (n) {
        size_t bytes = n * w->width;
        struct shard_run r = {.w = w, .to = outfile_place(&w->bin, &bytes)};
        r.n = bytes / w->width;
        BUG_ON(!r.n, "%s: %zu bytes are left for a token", w->bin.path, bytes);
        buf_add(runs, &r, sizeof(r));
        n -= r.n;
    }
}

bool shard_runs_store(const struct shard_run *run, size_t n, const int32_t *id,
                      struct shard_watch *watch)
{
    bool good = true;
    for (size_t i = 0; i < n; i++) {
        const struct shard_writer *w = run[i].w;
        good &= shard_pack_watched(w->dtype, w->vocab_size, id, run[i].n, watch, run[i].to);
        id += run[i].n;
    }
    return good;
}

int shard_runs_take(const struct shard_run *run, size_t n, struct err *e)
{
    int code = 0;
    for (size_t i = 0; i < n && !code; i++) {
        size_t bytes = run[i].n * run[i].w->width;
        xxh_add(run[i].w->bin_hash, run[i].to, bytes);
        code = outfile_took(&run[i].w->bin, bytes, e);
    }
    return code;
}

int shard_writer_check(const struct shard_writer *w, const int32_t *id, size_t n, struct err *e)
{
    if (shard_pack_good(w->dtype, w->vocab_size, id, n) == n)
        return 0;
    shard_pack_refused(w->dtype, w->vocab_size, id, n, e);
    return err_wrap(e, "%s, document %" PRIu64, w->prefix, w->ndocs);
}

int shard_writer_end_document(struct shard_writer *w, struct err *e)
{
    int code = put_word(w, w->held | SHARD_LAST, e);
    w->held = 0;
    w->open_seq = 0;
    w->ndocs += !code;
    return code;
}

int shard_writer_async(struct shard_writer *w, struct err *e)
{
    return outfile_async(&w->bin, e);
}

int shard_writer_documents(struct shard_writer *w, const uint32_t *length, size_t n, struct err *e)
{
    uint32_t word[1024];
    int code = 0;
    BUG_ON(w->open_seq || w->part, "%s: a document is open", w->prefix);
    for (size_t i = 0; i < n && !code;) {
        size_t k = 0;
        for (; k < 1024 && i < n; i++, k++) {
            if (length[i] > INT32_MAX)
                return too_long(w, length[i], e);
            word[k] = length[i] | SHARD_LAST;
            w->nseq += length[i] != 0;
            w->ntokens += length[i];
        }
        code = w->nseq > INT32_MAX ? shard_too_many(w, e)
                                   : spill_add(&w->lengths, word, k * sizeof(*word), e);
    }
    w->ndocs += n;
    return code;
}

/* ---- the .idx ----------------------------------------------------------------------------- */

static int idx_write(struct shard_writer *w, const void *p, size_t n, struct err *e)
{
    xxh_add(w->idx_hash, p, n);
    return outfile_write(&w->idx, p, n, e);
}

/* State of a pass over the lengths. */
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
        uint32_t length = word[i] & ~SHARD_LAST;
        if (p->what == LENGTHS && length) {
            store_u32(out, length);
            out += 4;
        } else if (p->what == OFFSETS && length) {
            store_u64(out, p->at);
            out += 8;
        }
        p->at += (uint64_t)length * width;
        p->seq += length != 0;
        if (p->what == DOCUMENTS && word[i] & SHARD_LAST) {
            store_u64(out, p->seq);
            out += 8;
        }
    }
    return (size_t)(out - ret);
}

static int idx_pass(struct shard_writer *w, struct pass p, struct err *e)
{
    uint32_t *word = mem_new(WAIT, sizeof(*word));
    unsigned char *out = mem_new(WAIT, 8);
    uint64_t words = w->lengths.size / sizeof(*word);
    int code = 0;
    for (uint64_t from = 0; !code && from < words; from += WAIT) {
        size_t n = words - from < WAIT ? (size_t)(words - from) : WAIT;
        code = spill_read(&w->lengths, from * sizeof(*word), word, n * sizeof(*word), e);
        if (!code)
            code = idx_write(w, out, convert(&p, word, n, w->width, out), e);
    }
    free(word);
    free(out);
    return code;
}

static uint64_t idx_size(const struct shard_writer *w)
{
    return SHARD_HEADER + 12 * w->nseq + 8 * (w->ndocs + 1);
}

static int idx_build(struct shard_writer *w, struct err *e)
{
    unsigned char head[SHARD_HEADER];
    shard_header(head, w->dtype, w->nseq, w->ndocs);
    const unsigned char zero[8] = {0};
    int code = spill_flush(&w->lengths, e);
    if (!code && w->lengths_path)
        code = write_open_file(w, ".idx", &w->idx, e);
    w->idx.expected = idx_size(w);
    if (!code)
        code = idx_write(w, head, sizeof(head), e);
    if (!code)
        code = idx_pass(w, (struct pass){.what = LENGTHS}, e);
    if (!code)
        code = idx_pass(w, (struct pass){.what = OFFSETS}, e);
    if (!code)
        code = idx_write(w, zero, sizeof(zero), e); /* the first document begins at 0 */
    if (!code)
        code = idx_pass(w, (struct pass){.what = DOCUMENTS}, e);
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
    int code = write_open_file(w, ".manifest.json", &w->manifest, e);
    return code ? code : manifest_write(m, &w->manifest, e);
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
    struct outfile *const file[] = {&w->bin, &w->idx, &w->manifest};
    for (size_t i = 0; i < 3 && !code; i++) /* there may be very many writers */
        outfile_rest(file[i]);
    return code;
}

int shard_writer_commit(struct shard_writer *w, struct err *e)
{
    BUG_ON(!w->prepared, "%s: commit without prepare", w->prefix);
    struct outfile *const file[COMMIT_FILES] = {&w->bin, &w->manifest, &w->idx};
    int code = commit_files(&w->folder, w->prefix, file, e);
    if (code && w->lengths_path)
        shard_writer_leave(w);
    else
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

static void close_writer(struct shard_writer *w)
{
    free(w->folder);
    free(w->lengths_path);
    xxh_destroy(w->bin_hash);
    xxh_destroy(w->idx_hash);
    if (w->prefix)
        spill_close(&w->lengths);
    free(w->prefix);
    *w = (struct shard_writer){.bin.fd = -1, .idx.fd = -1, .manifest.fd = -1, .lengths.fd = -1};
}

void shard_writer_leave(struct shard_writer *w)
{
    outfile_leave(&w->bin);
    outfile_leave(&w->idx);
    outfile_leave(&w->manifest);
    close_writer(w);
}

void shard_writer_abort(struct shard_writer *w)
{
    outfile_abort(&w->bin);
    outfile_abort(&w->idx);
    outfile_abort(&w->manifest);
    if (w->lengths_path)
        unlink(w->lengths_path);
    if (w->folder)
        rmdir(w->folder);
    close_writer(w);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/buf.h"
#include "base/core/bytes.h"
#include "base/core/mem.h"
#include "base/io/path.h"
#include "dataset/tools/foreign.h"
#include "dataset/shard/shard.h"

static bool foreign_open_ends_in(const char *s, const char *end)
{
    size_t n = strlen(s), k = strlen(end);
    return n > k && !strcmp(s + n - k, end);
}

static int boundary_missing(const struct foreign *f, struct err *e)
{
    err_set(e, ERR_USAGE, "%s: does not say where documents end", f->path);
    return err_hint(e, "--boundary ID cuts it at an id, --boundary none makes it one document");
}

/* The boundary of the options, else `usual`. */
static int set_boundary(struct foreign *f, const struct foreign_options *ask, int64_t usual,
                        enum foreign_place place, struct err *e)
{
    f->boundary = ask->boundary == FOREIGN_UNSET ? usual : ask->boundary;
    if (f->boundary == FOREIGN_UNSET && ask->eod >= 0)
        f->boundary = ask->eod;
    f->place = ask->place == FOREIGN_BY_FORMAT ? place : ask->place;
    return f->boundary == FOREIGN_UNSET ? boundary_missing(f, e) : 0;
}

/* All bytes from `from` on are tokens. */
static int set_tokens(struct foreign *f, enum npy_dtype dtype, uint64_t from, struct err *e)
{
    f->dtype = dtype;
    f->width = npy_width(dtype);
    f->token = f->data.data + from;
    f->ntokens = (f->data.size - from) / f->width;
    if ((f->data.size - from) % f->width == 0)
        return 0;
    return err_set(e, ERR_DATA,
                   "%s: has %zu bytes, not a whole number of %" PRIu32
                   "-byte tokens after byte %" PRIu64,
                   f->path, f->data.size, f->width, from);
}

/* ---- llm.c --------------------------------------------------------------------------------- */

enum { LLMC_HEADER = 1024, LLMC_GPT2 = 20240520, LLMC_LLAMA3 = 20240801, LLMC_EVAL = 20240522 };

static bool is_llmc(const struct map *m)
{
    uint32_t magic = m->size >= 4 ? load_u32(m->data) : 0;
    return magic == LLMC_GPT2 || magic == LLMC_LLAMA3 || magic == LLMC_EVAL;
}

static int open_llmc(struct foreign *f, const struct foreign_options *ask, struct err *e)
{
    const struct map *m = &f->data;
    if (!is_llmc(m) || m->size < LLMC_HEADER)
        return err_set(e, ERR_DATA, "%s: does not begin with llm.c's header of %d bytes", f->path,
                       LLMC_HEADER);
    uint32_t magic = load_u32(m->data), version = load_u32(m->data + 4);
    int32_t count = load_i32(m->data + 8);
    if (magic == LLMC_EVAL)
        return err_set(
            e, ERR_DATA,
            "%s: contains multiple-choice questions to evaluate llm.c's models, not text", f->path);
    bool llama = magic == LLMC_LLAMA3;
    if (version != (llama ? 7 : 1))
        return err_set(e, ERR_DATA,
                       "%s: version %" PRIu32 " at byte 4, only %d is supported with %s", f->path,
                       version, llama ? 7 : 1, llama ? "20240801" : "20240520");
    int code = set_tokens(f, llama ? NPY_U4 : NPY_U2, LLMC_HEADER, e);
    if (!code && (count < 0 || (uint64_t)count != f->ntokens))
        code = err_set(e, ERR_DATA,
                       "%s: counts %" PRId32 " tokens at byte 8, but has %" PRIu64 " of them",
                       f->path, count, f->ntokens);
    return code ? code : set_boundary(f, ask, llama ? 128000 : 50256, FOREIGN_START, e);
}

/* ---- datatrove ----------------------------------------------------------------------------- */

enum { METADATA_MAX = 1 << 16 };

/* Bytes per token and number of tokens in the metadata; 0 if missing. */
struct metadata {
    uint64_t width, tokens;
};

static int read_metadata(const char *path, struct metadata *ret, struct err *e)
{
    struct buf b = {0};
    char *name = mem_printf("%s.metadata", path);
    int code = file_exists(name) ? file_read(name, METADATA_MAX, &b, e) : 0;
    *ret = (struct metadata){0};
    if (!code && b.data) {
        char *line = strchr(b.data, '\n'), *bar = NULL;
        if (line) {
            *line = '\0';
            bar = strrchr(b.data, '|');
            ret->tokens = strtoull(line + 1, NULL, 10);
        }
        ret->width = bar ? strtoull(bar + 1, NULL, 10) : 0;
    }
    free(name);
    buf_finish(&b);
    return code;
}

/* The last of the ends; 0 if there is none. */
static int open_ends(struct foreign *f, uint64_t *ret_last, struct err *e)
{
    char *name = mem_printf("%s.index", f->path);
    int code = 0;
    *ret_last = 0;
    if (file_exists(name)) {
        code = map_open(&f->index, name, e);
        if (!code && f->index.size % 8)
            code = err_set(e, ERR_DATA, "%s: has %zu bytes, not a whole number of 8-byte ends",
                           name, f->index.size);
        if (!code) {
            f->end = f->index.data;
            f->nend = f->index.size / 8;
            *ret_last = f->nend ? load_u64(f->end + 8 * (f->nend - 1)) : 0;
        }
    }
    free(name);
    return code;
}

/* A shard cannot represent a mask that hides tokens. */
static int check_loss(const struct foreign *f, const struct foreign_options *ask, struct err *e)
{
    struct map m = {.slot = -1};
    char *name = mem_printf("%s.loss", f->path);
    int code = 0;
    if (!ask->ignore_loss && file_exists(name)) {
        code = map_open(&m, name, e);
        if (!code && m.size != f->ntokens)
            code = err_set(e, ERR_DATA, "%s: has %zu bytes for %" PRIu64 " tokens", name, m.size,
                           f->ntokens);
        for (uint64_t i = 0; !code && i < m.size; i++)
            if (m.data[i] != 1) {
                code = err_set(e, ERR_USAGE,
                               "%s: masks token %" PRIu64 ", but a dataset of text has no masks",
                               name, i);
                err_hint(e, "--ignore-loss imports all tokens as text to learn");
            }
        map_close(&m);
    }
    free(name);
    return code;
}

static int token_width(const struct foreign *f, const struct foreign_options *ask,
                       const struct metadata *m, uint64_t last, enum npy_dtype *ret, struct err *e)
{
    uint64_t width = m->width ? m->width : last ? f->data.size / last : 0;
    if (ask->dtype >= 0) {
        *ret = (enum npy_dtype)ask->dtype;
        return 0;
    }
    if (!width && !f->data.size)
        width = 2;
    if (width == 2 || width == 4) {
        *ret = width == 2 ? NPY_U2 : NPY_U4;
        return 0;
    }
    if (m->width || last)
        return err_set(e, ERR_DATA, "%s: its metadata says tokens of %" PRIu64 " bytes, not 2 or 4",
                       f->path, width);
    err_set(e, ERR_USAGE, "%s: the width of its tokens is unknown", f->path);
    return err_hint(e, "--dtype u16 or u32");
}

static int open_datatrove(struct foreign *f, const struct foreign_options *ask, struct err *e)
{
    struct metadata m;
    uint64_t last = 0;
    enum npy_dtype dtype = NPY_U2;
    int code = read_metadata(f->path, &m, e);
    if (!code && ask->boundary == FOREIGN_UNSET)
        code = open_ends(f, &last, e);
    if (!code)
        code = token_width(f, ask, &m, last, &dtype, e);
    if (!code)
        code = set_tokens(f, dtype, 0, e);
    if (!code && m.tokens && m.tokens != f->ntokens)
        code = err_set(e, ERR_DATA,
                       "%s: has %" PRIu64 " tokens of %" PRIu32 " bytes, its metadata say %" PRIu64,
                       f->path, f->ntokens, f->width, m.tokens);
    if (!code && f->end && last != f->ntokens)
        code = err_set(e, ERR_DATA,
                       "%s: its last document ends at token %" PRIu64 ", but %s has %" PRIu64,
                       f->index.path, last, f->path, f->ntokens);
    if (!code)
        code = check_loss(f, ask, e);
    if (!code && !f->end)
        code = set_boundary(f, ask, FOREIGN_UNSET, FOREIGN_END, e);
    return code;
}

/* ---- arrays and bare tokens ----------------------------------------------------------------- */

static int open_npy(struct foreign *f, const struct foreign_options *ask, struct err *e)
{
    int code = npy_open(&f->npy, f->path, e);
    if (code)
        return code;
    f->dtype = f->npy.dtype;
    f->width = npy_width(f->dtype);
    f->token = f->npy.data;
    f->ntokens = f->npy.count;
    if (ask->dtype >= 0 && (enum npy_dtype)ask->dtype != f->dtype)
        return err_set(e, ERR_USAGE, "%s: is an array of another type than --dtype", f->path);
    return set_boundary(f, ask, FOREIGN_UNSET, FOREIGN_END, e);
}

static int open_raw(struct foreign *f, const struct foreign_options *ask, struct err *e)
{
    if (ask->dtype < 0) {
        err_set(e, ERR_USAGE, "%s: the width of raw tokens is unknown", f->path);
        return err_hint(e, "--dtype u16, for instance");
    }
    int code = set_tokens(f, (enum npy_dtype)ask->dtype, 0, e);
    return code ? code : set_boundary(f, ask, FOREIGN_UNSET, FOREIGN_END, e);
}

/* ---- TNTIDX ---------------------------------------------------------------------------------- */

enum { TNT_MEGATRON = 56, TNT_FAIRSEQ = 48 /* bytes of the header; fairseq's has no documents */ };

static int tnt_type(struct foreign *f, struct err *e)
{
    static const int type[] = {-1, NPY_U1, NPY_I1, NPY_I2, NPY_I4, NPY_I8, -1, -1, NPY_U2};
    uint64_t c = load_u64(f->index.data + 16), size = load_u64(f->index.data + 24);
    if (c >= sizeof(type) / sizeof(type[0]) || type[c] < 0)
        return err_set(e, ERR_DATA, "%s: dtype code %" PRIu64 " at byte 16 is not an integer type",
                       f->index.path, c);
    f->dtype = (enum npy_dtype)type[c];
    f->width = npy_width(f->dtype);
    if (size != f->width)
        return err_set(e, ERR_DATA,
                       "%s: elements of %" PRIu64 " bytes at byte 24, their type has %" PRIu32,
                       f->index.path, size, f->width);
    return 0;
}

/* Items must be one-dimensional and contiguous; then their sizes say everything. */
static int tnt_items(struct foreign *f, const unsigned char *dim, const unsigned char *data,
                     struct err *e)
{
    uint64_t at = 0;
    for (uint64_t i = 0; i <= f->nitem; i++) {
        if (load_u64(dim + 8 * i) != i)
            return err_set(e, ERR_DATA, "%s: item %" PRIu64 " has not one dimension", f->index.path,
                           i ? i - 1 : 0);
        if (load_u64(data + 8 * i) != at)
            return err_set(e, ERR_DATA,
                           "%s: item %" PRIu64 " begins at element %" PRId64
                           ", but the ones before it end at %" PRIu64,
                           f->index.path, i, load_i64(data + 8 * i), at);
        if (i == f->nitem)
            break;
        uint64_t n = load_u64(f->size + 8 * i);
        if (n > f->ntokens - at)
            return err_set(e, ERR_DATA,
                           "%s: item %" PRIu64 " has %" PRId64 " tokens, but %s has only %" PRIu64
                           " left",
                           f->index.path, i, (int64_t)n, f->path, f->ntokens - at);
        at += n;
    }
    if (at != f->ntokens)
        return err_set(e, ERR_DATA, "%s: has %" PRIu64 " tokens, but %s counts %" PRIu64, f->path,
                       f->ntokens, f->index.path, at);
    return 0;
}

static int tnt_head(const struct map *m, struct err *e)
{
    if (m->size < TNT_FAIRSEQ || memcmp(m->data, "TNTIDX\0\0", 8) != 0)
        return err_set(e, ERR_DATA, "%s: does not begin with TNTIDX and its header", m->path);
    if (load_u64(m->data + 8) != 1)
        return err_set(e, ERR_DATA, "%s: version %" PRIu64 " at byte 8, only 1 is supported",
                       m->path, load_u64(m->data + 8));
    return 0;
}

static int tnt_index(struct foreign *f, struct err *e)
{
    const struct map *m = &f->index;
    uint64_t n = load_u64(m->data + 32), s = load_u64(m->data + 40), docs, words, bytes;
    bool fits = n < UINT64_MAX / 32 && s == n;
    docs = m->size >= TNT_MEGATRON ? load_u64(m->data + 48) : 0;
    fits = fits && checked_mul(n, 3, &words) && checked_add(words, 2, &words) &&
           checked_mul(words, 8, &bytes);
    bool fairseq = fits && m->size == bytes + TNT_FAIRSEQ;
    uint64_t header = fairseq ? TNT_FAIRSEQ : TNT_MEGATRON, doc_bytes = 0;
    if (fits && !fairseq)
        fits = checked_mul(docs, 8, &doc_bytes) && checked_add(bytes, doc_bytes, &bytes) &&
               m->size >= header && m->size - header == bytes;
    if (!fits)
        return err_set(e, ERR_DATA,
                       "%s: has %zu bytes, which is not what its header's %" PRIu64
                       " items, %" PRIu64 " sizes and %" PRIu64 " document entries need",
                       m->path, m->size, n, s, docs);
    const unsigned char *dim = m->data + header, *data = dim + 8 * (n + 1);
    f->nitem = n;
    f->size = data + 8 * (n + 1);
    f->doc = f->size + 8 * n;
    f->ndoc = fairseq ? 0 : docs;
    f->next = 1;
    if (f->ndoc && load_u64(f->doc))
        return err_set(e, ERR_DATA, "%s: the first document begins at item %" PRId64 ", not 0",
                       m->path, load_i64(f->doc));
    return tnt_items(f, dim, data, e);
}

static int open_tntidx(struct foreign *f, const char *prefix, struct err *e)
{
    char *idx = mem_printf("%s.idx", prefix), *bin = mem_printf("%s.bin", prefix);
    free(f->path);
    f->path = bin;
    int code = map_open(&f->index, idx, e);
    if (!code)
        code = map_open(&f->data, bin, e);
    if (!code)
        code = tnt_head(&f->index, e);
    if (!code)
        code = tnt_type(f, e);
    if (!code)
        code = set_tokens(f, f->dtype, 0, e);
    if (!code)
        code = tnt_index(f, e);
    if (f->index.path && map_check(&f->index, NULL))
        code = map_check(&f->index, e);
    free(idx);
    return code;
}

/* ---- which -------------------------------------------------------------------------------------
 */

/* The prefix of PREFIX.bin or PREFIX.idx in new memory, else NULL. */
static char *pair_prefix(const char *path)
{
    size_t n = strlen(path);
    if (foreign_open_ends_in(path, ".idx") || foreign_open_ends_in(path, ".bin"))
        n -= 4;
    char *prefix = mem_strndup(path, n), *idx = mem_printf("%s.idx", prefix);
    bool pair = file_exists(idx);
    free(idx);
    if (pair)
        return prefix;
    free(prefix);
    return NULL;
}

static int is_shard(const char *prefix, bool *ret, struct err *e)
{
    struct map m;
    char *idx = mem_printf("%s.idx", prefix);
    int code = map_open(&m, idx, e);
    free(idx);
    if (code)
        return code;
    *ret = m.size >= 7 && !memcmp(m.data, "MMIDIDX", 7);
    map_close(&m);
    return 0;
}

static enum foreign_format recognise(const struct foreign *f)
{
    const struct map *m = &f->data;
    if (is_llmc(m))
        return FOREIGN_LLMC;
    if (m->size >= 6 && !memcmp(m->data, "\x93NUMPY", 6))
        return FOREIGN_NPY;
    return foreign_open_ends_in(f->path, ".ds") ? FOREIGN_DATATROVE : FOREIGN_AUTO;
}

static int foreign_open_open_file(struct foreign *f, const struct foreign_options *ask,
                                  struct err *e)
{
    int code = map_open(&f->data, f->path, e);
    if (code)
        return code;
    f->format = ask->format == FOREIGN_AUTO ? recognise(f) : ask->format;
    switch (f->format) {
    case FOREIGN_LLMC:
        return open_llmc(f, ask, e);
    case FOREIGN_DATATROVE:
        return open_datatrove(f, ask, e);
    case FOREIGN_NPY:
        return open_npy(f, ask, e);
    case FOREIGN_RAW:
        return open_raw(f, ask, e);
    case FOREIGN_TNTIDX:
    case FOREIGN_AUTO:
        break;
    }
    err_set(e, ERR_DATA, "%s: is not a recognised token file", f->path);
    return err_hint(e, "--input-format raw --dtype u16 reads raw tokens");
}

int foreign_open(struct foreign *f, const char *path, const struct foreign_options *ask,
                 struct err *e)
{
    *f = (struct foreign){.data.slot = -1, .index.slot = -1, .npy.map.slot = -1};
    f->path = mem_strdup(path);
    char *prefix =
        ask->format == FOREIGN_AUTO || ask->format == FOREIGN_TNTIDX ? pair_prefix(path) : NULL;
    bool shard = false;
    int code = prefix ? is_shard(prefix, &shard, e) : 0;
    if (!code && shard)
        code = err_set(e, ERR_USAGE, "%s: is already a dataset: it has an .idx", path);
    else if (!code && prefix) {
        f->format = FOREIGN_TNTIDX;
        code = open_tntidx(f, prefix, e);
    } else if (!code && ask->format == FOREIGN_TNTIDX) {
        code = err_set(e, ERR_IO, "%s: has no .idx", path);
    } else if (!code) {
        code = foreign_open_open_file(f, ask, e);
    }
    free(prefix);
    if (code)
        foreign_close(f);
    return code;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "dataset/tools/merge.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/bytes.h"
#include "base/core/mem.h"
#include "base/io/output.h"
#include "base/io/path.h"
#include "dataset/shard/commit.h"
#include "dataset/shard/prefix.h"
#include "dataset/packed/packed.h"
#include "dataset/shard/raw_writer.h"

enum { PIECE = 1 << 20 /* bytes */ };

/* ---- which shards ---------------------------------------------------------------------------- */

struct names {
    char **name;
    size_t n;
};

static void names_add(struct names *l, char *name)
{
    l->name = mem_grow(l->name, l->n + 1, sizeof(*l->name));
    l->name[l->n++] = name;
}

static bool merge_ends_in(const char *s, const char *end)
{
    size_t n = strlen(s), k = strlen(end);
    return n > k && !strcmp(s + n - k, end);
}

static int merge_by_bytes(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The sorted prefixes of all files in the folder with that suffix. */
static int list(const char *folder, const char *end, struct names *ret, struct err *e)
{
    DIR *d = opendir(folder);
    if (!d)
        return err_sys(e, errno, "%s: cannot open the folder", folder);
    int code = 0;
    for (struct dirent *en; !code && (en = readdir(d));) {
        if (en->d_name[0] == '.' || !merge_ends_in(en->d_name, end))
            continue;
        char *base = mem_strndup(en->d_name, strlen(en->d_name) - strlen(end));
        names_add(ret, path_join(folder, base));
        free(base);
    }
    closedir(d);
    if (ret->n)
        qsort(ret->name, ret->n, sizeof(*ret->name), merge_by_bytes);
    return code;
}

static int finish_commits(const char *folder, struct err *e)
{
    struct names l = {0};
    int code = list(folder, ".commit", &l, e);
    for (size_t i = 0; i < l.n && !code; i++)
        code = commit_finish(l.name[i], e);
    names_free(l.name, l.n);
    return code;
}

static int add_folder(const char *folder, struct names *all, struct err *e)
{
    struct names idx = {0}, bin = {0};
    int code = finish_commits(folder, e);
    if (!code)
        code = list(folder, ".idx", &idx, e);
    if (!code)
        code = list(folder, ".bin", &bin, e);
    for (size_t i = 0, k = 0; !code && (i < idx.n || k < bin.n); i++, k++) {
        int order = i == idx.n ? 1 : k == bin.n ? -1 : strcmp(idx.name[i], bin.name[k]);
        if (order)
            code = err_set(e, ERR_DATA, "%s.%s: has no .%s", order < 0 ? idx.name[i] : bin.name[k],
                           order < 0 ? "idx" : "bin", order < 0 ? "bin" : "idx");
        else
            names_add(all, mem_strdup(idx.name[i]));
    }
    if (!code && !idx.n)
        code = err_set(e, ERR_IO, "%s: this folder has no .idx", folder);
    names_free(idx.name, idx.n);
    names_free(bin.name, bin.n);
    return code;
}

static int add_prefix(const char *given, struct names *all, struct err *e)
{
    char *prefix;
    int code = prefix_find(given, &prefix, e);
    if (!code)
        names_add(all, prefix);
    if (!code || !strpbrk(given, "*?["))
        return code;
    char **found = NULL, *pattern = mem_printf("%.*s.idx", (int)prefix_length(given), given);
    size_t count = 0;
    code = file_glob(pattern, &found, &count, e);
    for (size_t i = 0; i < count; i++)
        names_add(all, mem_strndup(found[i], strlen(found[i]) - 4));
    names_free(found, count);
    free(pattern);
    return code;
}

/* A prefix beside a folder of its name (as of index caches) is not a folder. */
static bool is_folder(const char *given)
{
    char *idx = mem_printf("%s.idx", given);
    bool prefix = file_exists(idx);
    free(idx);
    return !prefix && file_is_dir(given);
}

int merge_find(const char *const *given, size_t n, char ***ret, size_t *ret_n, struct err *e)
{
    struct names all = {0};
    int code = 0;
    for (size_t i = 0; i < n && !code; i++)
        code = is_folder(given[i]) ? add_folder(given[i], &all, e) : add_prefix(given[i], &all, e);
    if (code) {
        names_free(all.name, all.n);
        return code;
    }
    *ret = all.name;
    *ret_n = all.n;
    return 0;
}

int merge_list(const char *folder, const char *end, char ***ret, size_t *ret_n, struct err *e)
{
    struct names all = {0};
    int code = list(folder, end, &all, e);
    if (code) {
        names_free(all.name, all.n);
        return code;
    }
    *ret = all.name;
    *ret_n = all.n;
    return 0;
}

/* ---- their manifests ------------------------------------------------------------------------- */

struct part {
    uint64_t nseq, ndocs, bin_bytes;
};

struct merge {
    const struct merge_request *q;
    struct part *part;
    uint64_t nseq, ndocs, bin_bytes;
    enum shard_dtype dtype;
    bool modes;
    struct manifest manifest; /* what applies to all */
    size_t known;             /* manifests read */
    struct manifest_input *input;
    struct arena arena; /* of its strings */
    bool eod, no_eod;   /* appended in some; not in others */
    struct raw_writer out;
    unsigned char *piece;
    uint64_t done;
};

static void keep_input(struct merge *m, const struct manifest_input *from)
{
    struct manifest *a = &m->manifest;
    m->input = mem_grow(m->input, a->ninputs + 1, sizeof(*m->input));
    m->input[a->ninputs] = *from;
    m->input[a->ninputs++].path = arena_strdup(&m->arena, from->path ? from->path : "");
    a->inputs = m->input;
}

static const char *merge_keep(struct merge *m, const char *s)
{
    return s ? arena_strdup(&m->arena, s) : NULL;
}

static bool has_option(const struct manifest *m, const struct manifest_option *o)
{
    for (size_t i = 0; i < m->noptions; i++)
        if (!strcmp(m->options[i].name, o->name) && m->options[i].value && o->value &&
            !strcmp(m->options[i].value, o->value))
            return true;
    return false;
}

/* Keeps the options of the first that all have. */
static void join_options(struct merge *m, const struct manifest *b)
{
    struct manifest *a = &m->manifest;
    struct manifest_option *keep_these =
        arena_take(&m->arena, m->known ? a->noptions : b->noptions, sizeof(*keep_these));
    size_t n = 0;
    for (size_t i = 0; !m->known && i < b->noptions; i++)
        keep_these[n++] = (struct manifest_option){merge_keep(m, b->options[i].name),
                                                   merge_keep(m, b->options[i].value)};
    for (size_t i = 0; m->known && i < a->noptions; i++)
        if (has_option(b, &a->options[i]))
            keep_these[n++] = a->options[i];
    a->options = keep_these;
    a->noptions = n;
}

static int join_manifest(struct merge *m, const struct manifest *b, const char *prefix,
                         struct err *e)
{
    struct manifest *a = &m->manifest;
    const struct manifest_tokenizer theirs = manifest_tokenizer(b);
    int code = m->known ? manifest_compare(a, m->q->prefix[0], prefix, &theirs, e) : 0;
    code = manifest_judge(m->q->tokenizer_differs, code, e);
    if (!code && m->known && a->eod != b->eod)
        code = err_set(e, ERR_USAGE,
                       "%s: its end of document is id %" PRId64
                       ", that of the shards before it is %" PRId64,
                       prefix, b->eod, a->eod);
    if (code)
        return code;
    join_options(m, b);
    if (!m->known++) {
        a->tokenizer_type = merge_keep(m, b->tokenizer_type);
        a->tokenizer_path = merge_keep(m, b->tokenizer_path);
        a->eod_piece = merge_keep(m, b->eod_piece);
        memcpy(a->digest, b->digest, sizeof(a->digest));
        a->meaning = merge_keep(m, b->meaning);
        a->vocab_size = b->vocab_size;
        a->eod = b->eod;
    }
    if (b->eod >= 0) {
        m->eod |= b->append_eod;
        m->no_eod |= !b->append_eod;
    }
    if (b->vocab_size > a->vocab_size)
        a->vocab_size = b->vocab_size;
    a->bad_records += b->bad_records;
    a->filtered_records += b->filtered_records;
    for (size_t i = 0; i < b->ninputs; i++)
        keep_input(m, &b->inputs[i]);
    return 0;
}

/* If a shard has none, its tokenizer is unknown, and so is the result's. */
static void settle_manifest(struct merge *m)
{
    struct manifest *a = &m->manifest;
    a->weft_version = WEFT_VERSION;
    a->append_eod = m->eod && !m->no_eod;
    if (m->known == m->q->n)
        return;
    a->tokenizer_type = a->tokenizer_path = a->eod_piece = a->meaning = NULL;
    a->digest[0] = '\0';
    a->vocab_size = 0;
    a->eod = -1;
    a->append_eod = false;
    a->noptions = 0;
}

/* ---- looking at all ----------------------------------------------------------------------------
 */

static int look_at_output(const struct merge_request *q, struct err *e)
{
    static const char *const suffix[] = {".idx", ".bin", ".manifest.json", NULL};
    size_t n = 3 * q->n;
    char **input = mem_new(n, sizeof(*input));
    for (size_t i = 0; i < n; i++)
        input[i] = mem_printf("%s%s", q->prefix[i / 3], suffix[i % 3]);
    const struct output_rule rule = {
        .overwrite = q->overwrite, .input = (const char *const *)input, .ninputs = n};
    int code = output_check_all(q->output, suffix, &rule, e);
    names_free(input, n);
    return code;
}

static int fits(struct merge *m, size_t i, const struct shard *s, struct err *e)
{
    if (!i) {
        m->dtype = s->dtype;
        m->modes = s->has_modes;
    }
    if (s->dtype != m->dtype)
        return err_set(e, ERR_USAGE, "%s: has tokens of type %s, but those of %s are %s",
                       s->idx.path, shard_dtype_name(s->dtype), m->q->prefix[0],
                       shard_dtype_name(m->dtype));
    if (s->nseq && s->has_modes != m->modes && m->nseq)
        return err_set(e, ERR_USAGE,
                       "%s: %s, the shards before it %s: only one or the other can be merged",
                       s->idx.path, s->has_modes ? "has modes (a multimodal set)" : "has no modes",
                       m->modes ? "have them" : "have none");
    if (s->nseq && !m->nseq)
        m->modes = s->has_modes;
    m->part[i] = (struct part){s->nseq, s->ndocs, s->bin.size};
    m->nseq += s->nseq;
    m->ndocs += s->ndocs;
    if (m->nseq > INT32_MAX)
        return err_set(e, ERR_USAGE,
                       "%s: with it there are %" PRIu64
                       " sequences, and an .idx can have at most 2147483647: merge fewer shards",
                       s->idx.path, m->nseq);
    if (!checked_add(m->bin_bytes, s->bin.size, &m->bin_bytes))
        return err_set(e, ERR_DATA, "%s: all shards together have more than 2^64 bytes",
                       s->bin.path);
    return 0;
}

static int look_at(struct merge *m, size_t i, struct err *e)
{
    struct shard s;
    struct manifest b;
    bool found = false;
    const char *prefix = m->q->prefix[i];
    int code = shard_open(&s, prefix, e);
    if (code)
        return code;
    if (packed_exists(prefix)) {
        code = err_set(e, ERR_USAGE,
                       "%s.pack: masks the tokens of a packed set, and such sets are not merged",
                       prefix);
        err_hint(e, "make one set of all inputs");
    }
    if (!code)
        code = fits(m, i, &s, e);
    if (!code)
        code = manifest_read(prefix, &b, &found, e);
    if (!code && found) {
        code = manifest_fits_shard(&b, &s, e);
        if (!code)
            code = join_manifest(m, &b, prefix, e);
        manifest_close(&b);
    } else if (!code) {
        keep_input(m, &(struct manifest_input){s.bin.path, s.bin.size, s.ndocs, ""});
    }
    shard_close(&s);
    return code;
}

static int merge_look(struct merge *m, struct err *e)
{
    const struct merge_request *q = m->q;
    if (!q->n)
        return err_set(e, ERR_USAGE, "no shard was named");
    int code = commit_finish(q->output, e);
    if (!code)
        code = look_at_output(q, e);
    for (size_t i = 0; i < q->n && !code; i++)
        code = look_at(m, i, e);
    settle_manifest(m);
    return code;
}

/* ---- joining -----------------------------------------------------------------------------------
 */

enum what { LENGTHS, OFFSETS, DOCUMENTS, MODES, BYTES };

struct pass {
    enum what what;
    uint64_t at;  /* bytes of .bin before the next sequence */
    uint64_t seq; /* sequences of the shards before this one */
};

/* Elements [from, from + n) of a shard into the piece; returns their bytes. */
static size_t convert(struct merge *m, struct pass *p, const struct shard *s, uint64_t from,
                      size_t n, uint64_t *bytes)
{
    unsigned char *out = m->piece;
    switch (p->what) {
    case LENGTHS:
        memcpy(out, s->length + 4 * from, 4 * n);
        for (size_t i = 0; i < n; i++)
            *bytes += (uint64_t)(uint32_t)load_i32(out + 4 * i) * s->width;
        return 4 * n;
    case OFFSETS:
        for (size_t i = 0; i < n; i++) {
            store_u64(out + 8 * i, p->at);
            p->at += (uint64_t)(uint32_t)shard_length(s, from + i) * s->width;
        }
        return 8 * n;
    case DOCUMENTS: /* after the first entry */
        for (size_t i = 0; i < n; i++)
            store_u64(out + 8 * i, p->seq + load_u64(s->doc + 8 * (from + 1 + i)));
        return 8 * n;
    case MODES:
        memcpy(out, s->doc + 8 * (s->ndocs + 1) + from, n);
        return n;
    case BYTES:
        memcpy(out, s->bin.data + from, n);
        return n;
    }
    return 0;
}

/* The output depends on these: no negative length, their sum, ascending documents. */
static int merge_judge(const struct merge *m, const struct pass *p, const struct shard *s, size_t n,
                       uint64_t *last, struct err *e)
{
    for (size_t i = 0; p->what == LENGTHS && i < n; i++)
        if (load_i32(m->piece + 4 * i) < 0)
            return err_set(e, ERR_DATA, "%s: a sequence has length %" PRId32, s->idx.path,
                           load_i32(m->piece + 4 * i));
    for (size_t i = 0; p->what == DOCUMENTS && i < n; i++) {
        uint64_t end = load_u64(m->piece + 8 * i);
        if (end < *last || end > p->seq + s->nseq)
            return err_set(e, ERR_DATA,
                           "%s: a document claims sequences %" PRId64 " to %" PRId64 " of %" PRIu64,
                           s->idx.path, (int64_t)(*last - p->seq), (int64_t)(end - p->seq),
                           s->nseq);
        *last = end;
    }
    return 0;
}

static int moved_on(struct merge *m, const struct pass *p, const struct shard *s, uint64_t from,
                    size_t n, struct err *e)
{
    const struct merge_request *q = m->q;
    if (p->what == BYTES) {
        m->done += n;
        map_done(&s->bin, from, n);
        if (q->progress)
            q->progress(q->arg, m->done, m->bin_bytes);
    }
    if (q->stop && *q->stop)
        return err_set(e, ERR_FAIL, "stopped by a signal");
    return 0;
}

static int join_part(struct merge *m, struct pass *p, const struct shard *s, uint64_t all,
                     struct err *e)
{
    size_t step =
        p->what == LENGTHS || p->what == OFFSETS || p->what == DOCUMENTS ? PIECE / 8 : PIECE;
    uint64_t bytes = 0, last = p->seq;
    int code = 0;
    for (uint64_t from = 0; from < all && !code; from += step) {
        size_t n = all - from < step ? (size_t)(all - from) : step;
        size_t size = convert(m, p, s, from, n, &bytes);
        code = map_check(p->what == BYTES ? &s->bin : &s->idx, e);
        if (!code)
            code = merge_judge(m, p, s, n, &last, e);
        if (!code)
            code = p->what == BYTES ? raw_writer_bin(&m->out, m->piece, size, e)
                                    : raw_writer_idx(&m->out, m->piece, size, e);
        if (!code)
            code = moved_on(m, p, s, from, n, e);
    }
    if (!code && p->what == LENGTHS && bytes != s->bin.size)
        code = err_set(e, ERR_DATA, "%s: has %zu bytes, but the lengths in %s say %" PRIu64,
                       s->bin.path, s->bin.size, s->idx.path, bytes);
    p->seq += s->nseq;
    return code;
}

static int join_all(struct merge *m, enum what what, struct err *e)
{
    struct pass p = {.what = what};
    int code = 0;
    for (size_t i = 0; i < m->q->n && !code; i++) {
        struct shard s;
        code = shard_open(&s, m->q->prefix[i], e);
        if (code)
            break;
        const struct part *was = &m->part[i];
        if (s.nseq != was->nseq || s.ndocs != was->ndocs || s.bin.size != was->bin_bytes ||
            s.dtype != m->dtype)
            code = err_set(e, ERR_IO, "%s: changed while it was read", s.idx.path);
        else
            code = join_part(m, &p, &s,
                             what == BYTES       ? s.bin.size
                             : what == DOCUMENTS ? s.ndocs
                                                 : s.nseq,
                             e);
        shard_close(&s);
    }
    return code;
}

static int merge_write_all(struct merge *m, struct err *e)
{
    const unsigned char zero[8] = {0};
    int code = raw_writer_open(&m->out, m->q->output, true, e);
    if (code)
        return code;
    m->out.bin.expected = m->bin_bytes;
    m->out.idx.expected = 34 + 12 * m->nseq + 8 * (m->ndocs + 1) + (m->modes ? m->nseq : 0);
    code = raw_writer_head(&m->out, m->dtype, m->nseq, m->ndocs, e);
    if (!code)
        code = join_all(m, LENGTHS, e);
    if (!code)
        code = join_all(m, OFFSETS, e);
    if (!code)
        code = raw_writer_idx(&m->out, zero, sizeof(zero), e); /* the first document begins at 0 */
    if (!code)
        code = join_all(m, DOCUMENTS, e);
    if (!code && m->modes)
        code = join_all(m, MODES, e);
    if (!code)
        code = join_all(m, BYTES, e);
    if (code)
        raw_writer_abort(&m->out);
    else
        code = raw_writer_finish(&m->out, &m->manifest, e);
    return code;
}

int merge_run(const struct merge_request *q, struct merge_report *ret, struct err *e)
{
    struct merge m = {.q = q,
                      .manifest.eod = -1,
                      .part = mem_new(q->n ? q->n : 1, sizeof(*m.part)),
                      .piece = mem_new(PIECE, 1)};
    int code = merge_look(&m, e);
    if (!code)
        code = output_prepare(q->output, e);
    if (!code) {
        uint32_t width = shard_dtype_width(m.dtype);
        m.manifest.documents = m.ndocs;
        m.manifest.sequences = m.nseq;
        m.manifest.tokens = m.bin_bytes / width;
        m.manifest.dtype = m.dtype;
        code = merge_write_all(&m, e);
    }
    *ret = (struct merge_report){.documents = m.ndocs,
                                 .sequences = m.nseq,
                                 .tokens = m.manifest.tokens,
                                 .unknown = q->n - m.known,
                                 .mixed_eod = m.eod && m.no_eod};
    arena_finish(&m.arena);
    free(m.input);
    free(m.part);
    free(m.piece);
    return code;
}

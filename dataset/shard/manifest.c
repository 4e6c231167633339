/* SPDX-License-Identifier: Apache-2.0 */
#include "dataset/shard/manifest.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/format/json.h"
#include "base/core/log.h"
#include "base/core/mem.h"
#include "base/io/path.h"
#include "dataset/shard/commit.h"

enum { FORMAT = 1, MANIFEST_MAX = 1 << 28 };

char *manifest_path(const char *prefix)
{
    return mem_printf("%s.manifest.json", prefix);
}

/* ---- writing ------------------------------------------------------------------------------ */

static void manifest_put_text(struct buf *b, const char *key, const char *text, const char *end)
{
    jsonw_key(b, key);
    buf_addc(b, ' ');
    if (text)
        jsonw_string(b, text, strlen(text));
    else
        buf_adds(b, "null");
    buf_adds(b, end);
}

static void put_count(struct buf *b, const char *key, uint64_t n, const char *end)
{
    jsonw_key(b, key);
    buf_addf(b, " %" PRIu64 "%s", n, end);
}

static void put_file(struct buf *b, const char *key, uint64_t bytes, const char *xxh)
{
    buf_adds(b, "  ");
    jsonw_key(b, key);
    buf_adds(b, " {");
    put_count(b, "bytes", bytes, ", ");
    manifest_put_text(b, "xxh3_128", xxh[0] ? xxh : NULL, "},\n");
}

/* Counts that only one kind of data has. */
static void put_counts(struct buf *b, const struct manifest *m)
{
    for (size_t i = 0; i < m->ncounts; i++) {
        buf_adds(b, i ? ", " : "  \"counts\": {");
        put_count(b, m->counts[i].name, m->counts[i].n, "");
    }
    buf_adds(b, m->ncounts ? "},\n" : "");
}

static void put_provenance(struct buf *b, const struct manifest *m)
{
    buf_adds(b, "  \"inputs\": [");
    for (size_t i = 0; i < m->ninputs; i++) {
        buf_adds(b, i ? ",\n    {" : "\n    {");
        manifest_put_text(b, "path", m->inputs[i].path, ", ");
        put_count(b, "bytes", m->inputs[i].bytes, ", ");
        manifest_put_text(b, "xxh3_128", m->inputs[i].xxh[0] ? m->inputs[i].xxh : NULL, ", ");
        put_count(b, "documents", m->inputs[i].documents, "}");
    }
    buf_adds(b, m->ninputs ? "\n  ],\n" : "],\n");
    buf_adds(b, "  \"options\": {");
    for (size_t i = 0; i < m->noptions; i++) {
        buf_adds(b, i ? ",\n    " : "\n    ");
        manifest_put_text(b, m->options[i].name, m->options[i].value, "");
    }
    buf_adds(b, m->noptions ? "\n  }\n}\n" : "}\n}\n");
}

void manifest_text(const struct manifest *m, struct buf *b)
{
    buf_addf(b, "{\n  \"weft_manifest\": %d,\n  ", FORMAT);
    manifest_put_text(b, "weft_version", m->weft_version, ",\n  \"tokenizer\": {\n    ");
    manifest_put_text(b, "type", m->tokenizer_type, ",\n    ");
    manifest_put_text(b, "path", m->tokenizer_path, ",\n    ");
    manifest_put_text(b, "sha256", m->digest[0] ? m->digest : NULL, ",\n    ");
    if (m->meaning)
        manifest_put_text(b, "meaning", m->meaning, ",\n    ");
    buf_addf(b, "\"vocab_size\": %" PRId64 ",\n    \"eod\": %" PRId64 ",\n    ", m->vocab_size,
             m->eod);
    manifest_put_text(b, "eod_piece", m->eod_piece, "\n  },\n");
    buf_addf(b, "  \"append_eod\": %s,\n  ", m->append_eod ? "true" : "false");
    manifest_put_text(b, "dtype", shard_dtype_name(m->dtype), ",\n  ");
    put_count(b, "documents", m->documents, ",\n  ");
    put_count(b, "sequences", m->sequences, ",\n  ");
    put_count(b, "tokens", m->tokens, ",\n  ");
    put_count(b, "bad_records", m->bad_records, ",\n");
    buf_adds(b, m->filtered_records ? "  " : "");
    if (m->filtered_records)
        put_count(b, "filtered_records", m->filtered_records, ",\n");
    if (m->pieces)
        buf_addf(b, "  \"piece\": %" PRIu64 ", \"pieces\": %" PRIu64 ",\n", m->piece, m->pieces);
    put_counts(b, m);
    put_file(b, "bin", m->bin_bytes, m->bin_xxh);
    put_file(b, "idx", m->idx_bytes, m->idx_xxh);
    put_provenance(b, m);
}

int manifest_write(const struct manifest *m, struct outfile *f, struct err *e)
{
    struct buf b = {0};
    manifest_text(m, &b);
    int code = outfile_write(f, b.data, b.len, e);
    if (!code)
        code = outfile_sync(f, e);
    buf_finish(&b);
    return code;
}

/* ---- reading ------------------------------------------------------------------------------ */

struct reader {
    const char *path;
    struct manifest *m;
    struct err *e;
    int code; /* the first failure; later calls do nothing */
};

static void fail(struct reader *r, const char *key, const char *want)
{
    if (!r->code)
        r->code = err_set(r->e, ERR_DATA, "%s: \"%s\" is missing or not %s", r->path, key, want);
}

static const struct json *manifest_need(struct reader *r, const struct json *o, const char *key,
                                        enum json_kind kind, const char *want)
{
    const struct json *v = r->code ? NULL : json_get(o, key);
    if (v && v->kind == kind)
        return v;
    fail(r, key, want);
    return NULL;
}

static uint64_t get_count(struct reader *r, const struct json *o, const char *key)
{
    const struct json *v = manifest_need(r, o, key, JSON_INT, "an integer");
    if (v && v->integer < 0)
        fail(r, key, "a count");
    return v && v->integer > 0 ? (uint64_t)v->integer : 0;
}

static int64_t get_integer(struct reader *r, const struct json *o, const char *key)
{
    const struct json *v = manifest_need(r, o, key, JSON_INT, "an integer");
    return v ? v->integer : 0;
}

/* NULL for null. */
static const char *get_text(struct reader *r, const struct json *o, const char *key)
{
    const struct json *v = r->code ? NULL : json_get(o, key);
    if (v && v->kind == JSON_NULL)
        return NULL;
    v = manifest_need(r, o, key, JSON_STRING, "text");
    if (v && strlen(v->string) != v->length)
        fail(r, key, "text without NUL");
    return v ? arena_strdup(&r->m->arena, v->string) : NULL;
}

static void get_hex(struct reader *r, const struct json *o, const char *key, char *ret, size_t size)
{
    const char *s = get_text(r, o, key);
    if (s && strlen(s) != size - 1)
        fail(r, key, "a digest of the right length");
    else if (s)
        memcpy(ret, s, size);
}

static void get_dtype(struct reader *r, const struct json *o)
{
    const char *name = get_text(r, o, "dtype");
    for (int t = SHARD_U8; name && t <= SHARD_U16; t++)
        if (shard_dtype_width((enum shard_dtype)t) &&
            !strcmp(name, shard_dtype_name((enum shard_dtype)t)))
            r->m->dtype = (enum shard_dtype)t;
    if (!r->m->dtype)
        fail(r, "dtype", "a token type");
}

static void get_tokenizer(struct reader *r, const struct json *root)
{
    struct manifest *m = r->m;
    const struct json *o = manifest_need(r, root, "tokenizer", JSON_OBJECT, "an object");
    m->tokenizer_type = get_text(r, o, "type");
    m->tokenizer_path = get_text(r, o, "path");
    get_hex(r, o, "sha256", m->digest, sizeof(m->digest));
    if (!r->code && json_get(o, "meaning")) /* earlier versions did not write it */
        m->meaning = get_text(r, o, "meaning");
    m->vocab_size = get_integer(r, o, "vocab_size");
    m->eod = get_integer(r, o, "eod");
    m->eod_piece = get_text(r, o, "eod_piece");
}

static void get_files(struct reader *r, const struct json *root)
{
    struct manifest *m = r->m;
    const struct json *o = manifest_need(r, root, "bin", JSON_OBJECT, "an object");
    m->bin_bytes = get_count(r, o, "bytes");
    get_hex(r, o, "xxh3_128", m->bin_xxh, sizeof(m->bin_xxh));
    o = manifest_need(r, root, "idx", JSON_OBJECT, "an object");
    m->idx_bytes = get_count(r, o, "bytes");
    get_hex(r, o, "xxh3_128", m->idx_xxh, sizeof(m->idx_xxh));
}

static void get_provenance(struct reader *r, const struct json *root)
{
    struct manifest *m = r->m;
    const struct json *o = manifest_need(r, root, "inputs", JSON_ARRAY, "an array");
    size_t n = o ? o->length : 0;
    struct manifest_input *in = arena_take(&m->arena, n, sizeof(*in));
    for (size_t i = 0; i < n; i++) {
        in[i].path = get_text(r, &o->child[i], "path");
        in[i].bytes = get_count(r, &o->child[i], "bytes");
        in[i].documents = get_count(r, &o->child[i], "documents");
        if (!r->code && json_get(&o->child[i], "xxh3_128")) /* earlier versions did not write it */
            get_hex(r, &o->child[i], "xxh3_128", in[i].xxh, sizeof(in[i].xxh));
    }
    m->inputs = in;
    m->ninputs = n;
    o = manifest_need(r, root, "options", JSON_OBJECT, "an object");
    n = o ? o->length : 0;
    struct manifest_option *op = arena_take(&m->arena, n, sizeof(*op));
    for (size_t i = 0; i < n; i++) {
        op[i].name = arena_strdup(&m->arena, o->child[i].key);
        if (strlen(op[i].name) != o->child[i].key_length)
            fail(r, "options", "an object of texts without NUL");
        op[i].value = get_text(r, o, o->child[i].key);
    }
    m->options = op;
    m->noptions = n;
}

static void get_all(struct reader *r, const struct json *root)
{
    struct manifest *m = r->m;
    const struct json *format = json_get(root, "weft_manifest");
    if (!format || format->kind != JSON_INT || format->integer != FORMAT) {
        r->code =
            err_set(r->e, ERR_DATA, "%s: \"weft_manifest\" is not %d: unknown manifest version",
                    r->path, FORMAT);
        return;
    }
    m->weft_version = get_text(r, root, "weft_version");
    get_tokenizer(r, root);
    const struct json *b = manifest_need(r, root, "append_eod", JSON_BOOL, "true or false");
    m->append_eod = b && b->boolean;
    get_dtype(r, root);
    m->documents = get_count(r, root, "documents");
    m->sequences = get_count(r, root, "sequences");
    m->tokens = get_count(r, root, "tokens");
    m->bad_records = get_count(r, root, "bad_records");
    if (!r->code && json_get(root, "filtered_records"))
        m->filtered_records = get_count(r, root, "filtered_records");
    if (!r->code && json_get(root, "pieces")) {
        m->piece = get_count(r, root, "piece");
        m->pieces = get_count(r, root, "pieces");
        if (m->piece >= m->pieces)
            fail(r, "piece", "a number below \"pieces\"");
    }
    get_files(r, root);
    get_provenance(r, root);
}

int manifest_from(const struct json *root, const char *path, struct manifest *ret, struct err *e)
{
    struct reader r = {.path = path, .m = ret, .e = e};
    *ret = (struct manifest){.eod = -1};
    get_all(&r, root);
    if (r.code)
        manifest_close(ret);
    return r.code;
}

int manifest_read(const char *prefix, struct manifest *ret, bool *ret_found, struct err *e)
{
    *ret = (struct manifest){.eod = -1};
    int finished = commit_finish(prefix, e);
    if (finished)
        return finished;
    char *path = manifest_path(prefix);
    struct json_doc *doc = NULL;
    *ret_found = file_exists(path);
    int code = *ret_found ? json_open_plain(path, MANIFEST_MAX, &doc, e) : 0;
    if (doc)
        code = manifest_from(json_root(doc), path, ret, e);
    json_close(doc);
    free(path);
    return code;
}

void manifest_close(struct manifest *m)
{
    arena_finish(&m->arena);
    *m = (struct manifest){.eod = -1};
}

/* ---- comparing ------------------------------------------------------------ */

int manifest_fits_shard(const struct manifest *m, const struct shard *s, struct err *e)
{
    if (m->idx_bytes == s->idx.size && (!s->has_bin || m->bin_bytes == s->bin.size) &&
        m->documents == s->ndocs && m->sequences == s->nseq && m->dtype == s->dtype)
        return 0;
    err_set(e, ERR_DATA,
            "%s.manifest.json: describes %" PRIu64 " documents in %" PRIu64
            " sequences as %s, but its .idx has %" PRIu64 " in %" PRIu64 " as %s",
            s->prefix, m->documents, m->sequences, shard_dtype_name(m->dtype), s->ndocs, s->nseq,
            shard_dtype_name(s->dtype));
    return err_hint(e, "it belongs to other data; make the shard again, or remove the manifest");
}

int manifest_verify(const struct manifest *m, const struct shard *s, struct err *e)
{
    char got[XXH_TEXT];
    const struct map *map[2] = {&s->idx, &s->bin};
    const char *want[2] = {m->idx_xxh, m->bin_xxh};
    for (int i = 0; i < (s->has_bin ? 2 : 1); i++) {
        xxh_once(map[i]->data, map[i]->size, got);
        int code = map_check(map[i], e);
        if (code)
            return code;
        if (strcmp(got, want[i]) != 0)
            return err_set(e, ERR_INTEGRITY, "%s: its XXH3-128 is %s, but its manifest says %s",
                           map[i]->path, got, want[i]);
    }
    return 0;
}

static int differs(const char *who, const char *what, const char *was, const char *now,
                   struct err *e)
{
    return err_set(e, ERR_USAGE, "%s: was built with %s %s; this command says %s", who, what,
                   was && *was ? was : "none", now && *now ? now : "none");
}

static int differs_in_number(const char *who, const char *what, int64_t was, int64_t now,
                             struct err *e)
{
    char a[24], b[24];
    snprintf(a, sizeof(a), "%" PRId64, was);
    snprintf(b, sizeof(b), "%" PRId64, now);
    return differs(who, what, a, b, e);
}

static int same_tokenizer(const struct manifest *was, const struct manifest *now, const char *who,
                          struct err *e)
{
    const struct manifest_tokenizer before = manifest_tokenizer(was);
    const struct manifest_tokenizer after = manifest_tokenizer(now);
    bool known = was->digest[0] && now->digest[0];
    if (known ? !manifest_same_tokenizer(&before, &after) : strcmp(was->digest, now->digest) != 0)
        return differs(who, "tokenizer", was->digest, now->digest, e);
    if (was->tokenizer_type && now->tokenizer_type &&
        strcmp(was->tokenizer_type, now->tokenizer_type))
        return differs(who, "a", was->tokenizer_type, now->tokenizer_type, e);
    if (was->vocab_size != now->vocab_size)
        return differs_in_number(who, "a vocabulary of", was->vocab_size, now->vocab_size, e);
    if (was->eod != now->eod)
        return differs_in_number(who, "the end of document", was->eod, now->eod, e);
    if (was->dtype != now->dtype)
        return differs(who, "tokens as", shard_dtype_name(was->dtype), shard_dtype_name(now->dtype),
                       e);
    return 0;
}

static const char *option_value(const struct manifest *m, const char *name)
{
    for (size_t i = 0; i < m->noptions; i++)
        if (!strcmp(m->options[i].name, name))
            return m->options[i].value;
    return NULL;
}

/* Each option of `names` must be equal on both sides. */
static int same_options(const struct manifest *was, const struct manifest *now,
                        const struct manifest *names, const char *who, struct err *e)
{
    for (size_t i = 0; i < names->noptions; i++) {
        const char *a = option_value(was, names->options[i].name);
        const char *b = option_value(now, names->options[i].name);
        if (a && b ? !strcmp(a, b) : a == b)
            continue;
        char *what = mem_printf("--%s", names->options[i].name);
        int code = differs(who, what, a, b, e);
        free(what);
        return code;
    }
    return 0;
}

static int same_inputs(const struct manifest *was, const struct manifest *now, const char *who,
                       struct err *e)
{
    for (size_t i = 0; i < was->ninputs && i < now->ninputs; i++) {
        const struct manifest_input *a = &was->inputs[i], *b = &now->inputs[i];
        if (a->bytes != b->bytes)
            return err_set(e, ERR_USAGE,
                           "%s: was built from %s with %" PRIu64 " bytes, but %s has %" PRIu64, who,
                           a->path, a->bytes, b->path, b->bytes);
        if (a->xxh[0] && b->xxh[0] && strcmp(a->xxh, b->xxh))
            return err_set(e, ERR_USAGE,
                           "%s: was built from %s with XXH3-128 %s, but that of %s is %s", who,
                           a->path, a->xxh, b->path, b->xxh);
    }
    if (was->ninputs == now->ninputs)
        return 0;
    return err_set(e, ERR_USAGE, "%s: was built from %zu inputs; this command names %zu", who,
                   was->ninputs, now->ninputs);
}

int manifest_same_work(const struct manifest *was, const struct manifest *now, const char *who,
                       struct err *e)
{
    int code = same_tokenizer(was, now, who, e);
    if (!code)
        code = same_options(was, now, now, who, e);
    if (!code)
        code = same_options(was, now, was, who, e);
    return code ? code : same_inputs(was, now, who, e);
}

/* "a.model (SHA-256 0123456789ab)", with what is known of file and digest. */
static char *tokenizer_name(const char *path, const char *digest)
{
    bool known = digest && digest[0];
    if (path)
        return known ? mem_printf("%s (SHA-256 %.12s)", path, digest) : mem_strdup(path);
    return known ? mem_printf("a tokenizer with SHA-256 %.12s", digest)
                 : mem_strdup("an unknown tokenizer");
}

struct manifest_tokenizer manifest_tokenizer(const struct manifest *m)
{
    return (struct manifest_tokenizer){m->tokenizer_path, m->digest, m->meaning, m->vocab_size};
}

static bool said(const char *text)
{
    return text && *text;
}

bool manifest_same_tokenizer(const struct manifest_tokenizer *a, const struct manifest_tokenizer *b)
{
    if (!said(a->digest) || !said(b->digest) || !strcmp(a->digest, b->digest))
        return true;
    return said(a->meaning) && said(b->meaning) && !strcmp(a->meaning, b->meaning);
}

/* The field "name=" of a meaning; *ret_n: of its value. NULL: it has none. */
static const char *field_of(const char *meaning, const char *name, size_t n, size_t *ret_n)
{
    for (const char *p = meaning; *p; p += strcspn(p, " "), p += *p == ' ')
        if (!strncmp(p, name, n) && p[n] == '=') {
            *ret_n = strcspn(p + n + 1, " ");
            return p + n + 1;
        }
    *ret_n = 0;
    return NULL;
}

/* A field that tells more than a digest does. */
static bool tells(const char *name, size_t n)
{
    static const char *const plain[] = {"model", "size", "end-of-document"};
    for (size_t i = 0; i < sizeof(plain) / sizeof(plain[0]); i++)
        if (strlen(plain[i]) == n && !memcmp(plain[i], name, n))
            return true;
    return false;
}

/* Fields of `was` that `is` has otherwise; with `only`, those that it lacks. */
static void put_fields(struct buf *b, size_t from, const char *was, const char *is, bool only)
{
    for (const char *p = was; *p; p += strcspn(p, " "), p += *p == ' ') {
        size_t name = strcspn(p, "= "), n = 0, k = 0;
        const char *x = field_of(was, p, name, &n), *y = field_of(is, p, name, &k);
        if (!x || (only && y) || (n == k && y && !memcmp(x, y, n)))
            continue;
        buf_addf(b, "%s%.*s", b->len > from ? ", " : "", (int)name, p);
        if (y && tells(p, name))
            buf_addf(b, " (%.*s, %.*s)", (int)n, x, (int)k, y);
    }
}

void manifest_put_differences(struct buf *b, const char *was, const char *is)
{
    size_t from = b->len;
    put_fields(b, from, was, is, false);
    put_fields(b, from, is, was, true);
}

int manifest_compare(const struct manifest *m, const char *prefix, const char *who,
                     const struct manifest_tokenizer *theirs, struct err *e)
{
    int code = 0;
    const struct manifest_tokenizer own = manifest_tokenizer(m);
    char *a = tokenizer_name(own.path, own.digest);
    char *b = tokenizer_name(theirs->path, theirs->digest);
    struct buf why = {0};
    if (said(own.meaning) && said(theirs->meaning)) {
        buf_adds(&why, "; different: ");
        manifest_put_differences(&why, own.meaning, theirs->meaning);
    }
    if (!manifest_same_tokenizer(&own, theirs))
        code = err_set(e, ERR_USAGE, "%s was tokenized with %s, but %s has %s%s", prefix, a, who, b,
                       buf_str(&why));
    else if (own.vocab_size > 0 && theirs->vocab_size > 0 && own.vocab_size != theirs->vocab_size)
        code = err_set(e, ERR_USAGE,
                       "%s was tokenized with %s of %" PRId64 " tokens, but %s has %s of %" PRId64,
                       prefix, a, own.vocab_size, who, b, theirs->vocab_size);
    if (code)
        err_hint(e, "data used together needs one tokenizer: tokenize one of them again; "
                    "--tokenizer-differs goes on all the same");
    buf_finish(&why);
    free(a);
    free(b);
    return code;
}

int manifest_judge(bool goes_on, int code, struct err *e)
{
    if (code != ERR_USAGE || !goes_on)
        return code;
    log_warn("%s (--tokenizer-differs)", e->msg);
    return 0;
}

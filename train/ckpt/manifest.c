/* SPDX-License-Identifier: Apache-2.0 */
#include "train/ckpt/manifest.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/bytes.h"
#include "base/core/hash.h"
#include "base/core/mem.h"

static const char digest_key[] = "\"xxh3_128\": \"";
static const char tail_end[] = "\"\n}\n";

enum { TAIL = sizeof(digest_key) - 1 + XXH_TEXT - 1 + sizeof(tail_end) - 1, VERSION = 2 };

/* ---- reading ------------------------------------------------------------------------------- */

struct reader {
    struct ckpt_manifest *m;
    const char *name;
    bool fragment;
    struct err *e;
};

static int manifest_bad(const struct reader *r, const char *what, const char *why)
{
    return err_set(r->e, ERR_DATA, "%s: %.300s %s", r->name, what, why);
}

/* Before anything is parsed: is this text, byte for byte, what was written? */
static int check_digest(const char *name, const char *p, size_t n, struct err *e)
{
    static const char begin[] = "{\n\"format\": \"weft-checkpoint\",\n";
    char digest[XXH_TEXT];
    const char *tail = p + n - TAIL;
    bool ours = !memcmp(p, begin, n < sizeof(begin) - 1 ? n : sizeof(begin) - 1);
    if (!ours && (n < TAIL || memcmp(tail, digest_key, sizeof(digest_key) - 1) != 0))
        return err_set(e, ERR_DATA,
                       "%s: not a manifest of weft, which begins with \"format\": "
                       "\"weft-checkpoint\" and ends with a digest",
                       name);
    if (n < TAIL || memcmp(tail, digest_key, sizeof(digest_key) - 1) != 0 ||
        memcmp(p + n - (sizeof(tail_end) - 1), tail_end, sizeof(tail_end) - 1) != 0)
        return err_set(e, ERR_INTEGRITY, "%s: does not end with its digest: cut short or changed",
                       name);
    xxh_once(p, n - TAIL, digest);
    if (memcmp(tail + sizeof(digest_key) - 1, digest, XXH_TEXT - 1) != 0)
        return err_set(e, ERR_INTEGRITY,
                       "%s: its bytes are not those that were written (XXH3-128 "
                       "%s instead of %.32s)",
                       name, digest, tail + sizeof(digest_key) - 1);
    return 0;
}

static bool plain_text(const struct json *v)
{
    return v && v->kind == JSON_STRING && strlen(v->string) == v->length;
}

static int read_count(const struct reader *r, const struct json *o, const char *key, int64_t *ret)
{
    const struct json *v = json_get(o, key);
    if (!v || v->kind != JSON_INT || v->integer < 0)
        return manifest_bad(r, key, "is missing or no count");
    *ret = v->integer;
    return 0;
}

static int read_text(const struct reader *r, const struct json *o, const char *key,
                     const char **ret)
{
    const struct json *v = json_get(o, key);
    if (!plain_text(v))
        return manifest_bad(r, key, "is missing or no text");
    *ret = v->string;
    return 0;
}

static int text_or_null(const struct reader *r, const struct json *o, const char *key,
                        const char **ret)
{
    const struct json *v = json_get(o, key);
    if (v && v->kind == JSON_NULL)
        return 0;
    return read_text(r, o, key, ret);
}

static int count_or_null(const struct reader *r, const struct json *o, const char *key,
                         int64_t *ret)
{
    const struct json *v = json_get(o, key);
    if (v && v->kind == JSON_NULL)
        return 0;
    return read_count(r, o, key, ret);
}

static int read_pairs(const struct reader *r, const struct json *o, const char *key,
                      const struct ckpt_pair **ret, size_t *ret_n)
{
    const struct json *v = json_get(o, key);
    if (!v || v->kind != JSON_OBJECT)
        return manifest_bad(r, key, "is missing or no object");
    struct ckpt_pair *pair = arena_take(&r->m->arena, v->length + 1, sizeof(*pair));
    for (size_t i = 0; i < v->length; i++) {
        const struct json *c = &v->child[i];
        if (!plain_text(c) || strlen(c->key) != c->key_length)
            return manifest_bad(r, key, "has something else than texts");
        pair[i] = (struct ckpt_pair){c->key, c->string};
    }
    *ret = pair;
    *ret_n = v->length;
    return 0;
}

/* The model as text again. */
static void print(struct buf *b, const struct json *v)
{
    bool object = v->kind == JSON_OBJECT;
    switch (v->kind) {
    case JSON_NULL:
        buf_adds(b, "null");
        break;
    case JSON_BOOL:
        buf_adds(b, v->boolean ? "true" : "false");
        break;
    case JSON_INT:
        buf_addf(b, "%lld", (long long)v->integer);
        break;
    case JSON_REAL:
        jsonw_real(b, v->real);
        break;
    case JSON_STRING:
        jsonw_string(b, v->string, v->length);
        break;
    case JSON_ARRAY:
    case JSON_OBJECT:
        buf_addc(b, object ? '{' : '[');
        for (size_t i = 0; i < v->length; i++) {
            buf_adds(b, i ? ", " : "");
            if (object) {
                jsonw_string(b, v->child[i].key, v->child[i].key_length);
                buf_adds(b, ": ");
            }
            print(b, &v->child[i]);
        }
        buf_addc(b, object ? '}' : ']');
        break;
    }
}

static int read_model(const struct reader *r, const struct json *root)
{
    struct buf b = {0};
    r->m->model = json_get(root, "model");
    if (!r->m->model || r->m->model->kind != JSON_OBJECT)
        return manifest_bad(r, "model", "is missing or no object");
    print(&b, r->m->model);
    r->m->meta.model = arena_strndup(&r->m->arena, b.data, b.len);
    buf_finish(&b);
    return 0;
}

static bool is_known(const char *key)
{
    static const char *const keys[] = {"format",
                                       "version",
                                       "must_know",
                                       "weft",
                                       "iteration",
                                       "model",
                                       "tokenizer",
                                       "consumed_samples",
                                       "data_digest",
                                       "kernels",
                                       "state",
                                       "files",
                                       "files.name",
                                       "files.size",
                                       "files.sum128",
                                       "files.pieces",
                                       "tensors",
                                       "tensors.name",
                                       "tensors.group",
                                       "tensors.dtype",
                                       "tensors.shape",
                                       "tensors.parts",
                                       "tensors.fingerprint",
                                       "tensors.parts.file",
                                       "tensors.parts.entry",
                                       "tensors.parts.begin",
                                       "tensors.parts.count",
                                       "xxh3_128"};
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
        if (!strcmp(key, keys[i]))
            return true;
    return !strncmp(key, "model.", 6); /* whoever reads the model looks at these */
}

static int read_must_know(const struct reader *r, const struct json *root)
{
    const struct json *v = json_get(root, "must_know");
    if (!v || v->kind != JSON_ARRAY)
        return manifest_bad(r, "must_know", "is missing or is not an array");
    for (size_t i = 0; i < v->length; i++) {
        if (!plain_text(&v->child[i]))
            return manifest_bad(r, "must_know", "holds something other than texts");
        if (!is_known(v->child[i].string))
            return err_set(r->e, ERR_DATA,
                           "%s: this weft does not know '%.200s', without which the checkpoint "
                           "cannot be read",
                           r->name, v->child[i].string);
    }
    r->m->must_know = v;
    return 0;
}

static int read_format(const struct reader *r, const struct json *root)
{
    const struct json *f = json_get(root, "format");
    int64_t version = 0;
    if (!plain_text(f) || strcmp(f->string, "weft-checkpoint") != 0)
        return manifest_bad(r, "this", "is not the manifest of a weft checkpoint");
    int code = read_count(r, root, "version", &version);
    if (!code && (version < 1 || version > VERSION))
        code = err_set(r->e, ERR_DATA, "%s: version %lld of the format, this weft reads 1 to %d",
                       r->name, (long long)version, (int)VERSION);
    r->m->version = (int)version;
    return code ? code : version == 1 ? 0 : read_must_know(r, root);
}

static int read_meta(const struct reader *r, const struct json *root)
{
    struct ckpt_meta *m = &r->m->meta;
    const struct json *tok = json_get(root, "tokenizer");
    m->eod = -1;
    int code = read_format(r, root);
    if (!code)
        code = read_text(r, root, "weft", &m->weft);
    if (!code)
        code = read_count(r, root, "iteration", &m->iteration);
    if (!code)
        code = read_count(r, root, "consumed_samples", &m->consumed_samples);
    if (!code)
        code = read_model(r, root);
    if (!code && (!tok || tok->kind != JSON_OBJECT))
        code = manifest_bad(r, "tokenizer", "is missing or no object");
    if (!code)
        code = text_or_null(r, tok, "type", &m->tokenizer_type);
    if (!code)
        code = text_or_null(r, tok, "digest", &m->tokenizer_digest);
    if (!code && json_get(tok, "meaning")) /* earlier versions did not write it */
        code = text_or_null(r, tok, "meaning", &m->tokenizer_meaning);
    if (!code)
        code = count_or_null(r, tok, "vocab_size", &m->vocab_size);
    if (!code)
        code = count_or_null(r, tok, "eod", &m->eod);
    if (!code)
        code = text_or_null(r, root, "data_digest", &m->data_digest);
    if (!code)
        code = read_pairs(r, root, "kernels", &m->kernels, &m->nkernels);
    if (!code)
        code = read_pairs(r, root, "state", &m->state, &m->nstate);
    return code;
}

/* ---- reading: files ------------------------------------------------------------------------ */

static bool is_hash(const char *s)
{
    return strlen(s) == XXH_TEXT - 1 && strspn(s, "0123456789abcdef") == XXH_TEXT - 1;
}

static int bad_sum(const struct reader *r, const char *file)
{
    return manifest_bad(r, file, "has no sum of 32 hexadecimal digits");
}

/* The sums of a file's pieces: as many as its size has, which add up to that of the whole. */
static int read_sums(const struct reader *r, const struct json *o, struct ckpt_file *f)
{
    const struct json *v = json_get(o, "pieces");
    struct fingerprint whole, sum = {0}, *piece;
    size_t n = (size_t)(f->size / CKPT_PIECE + (f->size % CKPT_PIECE != 0));
    if (!fingerprint_parse(f->digest, &whole))
        return bad_sum(r, f->name);
    if (n > 1 && (!v || v->kind != JSON_ARRAY || v->length != n))
        return manifest_bad(r, f->name, "has not one sum for each 64 MiB");
    f->piece = piece = arena_take(&r->m->arena, n + 1, sizeof(*piece));
    f->pieces = n;
    for (size_t i = 0; n > 1 && i < n; i++) {
        if (!plain_text(&v->child[i]) || !fingerprint_parse(v->child[i].string, &piece[i]))
            return bad_sum(r, f->name);
        fingerprint_join(&sum, piece[i]);
    }
    if (n == 1)
        sum = piece[0] = whole;
    if (!fingerprint_equal(sum, whole))
        return manifest_bad(r, f->name, "has sums of pieces that do not add up to its own");
    return 0;
}

static int read_file(const struct reader *r, const struct json *o, struct ckpt_file *ret)
{
    int64_t size = 0;
    bool sums = r->m->version > 1;
    if (o->kind != JSON_OBJECT)
        return manifest_bad(r, "files", "has something else than objects");
    int code = read_text(r, o, "name", &ret->name);
    if (!code && (!ckpt_manifest_file_name(ret->name) || strcmp(ret->name, "manifest.json") == 0))
        code = manifest_bad(r, ret->name, "is not a file name beside a manifest");
    if (!code)
        code = read_count(r, o, "size", &size);
    if (!code)
        code = read_text(r, o, sums ? "sum128" : "xxh3_128", &ret->digest);
    if (code)
        return code;
    ret->size = (uint64_t)size;
    if (sums)
        return read_sums(r, o, ret);
    return is_hash(ret->digest) ? 0 : manifest_bad(r, ret->name, "has no XXH3-128 of 32 digits");
}

static int file_order(const void *a, const void *b)
{
    return strcmp((*(struct ckpt_file *const *)a)->name, (*(struct ckpt_file *const *)b)->name);
}

/* The files in byte order of their names, or NULL with an error if one occurs twice. */
static struct ckpt_file **sort_files(const struct reader *r)
{
    struct ckpt_manifest *m = r->m;
    struct ckpt_file **by_name = arena_take(&m->arena, m->files + 1, sizeof(*by_name));
    for (size_t i = 0; i < m->files; i++)
        by_name[i] = &m->file[i];
    qsort(by_name, m->files, sizeof(*by_name), file_order);
    for (size_t i = 1; i < m->files; i++) {
        if (strcmp(by_name[i - 1]->name, by_name[i]->name) == 0) {
            manifest_bad(r, by_name[i]->name, "comes twice among the files");
            return NULL;
        }
    }
    return by_name;
}

static int read_files(const struct reader *r, const struct json *root)
{
    const struct json *v = json_get(root, "files");
    if (!v || v->kind != JSON_ARRAY)
        return manifest_bad(r, "files", "is missing or no array");
    r->m->file = arena_take(&r->m->arena, v->length + 1, sizeof(*r->m->file));
    int code = 0;
    for (size_t i = 0; !code && i < v->length; i++)
        code = read_file(r, &v->child[i], &r->m->file[r->m->files++]);
    return code;
}

/* ---- reading: tensors ---------------------------------------------------------------------- */

static int read_sizes(const struct reader *r, const struct json *o, const char *key, int rank,
                      int64_t *ret)
{
    const struct json *v = json_get(o, key);
    bool fine = v && v->kind == JSON_ARRAY && v->length == (size_t)rank;
    for (int i = 0; fine && i < rank; i++) {
        fine = v->child[i].kind == JSON_INT && v->child[i].integer >= 0;
        ret[i] = v->child[i].integer;
    }
    return fine
               ? 0
               : manifest_bad(r, key, "of a tensor is missing or has other than one or two counts");
}

static int read_part(const struct reader *r, struct ckpt_file *const *by_name, const struct json *o,
                     int rank, struct ckpt_manifest_part *ret)
{
    struct ckpt_file key, *k = &key;
    if (o->kind != JSON_OBJECT)
        return manifest_bad(r, "parts", "has something else than objects");
    int code = read_text(r, o, "file", &key.name);
    if (!code)
        code = read_text(r, o, "entry", &ret->entry);
    if (!code)
        code = read_sizes(r, o, "begin", rank, ret->begin);
    if (!code && r->m->version > 1) {
        ret->count[1] = 1;
        code = read_sizes(r, o, "count", rank, ret->count);
    }
    if (code)
        return code;
    struct ckpt_file *const *f =
        r->m->files ? bsearch(&k, by_name, r->m->files, sizeof(k), file_order) : NULL;
    if (!f)
        return manifest_bad(r, key.name, "holds a part of a tensor, but is not among the files");
    (*f)->tensors = true;
    ret->file = (size_t)(*f - r->m->file);
    return 0;
}

static int read_group(const struct reader *r, const struct json *o, const char **ret)
{
    int code = read_text(r, o, "group", ret);
    if (!code && !ckpt_manifest_group_name(*ret))
        code = manifest_bad(r, *ret, "is not the name of a group of tensors");
    return code;
}

static int check_size(const struct reader *r, const struct ckpt_manifest_tensor *t)
{
    uint64_t bytes;
    if (!checked_mul((uint64_t)t->size[0], (uint64_t)t->size[1], &bytes) ||
        !checked_mul(bytes, 8, &bytes) || bytes > INT64_MAX)
        return manifest_bad(r, t->name, "is larger than anything can be");
    return 0;
}

/* Type and fingerprint, from version 2 on. */
static int read_kind(const struct reader *r, const struct json *o, struct ckpt_manifest_tensor *t)
{
    const char *type = NULL, *sum = NULL;
    int code = read_text(r, o, "dtype", &type);
    const struct dtype_row *row = code ? NULL : dtype_find_name(type);
    int d = row ? dtype_of_row(row) : -1;
    if (!code && d < 0)
        code = manifest_bad(r, type, "is the dtype of a tensor, which this weft does not know");
    if (code)
        return code;
    t->dtype = (enum dtype)d;
    if (!json_get(o, "fingerprint"))
        return 0;
    code = read_text(r, o, "fingerprint", &sum);
    if (!code && !fingerprint_parse(sum, &t->sum))
        code = manifest_bad(r, t->name, "has a fingerprint other than of 32 hexadecimal digits");
    t->has_sum = !code;
    return code;
}

static int read_tensor(const struct reader *r, struct ckpt_file *const *by_name,
                       const struct json *o, struct ckpt_manifest_tensor *t)
{
    struct ckpt_manifest *m = r->m;
    if (o->kind != JSON_OBJECT)
        return manifest_bad(r, "tensors", "has something else than objects");
    int code = read_text(r, o, "name", &t->name);
    if (!code && (!*t->name || strlen(t->name) > 1024))
        code = manifest_bad(r, "a tensor", "has no name or one of more than 1024 bytes");
    if (!code)
        code = read_group(r, o, &t->group);
    if (code)
        return code;
    const struct json *shape = json_get(o, "shape"), *parts = json_get(o, "parts");
    t->rank = shape && shape->kind == JSON_ARRAY && shape->length == 1 ? 1 : 2;
    t->size[1] = 1;
    code = read_sizes(r, o, "shape", t->rank, t->size);
    if (!code)
        code = check_size(r, t);
    if (!code && m->version > 1)
        code = read_kind(r, o, t);
    if (code)
        return code;
    if (!parts || parts->kind != JSON_ARRAY || !parts->length || parts->length > BOX_PARTS_MAX)
        return manifest_bad(r, t->name, "has no array of 1 to 32768 parts");
    t->part = m->nparts;
    t->parts = parts->length;
    for (size_t i = 0; !code && i < parts->length; i++)
        code = read_part(r, by_name, &parts->child[i], t->rank, &m->part[m->nparts++]);
    return code;
}

static int read_tensors(const struct reader *r, const struct json *root)
{
    struct ckpt_manifest *m = r->m;
    const struct json *v = json_get(root, "tensors");
    if (!v || v->kind != JSON_ARRAY)
        return manifest_bad(r, "tensors", "is missing or no array");
    struct ckpt_file **by_name = sort_files(r);
    if (!by_name)
        return ERR_DATA;
    size_t parts = 0;
    for (size_t i = 0; i < v->length; i++) {
        const struct json *p = json_get(&v->child[i], "parts");
        parts += p && p->kind == JSON_ARRAY ? p->length : 0;
    }
    m->part = arena_take(&m->arena, parts + 1, sizeof(*m->part));
    m->tensor = arena_take(&m->arena, v->length + 1, sizeof(*m->tensor));
    for (size_t i = 0; i < v->length; i++) {
        struct ckpt_manifest_tensor *t = &m->tensor[m->tensors++];
        int code = read_tensor(r, by_name, &v->child[i], t);
        if (!code && i && !r->fragment &&
            ckpt_manifest_order(t[-1].group, t[-1].name, t->group, t->name) >= 0)
            code = manifest_bad(r, t->name, "comes twice, or the tensors are not sorted");
        if (code)
            return code;
    }
    return 0;
}

static int parse(struct ckpt_manifest *ret, bool fragment, const char *name, const char *p,
                 size_t n, struct err *e)
{
    struct json_doc *doc;
    int code = check_digest(name, p, n, e);
    size_t values = 0;
    for (size_t i = 0; !code && i < n; i++)
        values += p[i] == ',' || p[i] == '[' || p[i] == '{';
    if (!code && values > MANIFEST_VALUES_MAX)
        code = err_set(e, ERR_DATA, "%s: more than %d values", name, (int)MANIFEST_VALUES_MAX);
    if (!code)
        code = json_parse(name, p, n, &doc, e);
    if (code)
        return code;
    struct ckpt_manifest m = {.doc = doc};
    struct reader r = {&m, name, fragment, e};
    if (json_root(doc)->kind != JSON_OBJECT)
        code = manifest_bad(&r, "this", "is not a JSON object");
    if (!code)
        code = read_meta(&r, json_root(doc));
    if (!code)
        code = read_files(&r, json_root(doc));
    if (!code)
        code = read_tensors(&r, json_root(doc));
    if (code)
        ckpt_manifest_finish(&m);
    else
        *ret = m;
    return code;
}

int ckpt_manifest_parse(struct ckpt_manifest *ret, const char *name, const char *p, size_t n,
                        struct err *e)
{
    return parse(ret, false, name, p, n, e);
}

int ckpt_manifest_parse_fragment(struct ckpt_manifest *ret, const char *name, const char *p,
                                 size_t n, struct err *e)
{
    return parse(ret, true, name, p, n, e);
}

void ckpt_manifest_finish(struct ckpt_manifest *m)
{
    json_close(m->doc);
    arena_finish(&m->arena);
    *m = (struct ckpt_manifest){0};
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "base/core/hash.h"
#include "base/core/mem.h"
#include "train/ckpt/manifest.h"

int ckpt_manifest_order(const char *a_group, const char *a, const char *b_group, const char *b)
{
    bool a_first = !strcmp(a_group, CKPT_PARAM), b_first = !strcmp(b_group, CKPT_PARAM);
    if (a_first != b_first)
        return a_first ? -1 : 1;
    int order = strcmp(a_group, b_group);
    return order ? order : strcmp(a, b);
}

bool ckpt_manifest_group_name(const char *name)
{
    size_t n = strlen(name);
    return n && n <= CKPT_GROUP_MAX && strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_") == n;
}

bool ckpt_manifest_file_name(const char *name)
{
    size_t n = strlen(name);
    bool fine = n >= 1 && n <= 255 && name[0] != '.';
    for (size_t i = 0; fine && i < n; i++) {
        char c = name[i];
        fine = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
               c == '.' || c == '_' || c == '-';
    }
    return fine;
}

/* ---- writing ------------------------------------------------------------------------------- */

static void manifest_add_text(struct buf *b, const char *key, const char *value)
{
    jsonw_key(b, key);
    buf_addc(b, ' ');
    if (value)
        jsonw_string(b, value, strlen(value));
    else
        buf_adds(b, "null");
}

static void add_int(struct buf *b, const char *key, int64_t v)
{
    jsonw_key(b, key);
    buf_addf(b, " %lld", (long long)v);
}

static void add_pairs(struct buf *b, const char *key, const struct ckpt_pair *pair, size_t n)
{
    jsonw_key(b, key);
    buf_adds(b, " {");
    for (size_t i = 0; i < n; i++) {
        buf_adds(b, i ? ", " : "");
        manifest_add_text(b, pair[i].key, pair[i].value);
    }
    buf_adds(b, "},\n");
}

/* Keys of the manifest and its parts without which it would be misread; and all of the model's:
 * without any of them it would be another model. */
static void add_must_know(struct buf *b, const char *model)
{
    static const char *const keys[] = {"consumed_samples",
                                       "files",
                                       "files.name",
                                       "files.size",
                                       "format",
                                       "iteration",
                                       "model",
                                       "must_know",
                                       "state",
                                       "tensors",
                                       "tensors.dtype",
                                       "tensors.group",
                                       "tensors.name",
                                       "tensors.parts",
                                       "tensors.parts.begin",
                                       "tensors.parts.count",
                                       "tensors.parts.entry",
                                       "tensors.parts.file",
                                       "tensors.shape",
                                       "version"};
    struct json_doc *doc = NULL;
    bool parsed = !json_parse("the model", model, strlen(model), &doc, NULL);
    BUG_ON(!parsed || json_root(doc)->kind != JSON_OBJECT, "the model is not a JSON object: %s",
           model);
    jsonw_key(b, "must_know");
    buf_adds(b, " [");
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        buf_adds(b, i ? ", " : "");
        jsonw_string(b, keys[i], strlen(keys[i]));
    }
    for (size_t i = 0; i < json_root(doc)->length; i++) {
        char *key = mem_printf("model.%s", json_root(doc)->child[i].key);
        buf_adds(b, ", ");
        jsonw_string(b, key, strlen(key));
        free(key);
    }
    buf_adds(b, "],\n");
    json_close(doc);
}

static void add_meta(struct buf *b, const struct ckpt_meta *m)
{
    manifest_add_text(b, "format", "weft-checkpoint");
    buf_adds(b, ",\n");
    add_int(b, "version", 2);
    buf_adds(b, ",\n");
    add_must_know(b, m->model);
    manifest_add_text(b, "weft", WEFT_VERSION);
    buf_adds(b, ",\n");
    add_int(b, "iteration", m->iteration);
    buf_adds(b, ",\n");
    add_int(b, "consumed_samples", m->consumed_samples);
    buf_adds(b, ",\n");
    jsonw_key(b, "model");
    buf_addf(b, " %s,\n", m->model);
    jsonw_key(b, "tokenizer");
    buf_adds(b, " {");
    manifest_add_text(b, "type", m->tokenizer_type);
    buf_adds(b, ", ");
    manifest_add_text(b, "digest", m->tokenizer_digest);
    buf_adds(b, ", ");
    if (m->tokenizer_meaning) {
        manifest_add_text(b, "meaning", m->tokenizer_meaning);
        buf_adds(b, ", ");
    }
    if (m->vocab_size)
        add_int(b, "vocab_size", m->vocab_size);
    else
        manifest_add_text(b, "vocab_size", NULL);
    buf_adds(b, ", ");
    if (m->eod >= 0)
        add_int(b, "eod", m->eod);
    else
        manifest_add_text(b, "eod", NULL);
    buf_adds(b, "},\n");
    manifest_add_text(b, "data_digest", m->data_digest);
    buf_adds(b, ",\n");
    add_pairs(b, "kernels", m->kernels, m->nkernels);
    add_pairs(b, "state", m->state, m->nstate);
}

static void add_sizes(struct buf *b, const char *key, const int64_t *v, int n)
{
    jsonw_key(b, key);
    buf_addf(b, n == 2 ? " [%lld, %lld]" : " [%lld]", (long long)v[0], (long long)v[1]);
}

static void add_tensor(struct buf *b, const struct ckpt_manifest *m,
                       const struct ckpt_manifest_tensor *t)
{
    char sum[FINGERPRINT_TEXT];
    fingerprint_text(t->sum, sum);
    buf_addc(b, '{');
    manifest_add_text(b, "group", t->group);
    buf_adds(b, ", ");
    manifest_add_text(b, "name", t->name);
    buf_adds(b, ", ");
    manifest_add_text(b, "dtype", dtype_name(t->dtype));
    buf_adds(b, ", ");
    add_sizes(b, "shape", t->size, t->rank);
    if (t->has_sum) {
        buf_adds(b, ", ");
        manifest_add_text(b, "fingerprint", sum);
    }
    buf_adds(b, ", \"parts\": [");
    for (size_t i = 0; i < t->parts; i++) {
        const struct ckpt_manifest_part *p = &m->part[t->part + i];
        buf_adds(b, i ? ", {" : "{");
        manifest_add_text(b, "file", m->file[p->file].name);
        buf_adds(b, ", ");
        manifest_add_text(b, "entry", p->entry);
        buf_adds(b, ", ");
        add_sizes(b, "begin", p->begin, t->rank);
        buf_adds(b, ", ");
        add_sizes(b, "count", p->count, t->rank);
        buf_addc(b, '}');
    }
    buf_adds(b, "]}");
}

/* A file of one piece has no list: its digest is the sum of that. */
static void add_file(struct buf *b, const struct ckpt_file *f)
{
    buf_addc(b, '{');
    manifest_add_text(b, "name", f->name);
    buf_adds(b, ", ");
    add_int(b, "size", (int64_t)f->size);
    buf_adds(b, ", ");
    manifest_add_text(b, "sum128", f->digest);
    if (f->pieces > 1)
        buf_adds(b, ", \"pieces\": [");
    for (size_t i = 0; f->pieces > 1 && i < f->pieces; i++) {
        char sum[FINGERPRINT_TEXT];
        fingerprint_text(f->piece[i], sum);
        buf_addf(b, i ? ", \"%s\"" : "\"%s\"", sum);
    }
    buf_adds(b, f->pieces > 1 ? "]}" : "}");
}

void ckpt_manifest_sums(struct arena *a, const struct fingerprint *piece, size_t n,
                        struct ckpt_file *ret)
{
    char digest[FINGERPRINT_TEXT];
    struct fingerprint whole = {0}, *copy = arena_take(a, n + 1, sizeof(*copy));
    for (size_t i = 0; i < n; i++) {
        copy[i] = piece[i];
        fingerprint_join(&whole, piece[i]);
    }
    fingerprint_text(whole, digest);
    ret->digest = arena_strdup(a, digest);
    ret->piece = copy;
    ret->pieces = n;
}

void ckpt_manifest_write(const struct ckpt_manifest *m, struct buf *out)
{
    size_t start = out->len;
    buf_adds(out, "{\n");
    add_meta(out, &m->meta);
    buf_adds(out, "\"files\": [");
    for (size_t i = 0; i < m->files; i++) {
        buf_adds(out, i ? ",\n  " : "\n  ");
        add_file(out, &m->file[i]);
    }
    buf_adds(out, "],\n\"tensors\": [");
    for (size_t i = 0; i < m->tensors; i++) {
        buf_adds(out, i ? ",\n  " : "\n  ");
        add_tensor(out, m, &m->tensor[i]);
    }
    buf_adds(out, "],\n");
    char digest[XXH_TEXT];
    xxh_once(out->data + start, out->len - start, digest);
    buf_addf(out, "\"xxh3_128\": \"%s\"\n}\n", digest);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/report.h"

#include <dirent.h>
#include <errno.h>
#include <string.h>

#include "base/json.h"
#include "train/spec/param.h"

static int read_spec(const struct ckpt *c, struct spec *ret, struct err *e)
{
    return spec_from_json(ckpt_model(c), ckpt_path(c), ret, e);
}

/* 1,234,567 */
static void add_count(struct buf *b, uint64_t v)
{
    if (v >= 1000) {
        add_count(b, v / 1000);
        buf_addf(b, ",%03d", (int)(v % 1000));
    } else {
        buf_addf(b, "%d", (int)v);
    }
}

static uint64_t total_bytes(const struct ckpt *c)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < ckpt_files(c); i++)
        sum += ckpt_file_at(c, i)->size;
    return sum;
}

/* ---- text ---------------------------------------------------------------------------------- */

static void add_model(struct buf *b, const struct spec *s)
{
    static const char *const acts[] = {"GELU (tanh)", "GELU (erf)", "SwiGLU"};
    buf_addf(b, "model       %lld layers of %lld, %lld heads", (long long)s->layers,
             (long long)s->hidden, (long long)s->heads);
    if (s->kv_heads != s->heads)
        buf_addf(b, " in %lld groups", (long long)s->kv_heads);
    buf_addf(b, " of %lld, MLP %lld, ", (long long)s->head_dim, (long long)s->ffn);
    add_count(b, (uint64_t)spec_parameters(s));
    buf_addf(b, " parameters\n            %s, %s, %s positions up to %lld, %s, head %s\n",
             s->norm == SPEC_RMSNORM ? "RMSNorm" : "LayerNorm", acts[s->act],
             s->position == SPEC_ROPE ? "rotary" : "learned", (long long)s->max_positions,
             s->bias       ? "biases"
             : s->qkv_bias ? "biases on queries, keys and values"
                           : "no biases",
             s->tied ? "tied to the embedding" : "of its own");
    buf_addf(b, "            vocabulary %lld, %lld rows in memory\n", (long long)s->vocab,
             (long long)s->padded_vocab);
}

static void add_tokenizer(struct buf *b, const struct ckpt_meta *m)
{
    buf_addf(b, "tokenizer   %s", m->tokenizer_type ? m->tokenizer_type : "unknown");
    if (m->vocab_size)
        buf_addf(b, ", %lld ids", (long long)m->vocab_size);
    if (m->eod >= 0)
        buf_addf(b, ", documents end by %lld", (long long)m->eod);
    if (m->tokenizer_digest)
        buf_addf(b, ", SHA-256 %s", m->tokenizer_digest);
    buf_addf(b, "\ndata        %s\n", m->data_digest ? m->data_digest : "unknown");
}

static void add_pairs(struct buf *b, const char *what, const struct ckpt_pair *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        buf_addf(b, "%-11s %s: %s\n", i ? "" : what, p[i].key, p[i].value);
}

static void add_groups(struct buf *b, const struct ckpt *c)
{
    for (int g = 0; g < CKPT_GROUPS; g++) {
        uint64_t n = 0, elements = 0;
        for (size_t i = 0; i < ckpt_tensors(c); i++) {
            const struct ckpt_tensor *t = ckpt_tensor_at(c, i);
            n += t->group == (enum ckpt_group)g;
            elements += t->group == (enum ckpt_group)g ? (uint64_t)(t->size[0] * t->size[1]) : 0;
        }
        if (!n)
            continue;
        buf_addf(b, "%-11s %llu tensors, ", ckpt_group_name((enum ckpt_group)g),
                 (unsigned long long)n);
        add_count(b, elements);
        buf_adds(b, " elements\n");
    }
}

static void add_tensor(struct buf *b, const struct ckpt_tensor *t)
{
    buf_addf(b, "%-10s %-4s %s [%lld", ckpt_group_name(t->group), dtype_name(t->dtype), t->name,
             (long long)t->size[0]);
    if (t->rank == 2)
        buf_addf(b, ", %lld", (long long)t->size[1]);
    buf_adds(b, "]\n");
}

int report_text(const struct ckpt *c, bool tensors, struct buf *out, struct err *e)
{
    struct spec s;
    const struct ckpt_meta *m = ckpt_meta(c);
    int code = read_spec(c, &s, e);
    if (code)
        return code;
    buf_addf(out, "%s\niteration   %lld, ", ckpt_path(c), (long long)m->iteration);
    add_count(out, (uint64_t)m->consumed_samples);
    buf_addf(out, " samples consumed; written by weft %s\n", m->weft);
    add_model(out, &s);
    add_tokenizer(out, m);
    add_pairs(out, "kernels", m->kernels, m->nkernels);
    add_pairs(out, "state", m->state, m->nstate);
    add_groups(out, c);
    buf_addf(out, "files       %zu, ", ckpt_files(c));
    add_count(out, total_bytes(c));
    buf_adds(out, " bytes\n");
    for (size_t i = 0; i < ckpt_files(c); i++) {
        const struct ckpt_file *f = ckpt_file_at(c, i);
        buf_addf(out, "            %s  %12llu  %s\n", f->xxh3_128, (unsigned long long)f->size,
                 f->name);
    }
    for (size_t i = 0; tensors && i < ckpt_tensors(c); i++)
        add_tensor(out, ckpt_tensor_at(c, i));
    return 0;
}

/* ---- JSON ---------------------------------------------------------------------------------- */

static void json_text(struct buf *b, const char *key, const char *value)
{
    jsonw_key(b, key);
    if (value)
        jsonw_string(b, value, strlen(value));
    else
        buf_adds(b, "null");
}

static void json_pairs(struct buf *b, const char *key, const struct ckpt_pair *p, size_t n)
{
    jsonw_key(b, key);
    buf_addc(b, '{');
    for (size_t i = 0; i < n; i++) {
        buf_adds(b, i ? "," : "");
        json_text(b, p[i].key, p[i].value);
    }
    buf_addc(b, '}');
}

static void json_meta(struct buf *b, const struct ckpt *c, const struct spec *s)
{
    const struct ckpt_meta *m = ckpt_meta(c);
    json_text(b, "path", ckpt_path(c));
    buf_addf(b, ",\"iteration\":%lld,\"consumed_samples\":%lld,", (long long)m->iteration,
             (long long)m->consumed_samples);
    json_text(b, "weft", m->weft);
    buf_addf(b, ",\"model\":%s,\"parameters\":%lld,\"tokenizer\":{", m->model,
             (long long)spec_parameters(s));
    json_text(b, "type", m->tokenizer_type);
    buf_addc(b, ',');
    json_text(b, "digest", m->tokenizer_digest);
    buf_addf(b, m->vocab_size ? ",\"vocab_size\":%lld" : ",\"vocab_size\":null",
             (long long)m->vocab_size);
    buf_addf(b, m->eod >= 0 ? ",\"eod\":%lld}," : ",\"eod\":null},", (long long)m->eod);
    json_text(b, "data_digest", m->data_digest);
    buf_addc(b, ',');
    json_pairs(b, "kernels", m->kernels, m->nkernels);
    buf_addc(b, ',');
    json_pairs(b, "state", m->state, m->nstate);
}

static void json_files(struct buf *b, const struct ckpt *c)
{
    buf_adds(b, ",\"files\":[");
    for (size_t i = 0; i < ckpt_files(c); i++) {
        const struct ckpt_file *f = ckpt_file_at(c, i);
        buf_adds(b, i ? ",{" : "{");
        json_text(b, "name", f->name);
        buf_addf(b, ",\"size\":%llu,", (unsigned long long)f->size);
        json_text(b, "xxh3_128", f->xxh3_128);
        buf_addc(b, '}');
    }
    buf_addc(b, ']');
}

static void json_tensors(struct buf *b, const struct ckpt *c)
{
    buf_adds(b, ",\"tensors\":[");
    for (size_t i = 0; i < ckpt_tensors(c); i++) {
        const struct ckpt_tensor *t = ckpt_tensor_at(c, i);
        buf_adds(b, i ? ",{" : "{");
        json_text(b, "group", ckpt_group_name(t->group));
        buf_addc(b, ',');
        json_text(b, "name", t->name);
        buf_addc(b, ',');
        json_text(b, "dtype", dtype_name(t->dtype));
        buf_addf(b, ",\"shape\":[%lld", (long long)t->size[0]);
        if (t->rank == 2)
            buf_addf(b, ",%lld", (long long)t->size[1]);
        buf_adds(b, "]}");
    }
    buf_addc(b, ']');
}

int report_json(const struct ckpt *c, bool tensors, struct buf *out, struct err *e)
{
    struct spec s;
    int code = read_spec(c, &s, e);
    if (code)
        return code;
    buf_addc(out, '{');
    json_meta(out, c, &s);
    json_files(out, c);
    if (tensors)
        json_tensors(out, c);
    buf_adds(out, "}\n");
    return 0;
}

/* ---- checking ------------------------------------------------------------------------------ */

static int check_source(const struct ckpt *c, enum ckpt_group g, const struct param_source *s,
                        struct err *e)
{
    const struct ckpt_tensor *t = ckpt_find(c, g, s->name);
    if (!t)
        return err_set(e, ERR_INTEGRITY, "%s: has no %s '%s', which its model needs", ckpt_path(c),
                       ckpt_group_name(g), s->name);
    if (t->rank != s->rank || t->size[0] != s->size[0] || t->size[1] != s->size[1])
        return err_set(e, ERR_INTEGRITY, "%s: %s '%s' has another shape than its model needs",
                       ckpt_path(c), ckpt_group_name(g), s->name);
    return 0;
}

static size_t group_size(const struct ckpt *c, enum ckpt_group g)
{
    size_t n = 0;
    for (size_t i = 0; i < ckpt_tensors(c); i++)
        n += ckpt_tensor_at(c, i)->group == g;
    return n;
}

static int check_group(const struct ckpt *c, enum ckpt_group g, const struct params *p,
                       struct err *e)
{
    size_t have = group_size(c, g), want = 0;
    if (!have && g != CKPT_PARAM)
        return 0; /* weights alone */
    int code = 0;
    for (int i = 0; !code && i < p->n; i++) {
        want += (size_t)p->at[i].sources;
        for (int k = 0; !code && k < p->at[i].sources; k++)
            code = check_source(c, g, &p->at[i].source[k], e);
    }
    if (!code && have != want)
        code = err_set(e, ERR_INTEGRITY, "%s: has %zu tensors of %s, its model needs %zu",
                       ckpt_path(c), have, ckpt_group_name(g), want);
    return code;
}

int report_check_model(const struct ckpt *c, struct err *e)
{
    struct spec s;
    struct params p;
    int code = read_spec(c, &s, e);
    if (!code)
        code = params_build(&p, &s, (struct mesh){1, 1, 1}, 0, e);
    if (code)
        return code;
    for (int g = 0; !code && g < CKPT_GROUPS; g++)
        code = check_group(c, (enum ckpt_group)g, &p, e);
    params_finish(&p);
    return code;
}

int report_strangers(const struct ckpt *c, struct buf *out, struct err *e)
{
    DIR *d = opendir(ckpt_path(c));
    if (!d)
        return err_sys(e, errno, "%s: cannot open the folder", ckpt_path(c));
    for (struct dirent *en; (en = readdir(d));) {
        bool known = !strcmp(en->d_name, ".") || !strcmp(en->d_name, "..") ||
                     !strcmp(en->d_name, "manifest.json");
        for (size_t i = 0; !known && i < ckpt_files(c); i++)
            known = !strcmp(en->d_name, ckpt_file_at(c, i)->name);
        if (!known)
            buf_addf(out, " %s", en->d_name);
    }
    closedir(d);
    return 0;
}

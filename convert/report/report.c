/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/report/report.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/format/json.h"
#include "base/core/mem.h"
#include "base/io/path.h"
#include "train/spec/hf.h"
#include "train/spec/param.h"

enum { EXTRA_SHOWN = 10 }; /* names of tensors in one message */

static int read_spec(const struct ckpt *c, struct spec *ret, struct err *e)
{
    return spec_from_manifest(ckpt_model(c), ckpt_must_know(c), ckpt_path(c), ret, e);
}

/* 1,234,567 */
void report_count(struct buf *b, uint64_t v)
{
    if (v >= 1000) {
        report_count(b, v / 1000);
        buf_addf(b, ",%03d", (int)(v % 1000));
    } else {
        buf_addf(b, "%d", (int)v);
    }
}

static uint64_t count_parameters(const struct ckpt *c)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < ckpt_tensors(c); i++) {
        const struct ckpt_tensor *t = ckpt_tensor_at(c, i);
        if (!strcmp(t->group, CKPT_PARAM))
            sum += (uint64_t)(t->size[0] * t->size[1]);
    }
    return sum;
}

static uint64_t total_bytes(const struct ckpt *c)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < ckpt_files(c); i++)
        sum += ckpt_file_at(c, i)->size;
    return sum;
}

/* ---- text ---------------------------------------------------------------------------------- */

void report_model(struct buf *b, const struct spec *s, uint64_t parameters)
{
    static const char *const acts[] = {"GELU (tanh)", "GELU (erf)", "SwiGLU", "GeGLU (tanh)",
                                       "GeGLU (erf)"};
    buf_addf(b, "model       %lld layers of %lld, %lld heads", (long long)s->layers,
             (long long)s->hidden, (long long)s->heads);
    if (s->kv_heads != s->heads)
        buf_addf(b, " in %lld groups", (long long)s->kv_heads);
    buf_addf(b, " of %lld, MLP %lld, ", (long long)s->head_dim, (long long)s->ffn);
    report_count(b, parameters);
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

/* How many tensors from i on are of one group. */
static size_t group_size(const struct ckpt *c, size_t i)
{
    size_t j = i + 1;
    while (j < ckpt_tensors(c) && !strcmp(ckpt_tensor_at(c, j)->group, ckpt_tensor_at(c, i)->group))
        j++;
    return j - i;
}

static void add_groups(struct buf *b, const struct ckpt *c)
{
    for (size_t i = 0, n; i < ckpt_tensors(c); i += n) {
        uint64_t elements = 0;
        n = group_size(c, i);
        for (size_t k = i; k < i + n; k++) {
            const struct ckpt_tensor *t = ckpt_tensor_at(c, k);
            elements += (uint64_t)(t->size[0] * t->size[1]);
        }
        buf_addf(b, "%-11s %zu tensors, ", ckpt_tensor_at(c, i)->group, n);
        report_count(b, elements);
        buf_adds(b, " elements\n");
    }
}

static void report_tensor(struct buf *b, const struct ckpt_tensor *t)
{
    buf_addf(b, "%-10s %-4s %s [%lld", t->group, dtype_name(t->dtype), t->name,
             (long long)t->size[0]);
    if (t->rank == 2)
        buf_addf(b, ", %lld", (long long)t->size[1]);
    buf_adds(b, "]\n");
}

static int add_extra(const struct ckpt *c, struct buf *out, struct err *e);

int report_text(const struct ckpt *c, bool tensors, struct buf *out, struct err *e)
{
    struct spec s;
    const struct ckpt_meta *m = ckpt_meta(c);
    int code = read_spec(c, &s, e);
    if (code)
        return code;
    buf_addf(out, "%s\niteration   %lld, ", ckpt_path(c), (long long)m->iteration);
    report_count(out, (uint64_t)m->consumed_samples);
    buf_addf(out, " samples consumed; written by weft %s\n", m->weft);
    report_model(out, &s, count_parameters(c));
    add_tokenizer(out, m);
    add_pairs(out, "kernels", m->kernels, m->nkernels);
    add_pairs(out, "state", m->state, m->nstate);
    add_groups(out, c);
    code = add_extra(c, out, e);
    if (code)
        return code;
    buf_addf(out, "files       %zu, ", ckpt_files(c));
    report_count(out, total_bytes(c));
    buf_adds(out, " bytes\n");
    for (size_t i = 0; i < ckpt_files(c); i++) {
        const struct ckpt_file *f = ckpt_file_at(c, i);
        buf_addf(out, "            %s  %12llu  %s\n", f->digest, (unsigned long long)f->size,
                 f->name);
    }
    for (size_t i = 0; tensors && i < ckpt_tensors(c); i++)
        report_tensor(out, ckpt_tensor_at(c, i));
    return 0;
}

/* ---- JSON ---------------------------------------------------------------------------------- */

void report_json_text(struct buf *b, const char *key, const char *value)
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
        report_json_text(b, p[i].key, p[i].value);
    }
    buf_addc(b, '}');
}

static void json_meta(struct buf *b, const struct ckpt *c)
{
    const struct ckpt_meta *m = ckpt_meta(c);
    report_json_text(b, "path", ckpt_path(c));
    buf_addf(b, ",\"iteration\":%lld,\"consumed_samples\":%lld,", (long long)m->iteration,
             (long long)m->consumed_samples);
    report_json_text(b, "weft", m->weft);
    buf_addf(b, ",\"model\":%s,\"parameters\":%lld,\"tokenizer\":{", m->model,
             (long long)count_parameters(c));
    report_json_text(b, "type", m->tokenizer_type);
    buf_addc(b, ',');
    report_json_text(b, "digest", m->tokenizer_digest);
    buf_addf(b, m->vocab_size ? ",\"vocab_size\":%lld" : ",\"vocab_size\":null",
             (long long)m->vocab_size);
    buf_addf(b, m->eod >= 0 ? ",\"eod\":%lld}," : ",\"eod\":null},", (long long)m->eod);
    report_json_text(b, "data_digest", m->data_digest);
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
        report_json_text(b, "name", f->name);
        buf_addf(b, ",\"size\":%llu,", (unsigned long long)f->size);
        report_json_text(b, ckpt_version(c) > 1 ? "sum128" : "xxh3_128", f->digest);
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
        report_json_text(b, "group", t->group);
        buf_addc(b, ',');
        report_json_text(b, "name", t->name);
        buf_addc(b, ',');
        report_json_text(b, "dtype", dtype_name(t->dtype));
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
    json_meta(out, c);
    json_files(out, c);
    if (tensors)
        json_tensors(out, c);
    buf_adds(out, "}\n");
    return 0;
}

/* ---- checking ------------------------------------------------------------------------------ */

/* The groups that have one tensor for each of the model's. */
static const char *const model_groups[] = {CKPT_PARAM, CKPT_EXP_AVG, CKPT_EXP_AVG_SQ,
                                           CKPT_MOMENTUM};
enum { MODEL_GROUPS = sizeof(model_groups) / sizeof(model_groups[0]) };

static int check_tensor(const struct ckpt *c, const char *group, const struct hf_global *want,
                        struct err *e)
{
    const struct ckpt_tensor *t = ckpt_find(c, group, want->name);
    if (!t)
        return err_set(e, ERR_INTEGRITY, "%s: has no %s '%s', which its model needs", ckpt_path(c),
                       group, want->name);
    if (t->rank != want->rank || t->size[0] != want->size[0] || t->size[1] != want->size[1])
        return err_set(e, ERR_INTEGRITY, "%s: %s '%s' has another shape than its model needs",
                       ckpt_path(c), group, want->name);
    return 0;
}

static bool has_group(const struct ckpt *c, const char *group)
{
    bool has = false;
    for (size_t i = 0; !has && i < ckpt_tensors(c); i++)
        has = !strcmp(ckpt_tensor_at(c, i)->group, group);
    return has;
}

static int check_group(const struct ckpt *c, const char *group, const struct hf_map *m,
                       struct err *e)
{
    int code = 0;
    if (strcmp(group, CKPT_PARAM) && !has_group(c, group))
        return 0; /* weights alone */
    for (size_t i = 0; !code && i < m->globals; i++)
        code = check_tensor(c, group, &m->global[i], e);
    return code;
}

static int text_order(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Tensors that the model does not have, as " GROUP 'NAME'", comma between; how many there are. */
static size_t find_extra(const struct ckpt *c, const struct hf_map *m, struct buf *out)
{
    size_t n = m->globals, extra = 0;
    const char **names = mem_new(n + 1, sizeof(*names));
    for (size_t i = 0; i < n; i++)
        names[i] = m->global[i].name;
    if (n)
        qsort(names, n, sizeof(*names), text_order);
    for (size_t i = 0; i < ckpt_tensors(c); i++) {
        const struct ckpt_tensor *t = ckpt_tensor_at(c, i);
        bool of_model = false;
        for (size_t g = 0; g < MODEL_GROUPS; g++)
            of_model |= !strcmp(t->group, model_groups[g]);
        if (!of_model || (n && bsearch(&t->name, names, n, sizeof(*names), text_order)))
            continue;
        if (extra++ < EXTRA_SHOWN)
            buf_addf(out, "%s%s '%.200s'", extra > 1 ? ", " : "", t->group, t->name);
    }
    if (extra > EXTRA_SHOWN)
        buf_addf(out, " and %zu more", extra - EXTRA_SHOWN);
    free(names);
    return extra;
}

/* The tensors of a model that train runs, by its parameter table. */
static int by_params(const struct spec *s, struct hf_map *ret, struct err *e)
{
    struct params p;
    int code = params_build(&p, s, layout_plain(mesh_single()), 0, e);
    if (code)
        return code;
    for (int i = 0; i < p.n; i++)
        for (int k = 0; k < p.at[i].sources; k++) {
            const struct param_source *t = &p.at[i].source[k];
            ret->global = mem_grow(ret->global, ret->globals + 1, sizeof(*ret->global));
            ret->global[ret->globals++] = (struct hf_global){
                arena_strdup(&ret->arena, t->name), t->rank, {t->size[0], t->size[1]}};
        }
    params_finish(&p);
    return 0;
}

/* The tensors of a model of another family, by the config.json in the checkpoint. */
static int by_config(const struct ckpt *c, struct hf_map *ret, struct err *e)
{
    static const struct hf_ignore all = {.all = true};
    struct hf_model m;
    char *path = path_join(ckpt_path(c), "config.json");
    int code = hf_config_open(path, &all, &m, e);
    if (!code)
        hf_map_build(ret, &m, HF_EXPERTS_SINGLE);
    free(path);
    return code;
}

static int model_of(const struct ckpt *c, struct hf_map *ret, struct err *e)
{
    struct spec s;
    int code = read_spec(c, &s, e);
    *ret = (struct hf_map){0};
    if (code)
        return code;
    return spec_lacking(&s) ? by_config(c, ret, e) : by_params(&s, ret, e);
}

int report_check_model(const struct ckpt *c, struct err *e)
{
    struct hf_map p;
    struct buf extra = {0};
    int code = model_of(c, &p, e);
    if (code)
        return code;
    for (size_t g = 0; !code && g < MODEL_GROUPS; g++)
        code = check_group(c, model_groups[g], &p, e);
    if (!code && find_extra(c, &p, &extra))
        code = err_set(e, ERR_INTEGRITY, "%s: its model does not have %s", ckpt_path(c),
                       buf_str(&extra));
    buf_finish(&extra);
    hf_map_finish(&p);
    return code;
}

static int add_extra(const struct ckpt *c, struct buf *out, struct err *e)
{
    struct hf_map p;
    struct buf extra = {0};
    int code = model_of(c, &p, e);
    if (code)
        return code;
    if (find_extra(c, &p, &extra))
        buf_addf(out, "extra       %s, which the model does not have\n", buf_str(&extra));
    buf_finish(&extra);
    hf_map_finish(&p);
    return 0;
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

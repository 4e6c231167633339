/* SPDX-License-Identifier: Apache-2.0 */

/* The names of a family's tensors, and its rows (family.h) expanded over layers and experts. */

#include "train/spec/family.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/mem.h"

/* ---- of a family --------------------------------------------------------------------------- */

/* Frequencies, cosines and sines of rotary positions: of a layer or of the model, of some kinds of
 * layers or of all. transformers calculates them from the configuration and passes over a file's.
 */
static bool is_rotary(const char *name)
{
    const char *module = strstr(name, "rotary_emb"), *dot = strrchr(name, '.');
    if (!module || (module > name && module[-1] != '.') || !dot || dot < module)
        return false;
    size_t n = strlen(dot), freq = strlen("inv_freq");
    return (n > freq && !strcmp(dot + n - freq, "inv_freq")) || !strcmp(dot, ".cos_cached") ||
           !strcmp(dot, ".sin_cached");
}

/* Families with a table of positions have no rotary ones. */
static bool has_rotary(const struct hf_family_row *f)
{
    bool learned = false;
    for (size_t i = 0; i < f->rows; i++)
        learned |= f->row[i].rows == D_POSITIONS;
    return !learned;
}

bool hf_name_ignored(enum hf_family f, const char *name)
{
    size_t n = strlen(name);
    if (has_rotary(hf_families[f]) && is_rotary(name))
        return true;
    for (int i = 0; hf_families[f]->ignored[i]; i++) {
        const char *end = hf_families[f]->ignored[i];
        if (n > strlen(end) && !strcmp(name + n - strlen(end), end))
            return true;
    }
    return false;
}

const char *hf_name_prefix(enum hf_family f)
{
    return hf_families[f]->prefix;
}

const char *hf_name_head(enum hf_family f)
{
    return hf_families[f]->row[hf_families[f]->rows - 1].foreign;
}

const char *hf_name_embedding(enum hf_family f)
{
    return hf_families[f]->row[0].foreign;
}

bool hf_name_transposed(enum hf_family f)
{
    bool found = false;
    for (size_t i = 0; i < hf_families[f]->rows; i++)
        found |= hf_families[f]->row[i].lie == COLS;
    return found;
}

void hf_name_experts(const char *name, enum hf_experts *ret)
{
    if (strstr(name, ".mlp.experts.gate_up_proj"))
        *ret = HF_EXPERTS_FUSED;
}

/* ---- expansion ----------------------------------------------------------------------------- */

struct build {
    struct hf_map *map;
    const struct hf_model *model;
    bool fused;
    size_t tensors, globals, links; /* allocated */
};

static bool is_dense(const struct hf_model *m, int64_t layer)
{
    return !spec_has_experts(&m->spec, layer);
}

static bool row_holds(const struct build *b, enum hf_when when, int64_t layer)
{
    const struct hf_model *m = b->model;
    switch (when) {
    case ALWAYS:
        return true;
    case UNTIED:
        return !m->spec.tied;
    case BIAS_QKV:
        return m->qkv_bias;
    case BIAS_OUT:
        return m->out_bias;
    case BIAS_MLP:
        return m->mlp_bias;
    case QK_NORM:
        return m->spec.qk_norm;
    case DENSE:
        return is_dense(m, layer);
    case DENSE_BIAS:
        return is_dense(m, layer) && m->mlp_bias;
    case SPARSE:
        return !is_dense(m, layer);
    case SPARSE_ONE:
        return !is_dense(m, layer) && !b->fused;
    case SPARSE_FUSED:
        return !is_dense(m, layer) && b->fused;
    case SHARED:
        return !is_dense(m, layer) && m->spec.shared_ffn;
    }
    BUG("when %d", (int)when);
}

static int64_t dim_of(const struct hf_model *m, enum hf_dim d)
{
    const struct spec *s = &m->spec;
    const int64_t size[D_COUNT] = {
        [D_ONE] = 1,
        [D_HIDDEN] = s->hidden,
        [D_VOCAB] = s->vocab,
        [D_POSITIONS] = s->max_positions,
        [D_QUERIES] = s->heads * s->head_dim,
        [D_KEYS] = s->kv_heads * s->head_dim,
        [D_HEAD] = s->head_dim,
        [D_FFN] = s->ffn,
        [D_EXPERTS] = m->spec.experts,
        [D_EXPERT_FFN] = m->spec.expert_ffn,
        [D_SHARED_FFN] = m->spec.shared_ffn,
    };
    return size[d];
}

/* A pattern with its numbers put in. */
static const char *name_of(struct arena *a, const char *pattern, int64_t layer, int64_t expert)
{
    struct buf b = {0};
    for (const char *p = pattern; *p; p++) {
        if (*p == '{') {
            buf_addf(&b, "%lld", (long long)(p[1] == 'l' ? layer : expert));
            p += 2;
        } else {
            buf_addc(&b, *p);
        }
    }
    char *name = arena_strndup(a, b.data, b.len);
    buf_finish(&b);
    return name;
}

/* Memory for one more, doubled when it is full. */
static void *more(void *p, size_t n, size_t *cap, size_t size)
{
    if (n < *cap)
        return p;
    *cap = *cap ? 2 * *cap : 64;
    return mem_grow(p, *cap, size);
}

static void add_link(struct build *b, struct hf_link l)
{
    struct hf_map *m = b->map;
    m->link = more(m->link, m->links, &b->links, sizeof(*m->link));
    m->link[m->links++] = l;
}

/* The rows (of a transposed tensor columns) that are taken so far: where the next go. */
static void add_links(struct build *b, const struct hf_row *r, size_t stacked, int64_t *at)
{
    struct hf_map *m = b->map;
    struct hf_tensor *t = &m->tensor[m->tensors - 1];
    const struct hf_global *g = &m->global[m->globals - 1];
    struct hf_link l = {.tensor = m->tensors - 1,
                        .global = m->globals - 1,
                        .count = {g->size[0], g->size[1]},
                        .transposed = r->lie == COLS};
    if (r->lie == HEADS) { /* as many parts as heads */
        int64_t d = b->model->spec.head_dim, k = *at / g->size[0];
        l.count[0] = d;
        for (int64_t head = 0; head < g->size[0] / d; head++) {
            l.at[0] = head * d;
            l.from[0] = (head * (int64_t)stacked + k) * d;
            add_link(b, l);
        }
    } else {
        l.from[r->lie == COLS] = *at;
        add_link(b, l);
    }
    *at += g->size[0];
    if (r->lie == COLS)
        t->size[1] = *at;
    else if (r->lie != STACK3)
        t->size[0] = *at;
}

static void add_tensor(struct build *b, const struct hf_row *r, int64_t layer, int64_t expert)
{
    struct hf_map *m = b->map;
    int64_t cols = dim_of(b->model, r->cols);
    struct hf_tensor t = {.name = name_of(&m->arena, r->foreign, layer, expert)};
    t.rank = r->lie == STACK3 ? 3 : r->cols == D_ONE ? 1 : 2;
    if (r->lie == COLS)
        t.size[0] = cols;
    else if (r->lie == STACK3)
        t.size[0] = b->model->spec.experts, t.size[2] = cols;
    else
        t.size[1] = cols;
    m->tensor = more(m->tensor, m->tensors, &b->tensors, sizeof(*m->tensor));
    m->tensor[m->tensors++] = t;
}

static void add_global(struct build *b, const struct hf_row *r, int64_t layer, int64_t expert)
{
    struct hf_map *m = b->map;
    m->global = more(m->global, m->globals, &b->globals, sizeof(*m->global));
    m->global[m->globals++] =
        (struct hf_global){.name = name_of(&m->arena, r->global, layer, expert),
                           .rank = r->cols == D_ONE ? 1 : 2,
                           .size = {dim_of(b->model, r->rows), dim_of(b->model, r->cols)}};
}

/* Rows with one foreign name, for one layer and one expert, or all where one tensor has them. */
static void add_rows(struct build *b, const struct hf_row *r, size_t n, int64_t layer,
                     int64_t expert)
{
    bool all = r->lie == STACK3;
    int64_t experts = b->model->spec.experts, at = 0;
    add_tensor(b, r, layer, expert);
    for (int64_t e = all ? 0 : expert; e < (all ? experts : expert + 1); e++)
        for (size_t i = 0; i < n; i++) {
            add_global(b, &r[i], layer, e);
            add_links(b, &r[i], n, &at);
        }
    if (all)
        b->map->tensor[b->map->tensors - 1].size[1] = at / experts;
}

static bool is_layered(const struct hf_row *r)
{
    return strstr(r->foreign, "{l}") != NULL;
}

static bool is_per_expert(const struct hf_row *r)
{
    return strstr(r->foreign, "{e}") != NULL;
}

/* How many rows from i on have its foreign name. */
static size_t same_name(const struct hf_family_row *f, size_t i)
{
    size_t j = i + 1;
    while (j < f->rows && !strcmp(f->row[j].foreign, f->row[i].foreign))
        j++;
    return j - i;
}

/* The rows [i, end) for one layer. */
static void add_layer(struct build *b, const struct hf_family_row *f, size_t i, size_t end,
                      int64_t layer)
{
    for (size_t n; i < end; i += n) {
        const struct hf_row *r = &f->row[i];
        n = same_name(f, i);
        if (is_per_expert(r)) /* all tensors of an expert, then those of the next */
            while (i + n < end && is_per_expert(&r[n]))
                n++;
        if (!row_holds(b, r->when, layer))
            continue;
        if (!is_per_expert(r))
            add_rows(b, r, n, layer, 0);
        else
            for (int64_t e = 0; e < b->model->spec.experts; e++)
                for (size_t k = 0; k < n; k++)
                    add_rows(b, &r[k], 1, layer, e);
    }
}

void hf_map_build(struct hf_map *ret, const struct hf_model *m, enum hf_experts experts)
{
    struct build b = {.map = ret, .model = m, .fused = experts == HF_EXPERTS_FUSED};
    const struct hf_family_row *f = hf_families[m->family];
    *ret = (struct hf_map){0};
    for (size_t i = 0, end; i < f->rows; i = end) {
        int64_t layers = is_layered(&f->row[i]) ? m->spec.layers : 1;
        for (end = i; end < f->rows && is_layered(&f->row[end]) == is_layered(&f->row[i]);)
            end++;
        for (int64_t layer = 0; layer < layers; layer++)
            add_layer(&b, f, i, end, layer);
    }
}

void hf_map_finish(struct hf_map *m)
{
    free(m->tensor);
    free(m->global);
    free(m->link);
    arena_finish(&m->arena);
    *m = (struct hf_map){0};
}

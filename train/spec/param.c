/* SPDX-License-Identifier: Apache-2.0 */
#include "train/spec/param.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/bytes.h"
#include "base/core/mem.h"
#include "base/core/rng.h"
#include "train/layout/layout.h"

/* ---- the table ----------------------------------------------------------------------------- */

enum dim { DIM_ONE, DIM_HIDDEN, DIM_VOCAB, DIM_POSITIONS, DIM_QUERIES, DIM_KEYS, DIM_FFN, DIMS };

/* When a model has the row. */
enum when {
    ALWAYS,
    LEARNED,
    LAYERNORM,
    BIAS,
    QKV_BIAS,
    PLAIN,
    PLAIN_BIAS,
    GATED,
    GATED_BIAS,
    UNTIED
};

struct row {
    enum param_kind kind;
    enum when when;
    bool layered;
    enum param_split split;
    enum param_init init;
    enum dim cols; /* DIM_ONE: rank 1 */
    struct {
        const char *name;
        enum dim rows;
    } source[3];
};

enum { ONCE = false, LAYER = true };

/* clang-format off */
static const struct row rows[] = {
    {PARAM_EMBED,    ALWAYS,     ONCE,  SPLIT_ROWS, INIT_NORMAL,     DIM_HIDDEN,
        {{"embed.weight", DIM_VOCAB}}},
    {PARAM_POSITION, LEARNED,    ONCE,  SPLIT_NONE, INIT_NORMAL,     DIM_HIDDEN,
        {{"position.weight", DIM_POSITIONS}}},

    {PARAM_NORM1,    ALWAYS,     LAYER, SPLIT_NONE, INIT_ONE,        DIM_ONE,
        {{"attn_norm.weight", DIM_HIDDEN}}},
    {PARAM_NORM1_B,  LAYERNORM,  LAYER, SPLIT_NONE, INIT_ZERO,       DIM_ONE,
        {{"attn_norm.bias", DIM_HIDDEN}}},
    {PARAM_QKV,      ALWAYS,     LAYER, SPLIT_ROWS, INIT_NORMAL,     DIM_HIDDEN,
        {{"attn.q.weight", DIM_QUERIES}, {"attn.k.weight", DIM_KEYS}, {"attn.v.weight", DIM_KEYS}}},
    {PARAM_QKV_B,    QKV_BIAS,   LAYER, SPLIT_ROWS, INIT_ZERO,       DIM_ONE,
        {{"attn.q.bias", DIM_QUERIES}, {"attn.k.bias", DIM_KEYS}, {"attn.v.bias", DIM_KEYS}}},
    {PARAM_OUT,      ALWAYS,     LAYER, SPLIT_COLS, INIT_NORMAL_OUT, DIM_QUERIES,
        {{"attn.out.weight", DIM_HIDDEN}}},
    {PARAM_OUT_B,    BIAS,       LAYER, SPLIT_NONE, INIT_ZERO,       DIM_ONE,
        {{"attn.out.bias", DIM_HIDDEN}}},
    {PARAM_NORM2,    ALWAYS,     LAYER, SPLIT_NONE, INIT_ONE,        DIM_ONE,
        {{"mlp_norm.weight", DIM_HIDDEN}}},
    {PARAM_NORM2_B,  LAYERNORM,  LAYER, SPLIT_NONE, INIT_ZERO,       DIM_ONE,
        {{"mlp_norm.bias", DIM_HIDDEN}}},
    {PARAM_UP,       PLAIN,      LAYER, SPLIT_ROWS, INIT_NORMAL,     DIM_HIDDEN,
        {{"mlp.up.weight", DIM_FFN}}},
    {PARAM_UP,       GATED,      LAYER, SPLIT_ROWS, INIT_NORMAL,     DIM_HIDDEN,
        {{"mlp.gate.weight", DIM_FFN}, {"mlp.up.weight", DIM_FFN}}},
    {PARAM_UP_B,     PLAIN_BIAS, LAYER, SPLIT_ROWS, INIT_ZERO,       DIM_ONE,
        {{"mlp.up.bias", DIM_FFN}}},
    {PARAM_UP_B,     GATED_BIAS, LAYER, SPLIT_ROWS, INIT_ZERO,       DIM_ONE,
        {{"mlp.gate.bias", DIM_FFN}, {"mlp.up.bias", DIM_FFN}}},
    {PARAM_DOWN,     ALWAYS,     LAYER, SPLIT_COLS, INIT_NORMAL_OUT, DIM_FFN,
        {{"mlp.down.weight", DIM_HIDDEN}}},
    {PARAM_DOWN_B,   BIAS,       LAYER, SPLIT_NONE, INIT_ZERO,       DIM_ONE,
        {{"mlp.down.bias", DIM_HIDDEN}}},

    {PARAM_NORM,     ALWAYS,     ONCE,  SPLIT_NONE, INIT_ONE,        DIM_ONE,
        {{"norm.weight", DIM_HIDDEN}}},
    {PARAM_NORM_B,   LAYERNORM,  ONCE,  SPLIT_NONE, INIT_ZERO,       DIM_ONE,
        {{"norm.bias", DIM_HIDDEN}}},
    {PARAM_HEAD,     UNTIED,     ONCE,  SPLIT_ROWS, INIT_NORMAL,     DIM_HIDDEN,
        {{"head.weight", DIM_VOCAB}}},
};
/* clang-format on */

enum { ROWS = sizeof(rows) / sizeof(rows[0]) };

static bool has(const struct spec *s, enum when w)
{
    bool gated = s->act == SPEC_SWIGLU;
    switch (w) {
    case ALWAYS:
        return true;
    case LEARNED:
        return s->position == SPEC_LEARNED;
    case LAYERNORM:
        return s->norm == SPEC_LAYERNORM;
    case BIAS:
        return s->bias;
    case QKV_BIAS:
        return s->bias || s->qkv_bias;
    case PLAIN:
        return !gated;
    case PLAIN_BIAS:
        return !gated && s->bias;
    case GATED:
        return gated;
    case GATED_BIAS:
        return gated && s->bias;
    case UNTIED:
        return !s->tied;
    }
    BUG("when %d", (int)w);
}

static int64_t dim_size(const struct spec *s, enum dim d)
{
    const int64_t size[DIMS] = {
        [DIM_ONE] = 1,
        [DIM_HIDDEN] = s->hidden,
        [DIM_VOCAB] = s->vocab,
        [DIM_POSITIONS] = s->max_positions,
        [DIM_QUERIES] = s->heads * s->head_dim,
        [DIM_KEYS] = s->kv_heads * s->head_dim,
        [DIM_FFN] = s->ffn,
    };
    return size[d];
}

int64_t spec_parameters(const struct spec *s)
{
    int64_t sum = 0;
    for (int i = 0; i < ROWS; i++) {
        const struct row *r = &rows[i];
        if (!has(s, r->when))
            continue;
        for (int k = 0; k < 3 && r->source[k].name; k++)
            sum += dim_size(s, r->source[k].rows) * dim_size(s, r->cols) *
                   (r->layered ? s->layers : 1);
    }
    return sum;
}

/* ---- one rank's share ---------------------------------------------------------------------- */

/* A rank's range of a dimension that is cut over TP. */
struct share {
    int64_t begin, count; /* of real elements */
    int64_t room;         /* rows that it takes in memory, padding included */
    int shared;           /* ranks that hold the same range */
    bool first;           /* the first of them */
};

static struct share param_cut(const struct spec *s, enum dim d, int tp, int at)
{
    int64_t n = dim_size(s, d);
    struct share c = {.begin = n / tp * at, .count = n / tp, .shared = 1, .first = true};
    if (d == DIM_VOCAB) {
        int64_t part = s->padded_vocab / tp, left = n - part * at;
        c.begin = left > 0 ? part * at : n;
        c.count = left > part ? part : left > 0 ? left : 0;
        c.room = part;
        return c;
    }
    if (d == DIM_KEYS && s->kv_heads < tp) {
        c.shared = (int)(tp / s->kv_heads);
        c.begin = at / c.shared * s->head_dim;
        c.count = s->head_dim;
        c.first = at % c.shared == 0;
    }
    c.room = c.count;
    return c;
}

static void add_source(struct param *p, const struct row *r, int k, const struct spec *s,
                       struct mesh m, struct coord at)
{
    enum dim rows_dim = r->source[k].rows;
    struct share whole[2] = {{.count = dim_size(s, rows_dim), .shared = 1},
                             {.count = dim_size(s, r->cols), .shared = 1}};
    for (int d = 0; d < 2; d++) {
        whole[d].room = whole[d].count;
        whole[d].first = at.tp == 0; /* not cut: every TP rank holds it */
    }
    struct share c[2] = {whole[0], whole[1]};
    if (r->split == SPLIT_ROWS) {
        c[0] = param_cut(s, rows_dim, m.tp, at.tp);
        c[1].first = true;
    } else if (r->split == SPLIT_COLS) {
        c[1] = param_cut(s, r->cols, m.tp, at.tp);
        c[0].first = true;
    }
    int64_t row = p->size[0];
    p->size[0] += c[0].room;
    p->size[1] = c[1].room;
    if (!c[0].count || !c[1].count)
        return; /* nothing but padding here */
    struct param_source *src = &p->source[p->sources++];
    *src = (struct param_source){.rank = p->rank,
                                 .row = row,
                                 .shared = c[0].shared,
                                 .owner = c[0].first && c[1].first && at.dp == 0 && at.cp == 0};
    int n = p->layer < 0 ? snprintf(src->name, sizeof(src->name), "%s", r->source[k].name)
                         : snprintf(src->name, sizeof(src->name), "layers.%d.%s", p->layer,
                                    r->source[k].name);
    BUG_ON(n >= (int)sizeof(src->name), "name of %d bytes", n);
    for (int d = 0; d < 2; d++) {
        src->size[d] = whole[d].count;
        src->begin[d] = c[d].begin;
        src->count[d] = c[d].count;
    }
    if (c[0].shared > 1)
        p->partial |= 1u << GROUP_TP;
}

static void add_param(struct params *ps, const struct row *r, int layer, struct mesh m,
                      struct coord at)
{
    const struct spec *s = &ps->spec;
    struct param *p = &ps->at[ps->n];
    *p = (struct param){.kind = r->kind,
                        .layer = layer,
                        .rank = r->cols == DIM_ONE ? 1 : 2,
                        .split = r->split,
                        .init = r->init,
                        .trained = true,
                        .offset = ps->elements};
    p->decay = p->rank == 2;
    p->partial = m.dp * m.cp > 1 ? 1u << GROUP_DP_CP : 0;
    p->std = r->init == INIT_NORMAL       ? s->init_std
             : r->init == INIT_NORMAL_OUT ? s->init_std / sqrt(2.0 * (double)s->layers)
                                          : 0;
    for (int k = 0; k < 3 && r->source[k].name; k++)
        add_source(p, r, k, s, m, at);
    p->count = p->size[0] * p->size[1];
    ps->elements += (int64_t)align_up((uint64_t)p->count, 64);
    if (ps->index[r->kind] < 0)
        ps->index[r->kind] = ps->n;
    ps->n++;
}

/* Whether the mesh can cut the model: the rules that concern parameters alone. */
static int check_mesh(const struct spec *s, struct mesh m, struct err *e)
{
    const struct layout_model model = {.layers = s->layers,
                                       .heads = s->heads,
                                       .kv_heads = s->kv_heads,
                                       .ffn = s->ffn,
                                       .padded_vocab = s->padded_vocab};
    if (m.pp != 1)
        return err_set(e, ERR_USAGE,
                       "pipeline-model-parallel-size is %d: this weft runs a model "
                       "in one stage",
                       m.pp);
    return layout_check(&model, &(struct layout){.mesh = m, .chunks = 1}, mesh_world(m), e);
}

int params_build(struct params *ret, const struct spec *spec, struct mesh mesh, int rank,
                 struct err *e)
{
    int code = check_mesh(spec, mesh, e);
    if (code)
        return code;
    struct params ps = {.spec = *spec, .parameters = spec_parameters(spec)};
    struct coord at = mesh_coord(mesh, rank);
    for (int k = 0; k < PARAM_KINDS; k++)
        ps.index[k] = -1;
    ps.at = mem_new((size_t)(spec->layers + 1) * ROWS, sizeof(*ps.at));
    int first = 0;
    while (!rows[first].layered)
        first++;
    int last = first;
    while (last < ROWS && rows[last].layered)
        last++;
    for (int i = 0; i < first; i++)
        if (has(spec, rows[i].when))
            add_param(&ps, &rows[i], -1, mesh, at);
    for (int layer = 0; layer < spec->layers; layer++) {
        int before = ps.n;
        for (int i = first; i < last; i++)
            if (has(spec, rows[i].when))
                add_param(&ps, &rows[i], layer, mesh, at);
        ps.stride = ps.n - before;
    }
    for (int i = last; i < ROWS; i++)
        if (has(spec, rows[i].when))
            add_param(&ps, &rows[i], -1, mesh, at);
    *ret = ps;
    return 0;
}

void params_finish(struct params *p)
{
    free(p->at);
    *p = (struct params){0};
}

const struct param *params_find(const struct params *p, enum param_kind kind, int layer)
{
    int i = p->index[kind];
    if (i < 0)
        return NULL;
    BUG_ON(layer >= p->spec.layers || (layer < 0) != (p->at[i].layer < 0), "kind %d of layer %d",
           (int)kind, layer);
    return &p->at[layer < 0 ? i : i + layer * p->stride];
}

/* ---- initial values ------------------------------------------------------------------------ */

/* FNV-1a: the stream of a tensor is its name, on every layout and for ever. */
static uint32_t name_stream(const char *name)
{
    uint32_t h = 2166136261u;
    for (; *name; name++)
        h = (h ^ (unsigned char)*name) * 16777619u;
    return h;
}

static void init_row(const struct param *p, const struct param_source *s, uint64_t seed,
                     int64_t row, float *to)
{
    uint64_t index = (uint64_t)((s->begin[0] + row) * s->size[1] + s->begin[1]);
    rng_normal(seed, RNG_INIT, name_stream(s->name), index, (uint64_t)s->count[1], to);
    for (int64_t i = 0; i < s->count[1]; i++)
        to[i] = (float)((double)to[i] * p->std);
}

void param_init_rows(const struct param *p, uint64_t seed, int64_t begin, int64_t n, float *to)
{
    BUG_ON(begin < 0 || n < 0 || begin + n > p->size[0], "rows %lld to %lld of %lld",
           (long long)begin, (long long)(begin + n), (long long)p->size[0]);
    for (int64_t i = 0; i < n * p->size[1]; i++)
        to[i] = p->init == INIT_ONE ? 1.0f : 0.0f;
    if (p->init == INIT_ONE || p->init == INIT_ZERO)
        return;
    for (int k = 0; k < p->sources; k++) {
        const struct param_source *s = &p->source[k];
        for (int64_t r = 0; r < s->count[0]; r++)
            if (s->row + r >= begin && s->row + r < begin + n)
                init_row(p, s, seed, r, to + (s->row + r - begin) * p->size[1]);
    }
}

void param_init_values(const struct param *p, uint64_t seed, float *to)
{
    param_init_rows(p, seed, 0, p->size[0], to);
}

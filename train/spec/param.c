/* SPDX-License-Identifier: Apache-2.0 */
#include "train/spec/param.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/bytes.h"
#include "base/core/fault.h"
#include "base/core/mem.h"
#include "base/core/rng.h"

/* ---- the table ----------------------------------------------------------------------------- */

enum dim {
    DIM_ONE,
    DIM_HIDDEN,
    DIM_VOCAB,
    DIM_POSITIONS,
    DIM_QUERIES,
    DIM_KEYS,
    DIM_HEAD,
    DIM_FFN,
    DIM_EXPERTS,
    DIM_EXPERT_FFN,
    DIM_SHARED_FFN,
    DIMS
};

enum { SOURCES = PARAM_SOURCES, ALIGN = 64 /* elements */ };

/* When a model has the row. */
enum when {
    ALWAYS,
    LEARNED,
    LAYERNORM,
    BIAS,
    QKV_BIAS,
    QK_NORM,
    POST_NORM,
    PLAIN,
    PLAIN_BIAS,
    DENSE,
    DENSE_BIAS,
    MIXTURE,
    SHARED,
    SHARED_GATE,
    GATED,
    GATED_BIAS,
    UNTIED
};

/* What of a gradient a tensor-parallel rank has, where none has a part of the parameter. */
enum tokens {
    WHOLE,
    TOKENS, /* added to or multiplied with the residual stream, token by token */
    PARTIAL /* a part of a sum, as what flows back through a product that is cut is */
};

struct row {
    enum param_kind kind;
    enum when when;
    bool layered;
    enum tokens tokens;
    enum param_split split;
    enum param_init init;
    enum dim cols; /* DIM_ONE: rank 1 */
    struct {
        const char *name;
        enum dim rows;
    } source[SOURCES];
};

enum { ONCE = false, LAYER = true };
#define EXPERT "mlp.experts.%d."

/* clang-format off */
static const struct row rows[] = {
    {PARAM_EMBED,    ALWAYS,     ONCE,  WHOLE,  SPLIT_ROWS, INIT_NORMAL,     DIM_HIDDEN,
        {{"embed.weight", DIM_VOCAB}}},
    {PARAM_POSITION, LEARNED,    ONCE,  WHOLE,  SPLIT_NONE, INIT_NORMAL,     DIM_HIDDEN,
        {{"position.weight", DIM_POSITIONS}}},

    {PARAM_NORM1,    ALWAYS,     LAYER, TOKENS, SPLIT_NONE, INIT_ONE,        DIM_ONE,
        {{"attn_norm.weight", DIM_HIDDEN}}},
    {PARAM_NORM1_B,  LAYERNORM,  LAYER, TOKENS, SPLIT_NONE, INIT_ZERO,       DIM_ONE,
        {{"attn_norm.bias", DIM_HIDDEN}}},
    {PARAM_QKV,      ALWAYS,     LAYER, WHOLE,  SPLIT_ROWS, INIT_NORMAL,     DIM_HIDDEN,
        {{"attn.q.weight", DIM_QUERIES}, {"attn.k.weight", DIM_KEYS}, {"attn.v.weight", DIM_KEYS}}},
    {PARAM_QKV_B,    QKV_BIAS,   LAYER, WHOLE,  SPLIT_ROWS, INIT_ZERO,       DIM_ONE,
        {{"attn.q.bias", DIM_QUERIES}, {"attn.k.bias", DIM_KEYS}, {"attn.v.bias", DIM_KEYS}}},
    {PARAM_Q_NORM,   QK_NORM,    LAYER, PARTIAL, SPLIT_NONE, INIT_ONE,       DIM_ONE,
        {{"attn.q_norm.weight", DIM_HEAD}}},
    {PARAM_K_NORM,   QK_NORM,    LAYER, PARTIAL, SPLIT_NONE, INIT_ONE,       DIM_ONE,
        {{"attn.k_norm.weight", DIM_HEAD}}},
    {PARAM_OUT,      ALWAYS,     LAYER, WHOLE,  SPLIT_COLS, INIT_NORMAL_OUT, DIM_QUERIES,
        {{"attn.out.weight", DIM_HIDDEN}}},
    {PARAM_OUT_B,    BIAS,       LAYER, TOKENS, SPLIT_NONE, INIT_ZERO,       DIM_ONE,
        {{"attn.out.bias", DIM_HIDDEN}}},
    {PARAM_POST1,    POST_NORM,  LAYER, TOKENS, SPLIT_NONE, INIT_ONE,        DIM_ONE,
        {{"attn_post_norm.weight", DIM_HIDDEN}}},
    {PARAM_NORM2,    ALWAYS,     LAYER, TOKENS, SPLIT_NONE, INIT_ONE,        DIM_ONE,
        {{"mlp_norm.weight", DIM_HIDDEN}}},
    {PARAM_NORM2_B,  LAYERNORM,  LAYER, TOKENS, SPLIT_NONE, INIT_ZERO,       DIM_ONE,
        {{"mlp_norm.bias", DIM_HIDDEN}}},
    {PARAM_UP,       PLAIN,      LAYER, WHOLE,  SPLIT_ROWS, INIT_NORMAL,     DIM_HIDDEN,
        {{"mlp.up.weight", DIM_FFN}}},
    {PARAM_UP,       GATED,      LAYER, WHOLE,  SPLIT_ROWS, INIT_NORMAL,     DIM_HIDDEN,
        {{"mlp.gate.weight", DIM_FFN}, {"mlp.up.weight", DIM_FFN}}},
    {PARAM_UP_B,     PLAIN_BIAS, LAYER, WHOLE,  SPLIT_ROWS, INIT_ZERO,       DIM_ONE,
        {{"mlp.up.bias", DIM_FFN}}},
    {PARAM_UP_B,     GATED_BIAS, LAYER, WHOLE,  SPLIT_ROWS, INIT_ZERO,       DIM_ONE,
        {{"mlp.gate.bias", DIM_FFN}, {"mlp.up.bias", DIM_FFN}}},
    {PARAM_DOWN,     DENSE,      LAYER, WHOLE,  SPLIT_COLS, INIT_NORMAL_OUT, DIM_FFN,
        {{"mlp.down.weight", DIM_HIDDEN}}},
    {PARAM_DOWN_B,   DENSE_BIAS, LAYER, TOKENS, SPLIT_NONE, INIT_ZERO,       DIM_ONE,
        {{"mlp.down.bias", DIM_HIDDEN}}},
    {PARAM_POST2,    POST_NORM,  LAYER, TOKENS, SPLIT_NONE, INIT_ONE,        DIM_ONE,
        {{"mlp_post_norm.weight", DIM_HIDDEN}}},

    {PARAM_ROUTER,      MIXTURE, LAYER, PARTIAL, SPLIT_NONE, INIT_NORMAL,    DIM_HIDDEN,
        {{"mlp.router.weight", DIM_EXPERTS}}},
    {PARAM_SHARED_UP,   SHARED,  LAYER, WHOLE, SPLIT_ROWS, INIT_NORMAL,      DIM_HIDDEN,
        {{"mlp.shared.gate.weight", DIM_SHARED_FFN}, {"mlp.shared.up.weight", DIM_SHARED_FFN}}},
    {PARAM_SHARED_DOWN, SHARED,  LAYER, WHOLE, SPLIT_COLS, INIT_NORMAL_OUT,  DIM_SHARED_FFN,
        {{"mlp.shared.down.weight", DIM_HIDDEN}}},
    {PARAM_SHARED_GATE, SHARED_GATE, LAYER, PARTIAL, SPLIT_NONE, INIT_NORMAL, DIM_HIDDEN,
        {{"mlp.shared_gate.weight", DIM_ONE}}},
    {PARAM_EXPERT_UP,   MIXTURE, LAYER, WHOLE, SPLIT_ROWS, INIT_NORMAL,      DIM_HIDDEN,
        {{EXPERT "gate.weight", DIM_EXPERT_FFN}, {EXPERT "up.weight", DIM_EXPERT_FFN}}},
    {PARAM_EXPERT_DOWN, MIXTURE, LAYER, WHOLE, SPLIT_COLS, INIT_NORMAL_OUT,  DIM_EXPERT_FFN,
        {{EXPERT "down.weight", DIM_HIDDEN}}},

    {PARAM_NORM,     ALWAYS,     ONCE,  TOKENS, SPLIT_NONE, INIT_ONE,        DIM_ONE,
        {{"norm.weight", DIM_HIDDEN}}},
    {PARAM_NORM_B,   LAYERNORM,  ONCE,  TOKENS, SPLIT_NONE, INIT_ZERO,       DIM_ONE,
        {{"norm.bias", DIM_HIDDEN}}},
    {PARAM_HEAD,     UNTIED,     ONCE,  WHOLE,  SPLIT_ROWS, INIT_NORMAL,     DIM_HIDDEN,
        {{"head.weight", DIM_VOCAB}}},
};
/* clang-format on */

enum { ROWS = sizeof(rows) / sizeof(rows[0]) };

/* layer: of rows that belong to one. */
static bool has(const struct spec *s, enum when w, int64_t layer)
{
    bool gated = spec_gated(s), dense = layer < 0 || !spec_has_experts(s, layer);
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
    case QK_NORM:
        return s->qk_norm;
    case POST_NORM:
        return s->post_norm;
    case DENSE:
        return dense;
    case DENSE_BIAS:
        return dense && s->bias;
    case MIXTURE:
        return !dense;
    case SHARED:
        return !dense && s->shared_ffn;
    case SHARED_GATE:
        return !dense && s->shared_gate;
    case PLAIN:
        return dense && !gated;
    case PLAIN_BIAS:
        return dense && !gated && s->bias;
    case GATED:
        return dense && gated;
    case GATED_BIAS:
        return dense && gated && s->bias;
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
        [DIM_HEAD] = s->head_dim,
        [DIM_FFN] = s->ffn,
        [DIM_EXPERTS] = s->experts,
        [DIM_EXPERT_FFN] = s->expert_ffn,
        [DIM_SHARED_FFN] = s->shared_ffn,
    };
    return size[d];
}

static bool of_experts(const struct row *r)
{
    return r->kind == PARAM_EXPERT_UP || r->kind == PARAM_EXPERT_DOWN;
}

/* How many layers have the row; of one that belongs to none, 1 or 0. */
static int64_t layers_with(const struct spec *s, const struct row *r)
{
    int64_t n = 0;
    if (!r->layered)
        return has(s, r->when, -1);
    for (int64_t l = 0; l < s->layers; l++)
        n += has(s, r->when, l);
    return n;
}

int64_t spec_parameters(const struct spec *s)
{
    int64_t sum = 0;
    for (int i = 0; i < ROWS; i++) {
        const struct row *r = &rows[i];
        int64_t n = layers_with(s, r) * (of_experts(r) ? s->experts : 1);
        for (int k = 0; k < SOURCES && r->source[k].name; k++)
            sum += dim_size(s, r->source[k].rows) * dim_size(s, r->cols) * n;
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

/* Where a rank stands. */
struct spot {
    const struct layout *layout;
    struct coord at;
    int expert;  /* -1: of none */
    bool copied; /* the tied end's second copy of the embedding */
};

static void name_source(struct param_source *s, const struct param *p, const char *pattern)
{
    int n = 0, size = (int)sizeof(s->name);
    if (p->layer >= 0)
        n = snprintf(s->name, sizeof(s->name), "layers.%d.", p->layer);
    if (p->expert >= 0) {
        n += snprintf(s->name + n, sizeof(s->name) - (size_t)n, "mlp.experts.%d.", p->expert);
        pattern += sizeof(EXPERT) - 1;
    }
    n += snprintf(s->name + n, sizeof(s->name) - (size_t)n, "%s", pattern);
    BUG_ON(n >= size, "name of %d bytes", n);
}

static void add_source(struct param *p, const struct row *r, int k, const struct spec *s,
                       const struct spot *o)
{
    enum dim rows_dim = r->source[k].rows;
    struct share c[2] = {{.count = dim_size(s, rows_dim), .shared = 1},
                         {.count = dim_size(s, r->cols), .shared = 1}};
    const int64_t whole[2] = {c[0].count, c[1].count};
    int ways = o->expert < 0 ? o->layout->mesh.tp : o->layout->mesh.etp;
    int at = o->expert < 0 ? o->at.tp : o->at.etp;
    for (int d = 0; d < 2; d++) {
        c[d].room = c[d].count;
        c[d].first = o->at.tp == 0; /* not cut: every TP rank holds it */
    }
    if (r->split == SPLIT_ROWS) {
        c[0] = param_cut(s, rows_dim, ways, at);
        c[1].first = true;
    } else if (r->split == SPLIT_COLS) {
        c[1] = param_cut(s, r->cols, ways, at);
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
                                 .counts = c[0].first && c[1].first && !o->copied};
    src->saves = src->counts && o->at.dp == 0 && o->at.cp == 0;
    if (o->expert >= 0 && mesh_spreads_experts(o->layout->mesh))
        src->saves = o->at.edp == 0;
    if (FAULT("norm_of_copies"))
        src->counts = !o->copied;
    name_source(src, p, r->source[k].name);
    for (int d = 0; d < 2; d++) {
        src->size[d] = whole[d];
        src->begin[d] = c[d].begin;
        src->count[d] = c[d].count;
    }
    if (c[0].shared > 1)
        p->summed |= 1u << GROUP_TP;
}

static void add_param(struct params *ps, const struct row *r, int layer, const struct spot *o)
{
    const struct spec *s = &ps->spec;
    const struct mesh *m = &o->layout->mesh;
    struct param *p = &ps->at[ps->n];
    *p = (struct param){.kind = r->kind,
                        .layer = layer,
                        .rank = r->cols == DIM_ONE ? 1 : 2,
                        .expert = o->expert,
                        .split = r->split,
                        .tokens = r->tokens != WHOLE,
                        .init = r->init == INIT_ONE && s->zero_centered ? INIT_ZERO : r->init,
                        .trained = true,
                        .offset = ps->elements};
    p->decay = p->rank == 2;
    p->summed = m->dp * m->cp > 1 ? 1u << GROUP_DP_CP : 0;
    if ((r->tokens == TOKENS && o->layout->sequence) || (r->tokens == PARTIAL && m->tp > 1))
        p->summed |= 1u << GROUP_TP;
    if (r->kind == PARAM_EMBED && s->tied && m->pp > 1)
        p->summed |= 1u << GROUP_ENDS;
    p->std = r->init == INIT_NORMAL       ? s->init_std
             : r->init == INIT_NORMAL_OUT ? s->init_std / sqrt(2.0 * (double)s->layers)
                                          : 0;
    for (int k = 0; k < SOURCES && r->source[k].name; k++)
        add_source(p, r, k, s, o);
    p->count = p->size[0] * p->size[1];
    ps->elements += (int64_t)align_up((uint64_t)p->count, ALIGN);
    if (layer >= 0 && ps->first_of[layer] < 0)
        ps->first_of[layer] = ps->n;
    if (layer >= 0 && o->expert >= 0 && ps->experts_of[layer] < 0)
        ps->experts_of[layer] = ps->n;
    ps->n++;
}

/* Whether the layout can cut the model: the rules that concern parameters alone. */
static int check_layout(const struct spec *s, struct layout l, struct err *e)
{
    const struct layout_model model = spec_layout_model(s);
    return layout_check(&model, &l, mesh_world(l.mesh), e);
}

/* Under ZeRO 2 and 3 a unit (embedding, layer, head) is shared out by itself: see
 * train/zero/split.h. */
static int64_t shared_align(struct layout l)
{
    return ALIGN * (int64_t)(l.zero ? mesh_group_size(l.mesh, GROUP_SHARD) : 1);
}

static void begin_unit(struct params *ps, const struct spot *o)
{
    if (o->layout->zero > 1)
        ps->elements =
            (int64_t)align_up((uint64_t)ps->elements, (uint64_t)shared_align(*o->layout));
}

/* Rows of the table from `from` on that are alike in belonging to a layer; returns the next. */
static int add_rows(struct params *ps, int from, int layer, const struct spot *o)
{
    struct spot one = *o;
    int i = from;
    begin_unit(ps, o);
    for (; i < ROWS && rows[i].layered == (layer >= 0); i++)
        if (has(&ps->spec, rows[i].when, layer) && !of_experts(&rows[i]))
            add_param(ps, &rows[i], layer, o);
        else if (has(&ps->spec, rows[i].when, layer) && !mesh_spreads_experts(o->layout->mesh))
            for (one.expert = 0; one.expert < ps->spec.experts; one.expert++)
                add_param(ps, &rows[i], layer, &one);
    return i;
}

/* Pads the experts' part of the slab to what the ranks with the same experts share out evenly. */
static void pad_experts(struct params *ps, const struct layout *l)
{
    uint64_t each = ALIGN * (uint64_t)(l->zero ? mesh_edp(l->mesh) : 1);
    ps->elements = ps->experts + (int64_t)align_up((uint64_t)(ps->elements - ps->experts), each);
}

/* The experts of this rank where they are spread over ranks, after all other parameters. */
static void add_experts(struct params *ps, struct stage stage, struct spot o)
{
    int n = (int)ps->spec.experts / o.layout->mesh.ep;
    for (int l = stage.first; l < stage.first + stage.layers; l++) {
        if (!spec_has_experts(&ps->spec, l))
            continue;
        if (o.layout->zero > 1) /* a layer's experts are shared out by themselves */
            pad_experts(ps, o.layout);
        for (int i = 0; i < ROWS; i++)
            for (int e = 0; e < n && of_experts(&rows[i]); e++) {
                o.expert = o.at.ep * n + e;
                add_param(ps, &rows[i], l, &o);
            }
    }
}

static void add_stage(struct params *ps, struct stage stage, struct spot o)
{
    int layered = 0, last;
    while (!rows[layered].layered)
        layered++;
    for (last = layered; rows[last].layered;)
        last++;
    if (stage.embed)
        add_rows(ps, 0, -1, &o);
    for (int l = stage.first; l < stage.first + stage.layers; l++)
        add_rows(ps, layered, l, &o);
    if (!stage.head)
        return;
    add_rows(ps, last, -1, &o);
    if (ps->spec.tied && !stage.embed) {
        o.copied = true;
        add_param(ps, &rows[0], -1, &o);
    }
}

/* All of the slab but the sources that other ranks count. */
static void find_counted(struct params *ps)
{
    int64_t begin = 0;
    ps->counted = mem_new((size_t)ps->n * SOURCES + 1, sizeof(*ps->counted));
    for (int i = 0; i < ps->n; i++)
        for (int k = 0; k < ps->at[i].sources; k++) {
            const struct param *p = &ps->at[i];
            const struct param_source *s = &p->source[k];
            int64_t at = p->offset + s->row * p->size[1];
            if (p->offset == ps->experts && begin < at) { /* counted apart */
                ps->counted[ps->ncounted++] = (struct param_run){begin, at};
                begin = at;
            }
            if (s->counts)
                continue;
            if (at > begin)
                ps->counted[ps->ncounted++] = (struct param_run){begin, at};
            begin = at + s->count[0] * p->size[1];
        }
    if (ps->elements > begin)
        ps->counted[ps->ncounted++] = (struct param_run){begin, ps->elements};
}

int params_build(struct params *ret, const struct spec *spec, struct layout layout, int rank,
                 struct err *e)
{
    int code = check_layout(spec, layout, e);
    if (code)
        return code;
    struct params ps = {.spec = *spec, .parameters = spec_parameters(spec)};
    struct spot o = {.layout = &layout, .at = mesh_coord(layout.mesh, rank), .expert = -1};
    BUG_ON(rows[0].kind != PARAM_EMBED, "the first row is not the embedding's");
    ps.at =
        mem_new((size_t)(spec->layers + 1) * (size_t)(ROWS + 2 * spec->experts), sizeof(*ps.at));
    ps.first_of = mem_new((size_t)spec->layers, sizeof(*ps.first_of));
    ps.experts_of = mem_new((size_t)spec->layers, sizeof(*ps.experts_of));
    for (int64_t l = 0; l < spec->layers; l++)
        ps.first_of[l] = ps.experts_of[l] = -1;
    for (int chunk = 0; chunk < layout.chunks; chunk++)
        add_stage(&ps, layout_stage(layout, spec->layers, o.at.pp, chunk), o);
    ps.elements = (int64_t)align_up((uint64_t)ps.elements, (uint64_t)shared_align(layout));
    ps.experts = ps.elements;
    for (int chunk = 0; spec->experts && mesh_spreads_experts(layout.mesh) && chunk < layout.chunks;
         chunk++)
        add_experts(&ps, layout_stage(layout, spec->layers, o.at.pp, chunk), o);
    pad_experts(&ps, &layout);
    find_counted(&ps);
    *ret = ps;
    return 0;
}

void params_finish(struct params *p)
{
    free(p->at);
    free(p->counted);
    free(p->first_of);
    free(p->experts_of);
    *p = (struct params){0};
}

const struct param *params_find(const struct params *p, enum param_kind kind, int layer)
{
    BUG_ON(layer >= p->spec.layers, "kind %d of layer %d", (int)kind, layer);
    bool expert = kind == PARAM_EXPERT_UP || kind == PARAM_EXPERT_DOWN;
    int i = layer < 0 ? 0 : expert ? p->experts_of[layer] : p->first_of[layer];
    for (; i >= 0 && i < p->n && (layer < 0 || p->at[i].layer == layer); i++)
        if (p->at[i].kind == kind && p->at[i].layer == layer)
            return &p->at[i];
    return NULL;
}

/* ---- initial values ------------------------------------------------------------------------ */

/* FNV-1a */
uint32_t param_stream(const char *name)
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
    rng_normal(seed, RNG_INIT, param_stream(s->name), index, (uint64_t)s->count[1], to);
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
        int64_t first = begin > s->row ? begin - s->row : 0, end = begin + n - s->row;
        for (int64_t r = first; r < end && r < s->count[0]; r++)
            init_row(p, s, seed, r, to + (s->row + r - begin) * p->size[1]);
    }
}

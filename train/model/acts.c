/* SPDX-License-Identifier: Apache-2.0 */
#include "train/model/model.h"

#include <math.h>
#include <stdlib.h>

#include "base/core/fault.h"
#include "base/core/mem.h"
#include "train/model/context.h"
#include "train/ops/values.h"
#include "train/model/recompute.h"
#include "train/model/shared.h"

static void take_attention(const struct model *m, struct slab *s, struct layer_acts *a)
{
    a->lse = slab_2d(s, m->ops->stat, m->heads, m->tokens);
    a->att = slab_2d(s, m->ops->real, m->tokens, m->heads * m->spec->head_dim);
}

/* What the backward pass of QK norm needs. */
static void take_head_norms(const struct model *m, struct slab *s, struct layer_acts *a)
{
    int64_t n = m->tokens, D = m->spec->head_dim;
    if (!m->spec->qk_norm || m->use != MODEL_TRAIN)
        return;
    a->q_pre = slab_2d(s, m->ops->real, n, m->heads * D);
    a->k_pre = slab_2d(s, m->ops->real, n, m->kv_heads * D);
    a->q_rstd = slab_2d(s, m->ops->stat, n, m->heads);
    a->k_rstd = slab_2d(s, m->ops->stat, n, m->kv_heads);
}

/* What attention and MLP give, where norms of its own follow. */
static void take_outputs(const struct model *m, struct slab *s, struct layer_acts *a)
{
    int64_t rows = stream_count(m, m->tokens);
    if (!m->spec->post_norm)
        return;
    a->out1 = slab_2d(s, m->ops->real, rows, m->spec->hidden);
    a->out_rstd1 = slab_1d(s, m->ops->stat, rows);
    a->out2 = slab_2d(s, m->ops->real, rows, m->spec->hidden);
    a->out_rstd2 = slab_1d(s, m->ops->stat, rows);
}

/* What one layer keeps. `first` has no r1: its residual is the embedding's output. */
static void take_layer(const struct model *m, struct slab *s, struct layer_acts *a, bool first)
{
    enum dtype d = m->ops->real;
    int64_t n = m->tokens, rows = stream_count(m, n), C = m->spec->hidden, D = m->spec->head_dim;
    bool means = m->spec->norm == SPEC_LAYERNORM, glu = spec_gated(m->spec);
    a->r1 = first ? (struct tensor){0} : slab_2d(s, d, rows, C);
    a->y1 = slab_2d(s, d, rows, C);
    a->mean1 = means ? slab_1d(s, m->ops->stat, rows) : (struct tensor){0};
    a->rstd1 = slab_1d(s, m->ops->stat, rows);
    a->qkv = slab_2d(s, d, n, (m->heads + 2 * m->kv_heads) * D);
    take_head_norms(m, s, a);
    take_outputs(m, s, a);
    if (m->use == MODEL_TRAIN && m->recompute.kind == RECOMPUTE_SELECTIVE) {
        a->lse = m->a.shared->lse;
        a->att = m->a.shared->att;
    } else {
        take_attention(m, s, a);
    }
    a->r2 = slab_2d(s, d, rows, C);
    a->y2 = slab_2d(s, d, rows, C);
    a->mean2 = means ? slab_1d(s, m->ops->stat, rows) : (struct tensor){0};
    a->rstd2 = slab_1d(s, m->ops->stat, rows);
    if (m->spec->experts) {
        experts_take(m, s, &a->experts);
        shared_take(m, s, a);
        if (spec_layers_none(&m->spec->dense)) /* else a set serves layers of both kinds */
            return;
    }
    a->pre = slab_2d(s, d, n, glu ? 2 * m->ffn : m->ffn);
    a->h = slab_2d(s, d, n, m->ffn);
}

/* Of a layer that is recomputed its input alone, if it begins a group; the first layer's is acts.x.
 */
static void take_layer_or_input(const struct model *m, struct slab *s, struct layer_acts *a, int l)
{
    int set = recompute_set(m, l);
    if (set < 0) {
        take_layer(m, s, a, l == 0);
        return;
    }
    *a = m->a.shared[set];
    if (recompute_distributes(m, l))
        a->kept = slab_1d(s, m->ops->real, recompute_part(m));
    else if (set == 0 && l > 0)
        a->r1 = slab_2d(s, m->ops->real, stream_count(m, m->tokens), m->spec->hidden);
}

/* What recomputed layers share, of all micro-batches in flight. */
static void take_shared(struct model *m, struct slab *s)
{
    int sets = recompute_sets(m);
    if (!m->a.shared)
        m->a.shared = mem_new((size_t)sets + 1, sizeof(*m->a.shared));
    if (m->use == MODEL_TRAIN && m->recompute.kind == RECOMPUTE_SELECTIVE)
        take_attention(m, s, &m->a.shared[0]);
    for (int i = 0; i < sets; i++) /* r1 of the first is kept, or must be gathered */
        take_layer(m, s, &m->a.shared[i], i == 0 && !m->recompute.distribute);
}

/* Whether the input of a stage is shared out: then only one place has all of it. */
static bool shares_stage_input(const struct model *m)
{
    return m->least_layers > 0 && recompute_distributes(m, 0);
}

/*
 * Without a backward pass two sets are enough, used in turn: a block reads the residual of the one
 * below while it writes its own.
 */
static void take_layers(const struct model *m, struct slab *s, struct acts *a)
{
    int64_t layers = m->most_layers;
    if (!a->layer)
        a->layer = mem_new((size_t)layers + 1, sizeof(*a->layer));
    if (m->use == MODEL_TRAIN) {
        for (int l = 0; l < layers; l++)
            take_layer_or_input(m, s, &a->layer[l], l);
        return;
    }
    for (int64_t l = 0; l < layers; l++)
        if (l < 2)
            take_layer(m, s, &a->layer[l], false);
        else
            a->layer[l] = a->layer[l % 2];
}

static void take_cache(struct model *m, struct slab *s)
{
    size_t layers = (size_t)m->stage.layers;
    int64_t width = m->kv_heads * m->spec->head_dim;
    if (!m->a.cache_k) {
        m->a.cache_k = mem_new(layers, sizeof(*m->a.cache_k));
        m->a.cache_v = mem_new(layers, sizeof(*m->a.cache_v));
    }
    for (size_t l = 0; l < layers; l++) {
        m->a.cache_k[l] = slab_2d(s, m->ops->real, m->positions, width);
        m->a.cache_v[l] = slab_2d(s, m->ops->real, m->positions, width);
    }
}

static void take_values(const struct model *m, struct slab *s, struct acts *a)
{
    a->micro = slab_1d(s, DTYPE_F64, MICRO_DOUBLES * model_merged(m));
    a->origin = tensor_1d((char *)a->micro.data + offsetof(struct micro_values, origin), DTYPE_I32,
                          DROP_ORIGIN);
}

/* What a forward pass keeps for its backward pass. */
static void take_kept(const struct model *m, struct slab *s, struct acts *a)
{
    enum dtype d = m->ops->real;
    int64_t n = m->tokens, rows = stream_count(m, n), C = m->spec->hidden;
    int64_t stretches = m->stretches > m->sequences ? m->stretches : m->sequences;
    if (a == &m->a || !shares_stage_input(m))
        a->x = slab_2d(s, d, rows, C);
    take_layers(m, s, a);
    a->r = slab_2d(s, d, rows, C);
    a->mean = m->spec->norm == SPEC_LAYERNORM ? slab_1d(s, m->ops->stat, rows) : (struct tensor){0};
    a->rstd = slab_1d(s, m->ops->stat, rows);
    a->id = slab_1d(s, DTYPE_I32, n);
    a->position = slab_1d(s, DTYPE_I32, n);
    a->label = slab_1d(s, DTYPE_I32, n);
    a->mask = slab_1d(s, DTYPE_F32, n);
    take_values(m, s, a);
    a->q_start = slab_1d(s, DTYPE_I32, stretches + 1);
    a->k_start = slab_1d(s, DTYPE_I32, stretches);
    a->k_len = slab_1d(s, DTYPE_I32, stretches);
    if (m->context.cp > 1)
        a->context = slab_1d(s, DTYPE_I32, context_ints(m->context, stretches));
}

void model_take_acts(struct model *m, struct slab *s, enum model_use use, int64_t sequences,
                     int64_t length)
{
    enum dtype d = m->ops->real;
    struct acts *a = &m->a;
    m->use = use;
    m->sequences = sequences;
    m->positions = length;
    m->context.length = length;
    m->context.sequences = sequences;
    m->tokens = sequences * length / m->context.cp;
    int64_t rows = stream_count(m, m->tokens), C = m->spec->hidden;

    take_shared(m, s);
    take_kept(m, s, a);
    a->sub = slab_2d(s, d, rows, C);
    a->y = slab_2d(s, d, rows, C);
    if (use == MODEL_TRAIN) {
        a->dr = slab_2d(s, d, rows, C);
        a->dy = slab_2d(s, d, rows, C);
        a->dsub =
            m->spec->hidden_dropout > 0 || m->spec->post_norm ? slab_2d(s, d, rows, C) : a->dr;
    }
    if (use == MODEL_DECODE)
        take_cache(m, s);
    if (m->spec->position == SPEC_ROPE) {
        a->cos = slab_2d(s, m->ops->stat, length, spec_rotary(m->spec) / 2);
        a->sin = slab_2d(s, m->ops->stat, length, spec_rotary(m->spec) / 2);
    }
    if (m->spec->rope_local_base > 0) {
        a->local_cos = slab_2d(s, m->ops->stat, length, spec_rotary(m->spec) / 2);
        a->local_sin = slab_2d(s, m->ops->stat, length, spec_rotary(m->spec) / 2);
    }
    a->loss = slab_1d(s, m->ops->stat, m->tokens);
    if (m->context.cp > 1) {
        a->row = slab_1d(s, DTYPE_I32, m->tokens);
        if (!a->traded)
            a->traded = mem_new((size_t)m->context.cp, sizeof(*a->traded));
        for (int k = 0; k < m->context.cp; k++)
            a->traded[k] = m->tokens;
    }
}

void model_take_place(struct model *m, struct slab *s, struct acts *ret)
{
    struct layer_acts *layer = ret->layer;
    *ret = m->a;
    ret->layer = layer;
    take_kept(m, s, ret);
}

void model_share_batch(struct acts *a, const struct acts *from)
{
    a->id = from->id;
    a->position = from->position;
    a->label = from->label;
    a->mask = from->mask;
    a->micro = from->micro;
    a->origin = from->origin;
    a->q_start = from->q_start;
    a->k_start = from->k_start;
    a->k_len = from->k_len;
    a->context = from->context;
}

void model_place_finish(struct acts *a)
{
    free(a->layer);
    *a = (struct acts){0};
}

/* Llama 3's rule for long contexts: slow waves are stretched by `factor`, fast ones kept, those
 * between mixed. */
static double llama3_frequency(const struct spec *s, double f)
{
    double wave = 2 * acos(-1.0) / f, old = (double)s->rope_old_length;
    if (wave > old / s->rope_low)
        return f / s->rope_factor;
    if (wave < old / s->rope_high)
        return f;
    double smooth = (old / wave - s->rope_low) / (s->rope_high - s->rope_low);
    return (1 - smooth) * f / s->rope_factor + smooth * f;
}

/* The pair, as a fraction, that turns so many times in the old length. */
static double yarn_pair(const struct spec *s, double turns)
{
    double waves = (double)s->rope_old_length / (turns * 2 * acos(-1.0));
    return (double)spec_rotary(s) * log(waves) / (2 * log(s->rope_base));
}

static double yarn_frequency(const struct spec *s, int64_t i, double f)
{
    double first = yarn_pair(s, s->yarn.fast), last = yarn_pair(s, s->yarn.slow);
    if (!s->yarn.exact) {
        first = floor(first);
        last = ceil(last);
    }
    first = fmax(first, 0);
    last = fmin(last, (double)spec_rotary(s) - 1);
    double slow = ((double)i - first) / (last == first ? 0.001 : last - first);
    slow = fmin(fmax(slow, 0), 1);
    return (1 - slow) * f + slow * f / s->rope_factor;
}

/* The base grows with what the sequence is longer than the old length. */
static double dynamic_base(const struct spec *s, int64_t length)
{
    double d = (double)spec_rotary(s);
    double longer = (double)length / (double)s->rope_old_length;
    if (longer <= 1 || FAULT("dynamic"))
        return s->rope_base;
    return s->rope_base * pow(s->rope_factor * longer - (s->rope_factor - 1), d / (d - 2));
}

static void acts_put(void *p, enum dtype d, int64_t i, double v)
{
    if (d == DTYPE_F64)
        ((double *)p)[i] = v;
    else
        ((float *)p)[i] = (float)v;
}

static double power_frequency(const struct spec *s, double base, int64_t i)
{
    return pow(base, -(double)(2 * i) / (double)spec_rotary(s));
}

/* The angle of pair i from one position to the next, in a sequence of `length`. */
static double frequency(const struct spec *s, int64_t i, int64_t length)
{
    double f = power_frequency(s, s->rope_base, i);
    bool far = length > s->rope_old_length;
    switch (s->rope_scaling) {
    case SPEC_ROPE_PLAIN:
        return f;
    case SPEC_ROPE_LLAMA3:
        return llama3_frequency(s, f);
    case SPEC_ROPE_LONG:
        return f / (far && !FAULT("longrope") ? s->longrope.far[i] : s->longrope.near[i]);
    case SPEC_ROPE_LINEAR:
        return f / s->rope_factor;
    case SPEC_ROPE_YARN:
        return yarn_frequency(s, i, f);
    case SPEC_ROPE_DYNAMIC:
        return power_frequency(s, dynamic_base(s, length), i);
    }
    BUG("rotary scaling %d", (int)s->rope_scaling);
}

/* By what cosines and sines are multiplied. */
static double table_scale(const struct spec *s)
{
    return s->rope_scaling == SPEC_ROPE_LONG   ? s->longrope.attention
           : s->rope_scaling == SPEC_ROPE_YARN ? s->yarn.attention
                                               : 1;
}

static void fill_tables(struct model *m, struct tensor c, struct tensor s, int64_t length,
                        bool local)
{
    struct dev *dev = m->ops->dev;
    int64_t half = c.size[1];
    size_t bytes = tensor_bytes(c);
    void *cosines = mem_new(1, bytes), *sines = mem_new(1, bytes);
    double scale = local ? 1 : table_scale(m->spec);
    for (int64_t i = 0; i < half; i++) {
        double turn = local ? power_frequency(m->spec, m->spec->rope_local_base, i)
                            : frequency(m->spec, i, length);
        for (int64_t pos = 0; pos < c.size[0]; pos++) {
            double angle = (double)pos * turn;
            acts_put(cosines, c.dtype, pos * half + i, scale * cos(angle));
            acts_put(sines, c.dtype, pos * half + i, scale * sin(angle));
        }
    }
    dev->fn->copy(dev, STREAM_COMPUTE, c.data, cosines, bytes);
    dev->fn->copy(dev, STREAM_COMPUTE, s.data, sines, bytes);
    dev->fn->sync(dev, STREAM_COMPUTE);
    free(cosines);
    free(sines);
}

void model_fill_tables(struct model *m, int64_t length)
{
    if (m->spec->position != SPEC_ROPE)
        return;
    fill_tables(m, m->a.cos, m->a.sin, length, false);
    if (m->spec->rope_local_base > 0)
        fill_tables(m, m->a.local_cos, m->a.local_sin, length, true);
}

void model_finish(struct model *m)
{
    free(m->a.layer);
    free(m->a.shared);
    free(m->a.cache_k);
    free(m->a.cache_v);
    free(m->a.traded);
    m->a = (struct acts){0};
    weights_finish(&m->w);
    weights_finish(&m->g);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/bench/cuda/skeleton.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/mem.h"
#include "base/core/rng.h"
#include "train/ops/values.h"

static const int64_t most_shares = (int64_t)16 << 30; /* bytes of dq's shares by key */

enum { PATTERN = 1 << 22, STATE = 256 << 20, STATE_G = 1, QKV = 0, PROJ, FC, DOWN, HEAD };

int64_t limit_parameters(const struct limit_model *m)
{
    int64_t q = m->heads * m->dim, kv = 2 * m->groups * m->dim;
    int64_t layer = m->width * (2 * q + kv) + (m->gpt ? 2 : 3) * m->width * m->inner;
    return m->layers * layer + m->vocabulary * m->width;
}

/* The layer has a window that leaves out keys. */
static bool windowed(const struct limit_model *m, int64_t layer)
{
    bool full = m->full_every && (layer + 1) % m->full_every == 0;
    return m->window && m->window < m->tokens && !full;
}

double limit_flops(const struct limit_model *m)
{
    double keys = 0, t = (double)m->tokens, w = (double)m->window; /* of all layers, in the mean */
    for (int64_t layer = 0; layer < m->layers; layer++)
        keys += windowed(m, layer) ? w - w * w / (2 * t) : t / 2;
    return 6.0 * (double)limit_parameters(m) + 12.0 * (double)(m->heads * m->dim) * keys;
}

/* ---- memory -------------------------------------------------------------------------------------
 */

static uint16_t bf16_of(float x)
{
    uint32_t u;
    memcpy(&u, &x, sizeof(u));
    return (uint16_t)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}

/* Normal numbers over `count` elements, the same PATTERN of them again and again. */
static void *numbers(struct bench_gpu *g, int64_t count, double scale, enum dtype type)
{
    size_t size = dtype_size(type);
    char *p = slab_bytes(&g->memory, (size_t)count * size);
    float *x = mem_new(PATTERN, sizeof(float));
    uint16_t *narrow = (uint16_t *)x;
    if (!g->pattern) {
        g->pattern = mem_new(PATTERN, sizeof(float));
        rng_normal(1, RNG_TEST, 2, 0, PATTERN, g->pattern);
    }
    for (int64_t i = 0; i < PATTERN; i++) {
        float v = (float)scale * g->pattern[i];
        if (type == DTYPE_BF16)
            narrow[i] = bf16_of(v);
        else
            x[i] = v;
    }
    for (int64_t i = 0; i < count; i += PATTERN)
        g->dev.fn->copy(&g->dev, STREAM_COMPUTE, p + (size_t)i * size, x,
                        (size_t)(count - i < PATTERN ? count - i : PATTERN) * size);
    g->dev.fn->sync(&g->dev, STREAM_COMPUTE);
    free(x);
    return p;
}

void *skeleton_numbers(struct bench_gpu *gpu, int64_t count, double scale)
{
    return numbers(gpu, count, scale, DTYPE_BF16);
}

static void *halves(struct skeleton *s, int64_t rows, int64_t cols, double scale)
{
    return numbers(s->gpu, rows * cols, scale, DTYPE_BF16);
}

static enum dtype gradient_type(const struct skeleton *s)
{
    return s->mode.narrow || s->mode.gradients ? DTYPE_BF16 : DTYPE_F32;
}

/* Of what the optimizer keeps. */
static enum dtype kept_type(const struct skeleton *s)
{
    return s->mode.narrow ? DTYPE_BF16 : DTYPE_F32;
}

static enum dtype state_type(const struct skeleton *s, int i)
{
    return i == STATE_G ? gradient_type(s) : kept_type(s);
}

/* The types of gradients, parameters and moments that the ops expect. */
static void set_types(const struct skeleton *s, bool kept)
{
    bool narrow = kept && s->mode.narrow, gradients = kept && gradient_type(s) == DTYPE_BF16;
    ops_set_types(&s->gpu->ops, narrow ? DTYPE_BF16 : DTYPE_F32,
                  (struct ops_narrow){gradients, narrow, {narrow, narrow}});
}

/* ---- preparing ----------------------------------------------------------------------------------
 */

static int plan(struct skeleton *s, struct site *t, int which, struct err *e)
{
    struct lt_shape p;
    bool forward = which == 0, weight = which == 2;
    memset(&p, 0, sizeof(p));
    p.m = weight ? t->out : s->n;
    p.n = forward ? t->out : t->in;
    p.k = forward ? t->in : weight ? s->n : t->out;
    p.lda = forward ? t->in : t->out; /* x, dy, dy */
    p.ldb = t->in;                    /* w, w, x */
    p.ldy = p.n;
    p.ta = weight;
    p.tb = forward;
    p.in = DTYPE_BF16;
    p.out = weight ? gradient_type(s) : DTYPE_BF16;
    p.accumulate = weight;
    p.alignment = 256;
    p.epilogue = forward ? t->forward : weight ? LT_NONE : t->backward;
    p.ld_aux = p.epilogue == LT_GELU || p.epilogue == LT_GELU_BWD ? p.ldy : 0;
    return lt_prepare(s->gpu->lt, &p, 0, &t->plan[which], e);
}

static int init_site(struct skeleton *s, struct site *t, int slots, struct err *e)
{
    bool aux = t->forward == LT_GELU || t->backward == LT_GELU_BWD;
    for (int i = 0; i < SLOTS; i++) {
        if (i >= slots) { /* the head has one of everything */
            t->x[i] = t->x[0], t->w[i] = t->w[0], t->y[i] = t->y[0], t->dy[i] = t->dy[0];
            t->dx[i] = t->dx[0], t->dw[i] = t->dw[0];
            continue;
        }
        t->x[i] = halves(s, s->n, t->in, 1);
        t->w[i] = halves(s, t->out, t->in, 0.02);
        t->dy[i] = halves(s, s->n, t->out, 1);
        t->y[i] = slab_bytes(&s->gpu->memory, (size_t)(s->n * t->out) * 2);
        t->dx[i] = slab_bytes(&s->gpu->memory, (size_t)(s->n * t->in) * 2);
        t->dw[i] = numbers(s->gpu, t->out * t->in, 1, gradient_type(s));
        /* of fc its own output, of down the one of fc: both [n, inner] */
        t->aux[i] = aux ? halves(s, s->n, t->forward == LT_GELU ? t->out : t->in, 1) : NULL;
    }
    for (int which = 0; which < 3; which++)
        if (plan(s, t, which, e))
            return err_wrap(e, "%s, %s", s->m.name, t->name);
    return 0;
}

/* The plan of the layers with or without a window. */
static int plan_attention(struct skeleton *s, bool window, struct err *e)
{
    const struct limit_model *m = &s->m;
    int64_t q = m->heads * m->dim, row = q + 2 * m->groups * m->dim;
    int64_t bytes = m->micro_batch * m->heads * m->tokens * m->tokens * 2;
    struct sdpa_shape shape = {.batch = m->micro_batch,
                               .tokens = m->tokens,
                               .heads = m->heads,
                               .groups = m->groups,
                               .dim = m->dim,
                               .stride = {row, row, row, q, q, row, row, row},
                               .type = DTYPE_BF16,
                               .scale = 1 / sqrtf((float)m->dim),
                               .window = window ? m->window : 0,
                               .causal = true,
                               .deterministic =
                                   s->mode.deterministic && !window && bytes <= most_shares,
                               .backward = true};
    return sdpa_prepare(s->gpu->sdpa, &shape, &s->attention[window], e);
}

static int init_attention(struct skeleton *s, struct err *e)
{
    const struct limit_model *m = &s->m;
    int64_t q = m->heads * m->dim, row = q + 2 * m->groups * m->dim;
    size_t workspace = 0;
    for (int64_t layer = 0; layer < m->layers; layer++) {
        bool window = windowed(m, layer);
        if (!s->attention[window] && plan_attention(s, window, e))
            return e->code;
        size_t bytes = sdpa_workspace(s->attention[window]);
        workspace = bytes > workspace ? bytes : workspace;
    }
    for (int i = 0; i < SLOTS; i++) {
        s->qkv[i] = halves(s, s->n, row, 1);
        s->dout[i] = halves(s, s->n, q, 1);
        s->o[i] = slab_bytes(&s->gpu->memory, (size_t)(s->n * q) * 2);
        s->dqkv[i] = slab_bytes(&s->gpu->memory, (size_t)(s->n * row) * 2);
        s->lse[i] = slab_bytes(&s->gpu->memory, (size_t)(s->n * m->heads) * sizeof(float));
    }
    s->workspace = slab_bytes(&s->gpu->memory, workspace);
    return 0;
}

/* Elementwise bytes of one micro-batch: of a layer forward and backward, and once. */
static double layer_bytes(const struct skeleton *s, bool backward)
{
    const struct limit_model *m = &s->m;
    double c = (double)m->width, f = (double)m->inner, rope = 0, act;
    if (m->gpt) {
        act = backward ? 6 * c + (s->mode.gelu_apart ? 6 : 2) * f : 0;
    } else {
        rope = 4.0 * (double)((m->heads + 2 * m->groups) * m->dim); /* half of it each way */
        act = backward ? 10 * f : 6 * f;
    }
    return (16 * c + rope + act) * (double)s->n;
}

static double once_bytes(const struct skeleton *s)
{
    return (4.0 * (double)s->m.vocabulary + 14.0 * (double)s->m.width) * (double)s->n;
}

int skeleton_init(struct skeleton *s, struct bench_gpu *gpu, const struct limit_model *m,
                  struct skeleton_mode mode, struct err *e)
{
    int64_t q = m->heads * m->dim, kv = 2 * m->groups * m->dim;
    *s = (struct skeleton){.gpu = gpu, .m = *m, .mode = mode, .n = m->tokens * m->micro_batch};
    const struct site sites[SITES] = {
        {.name = "qkv", .out = q + kv, .in = m->width, .forward = m->gpt ? LT_BIAS : LT_NONE},
        {.name = "proj", .out = m->width, .in = q},
        {.name = "fc",
         .out = m->gpt ? m->inner : 2 * m->inner,
         .in = m->width,
         .forward = m->gpt ? LT_GELU : LT_NONE},
        {.name = "down",
         .out = m->width,
         .in = m->inner,
         .backward = m->gpt && !mode.gelu_apart ? LT_GELU_BWD : LT_NONE},
        {.name = "head", .out = m->vocabulary, .in = m->width},
    };
    memcpy(s->site, sites, sizeof(sites));
    slab_reset(&gpu->memory, 0);
    s->bias = halves(s, 1, m->vocabulary, 1);
    s->copies = (size_t)2 << 30;
    s->from = numbers(gpu, (int64_t)s->copies / 4, 1, DTYPE_F32);
    s->to = slab_bytes(&gpu->memory, s->copies);
    for (int i = 0; i < 4; i++)
        s->state[i] = numbers(gpu, STATE, 1e-3, state_type(s, i));
    struct fill_args positive = {.y = tensor_1d(s->state[3], kept_type(s), STATE), .value = 1e-4};
    set_types(s, true);
    op_fill(&gpu->ops, &positive);
    set_types(s, false);
    for (int i = 0; i < SITES; i++)
        if (init_site(s, &s->site[i], i == HEAD ? 1 : SLOTS, e))
            return e->code;
    return gpu->sdpa ? init_attention(s, e) : 0;
}

void skeleton_free(struct skeleton *s)
{
    for (int i = 0; i < 2; i++) {
        if (s->attention[i])
            sdpa_plan_free(s->gpu->sdpa, s->attention[i]);
        s->attention[i] = NULL;
    }
}

/* ---- running ------------------------------------------------------------------------------------
 */

static void forward(struct skeleton *s, int which, int i)
{
    struct site *t = &s->site[which];
    bool bias = t->forward != LT_NONE;
    lt_run(s->gpu->lt, t->plan[0], t->y[i], t->x[i], t->w[i], bias ? s->bias : NULL,
           t->forward == LT_GELU ? t->aux[i] : NULL, s->gpu->workspace.base);
}

static void backward(struct skeleton *s, int which, int i)
{
    struct site *t = &s->site[which];
    void *aux = t->backward == LT_GELU_BWD ? t->aux[i] : NULL;
    lt_run(s->gpu->lt, t->plan[1], t->dx[i], t->dy[i], t->w[i], NULL, aux, s->gpu->workspace.base);
    lt_run(s->gpu->lt, t->plan[2], t->dw[i], t->dy[i], t->x[i], NULL, NULL, s->gpu->workspace.base);
}

/* Reads half of the bytes, writes half. */
static void move(struct skeleton *s, double bytes)
{
    double left = bytes / 2;
    while (left >= 16) {
        double now = left < (double)s->copies ? left : (double)s->copies;
        int64_t floats = (int64_t)(now / 16) * 4;
        struct copy_args a = {.y = tensor_1d(s->to, DTYPE_F32, floats),
                              .x = tensor_1d(s->from, DTYPE_F32, floats)};
        op_copy(&s->gpu->ops, &a);
        left -= now;
    }
}

static struct sdpa_tensors tensors(struct skeleton *s, int i)
{
    int64_t q = s->m.heads * s->m.dim, kv = s->m.groups * s->m.dim;
    char *qkv = s->qkv[i], *dqkv = s->dqkv[i];
    return (struct sdpa_tensors){.q = qkv,
                                 .k = qkv + 2 * q,
                                 .v = qkv + 2 * (q + kv),
                                 .o = s->o[i],
                                 .lse = s->lse[i],
                                 .dout = s->dout[i],
                                 .dq = dqkv,
                                 .dk = dqkv + 2 * q,
                                 .dv = dqkv + 2 * (q + kv)};
}

void skeleton_micro_batch(struct skeleton *s, int parts)
{
    bool attention = parts & PART_ATTENTION && s->gpu->sdpa;
    for (int64_t layer = 0; layer < s->m.layers; layer++) {
        int i = (int)(layer % SLOTS);
        struct sdpa_tensors t = tensors(s, i);
        for (int k = QKV; k <= DOWN; k++) {
            if (k == PROJ && attention)
                sdpa_forward(s->gpu->sdpa, s->attention[windowed(&s->m, layer)], &t, s->workspace);
            if (parts & PART_PRODUCTS)
                forward(s, k, i);
        }
        if (parts & PART_BYTES)
            move(s, layer_bytes(s, false));
    }
    if (parts & PART_PRODUCTS) {
        forward(s, HEAD, 0);
        backward(s, HEAD, 0);
    }
    if (parts & PART_BYTES)
        move(s, once_bytes(s));
    for (int64_t layer = s->m.layers; layer-- > 0;) {
        int i = (int)(layer % SLOTS);
        struct sdpa_tensors t = tensors(s, i);
        for (int k = DOWN; k >= QKV; k--) {
            if (parts & PART_PRODUCTS)
                backward(s, k, i);
            if (k == PROJ && attention)
                sdpa_backward(s->gpu->sdpa, s->attention[windowed(&s->m, layer)], &t, s->workspace);
        }
        if (parts & PART_BYTES)
            move(s, layer_bytes(s, true));
    }
}

void skeleton_optimizer(struct skeleton *s)
{
    struct ops *o = &s->gpu->ops;
    set_types(s, true);
    double *total = (double *)s->gpu->memory.base; /* over the bias, which nothing depends on */
    const struct step_values now = step_values_make(1e-5, 0.1, 100, 0.9, 0.95);
    struct tensor values = tensor_1d(total + 1, DTYPE_F64, STEP_VALUES);
    s->gpu->dev.fn->copy(&s->gpu->dev, STREAM_COMPUTE, values.data, &now, sizeof(now));
    for (int64_t left = limit_parameters(&s->m); left > 0; left -= STATE) {
        int64_t n = left < STATE ? left : STATE;
        struct tensor t[4];
        for (int i = 0; i < 4; i++)
            t[i] = tensor_1d(s->state[i], state_type(s, i), n);
        struct sumsq_args sum = {.total = tensor_1d(total, DTYPE_F64, 1), .x = t[1]};
        struct adamw_args step = {.p = t[0],
                                  .g = t[1],
                                  .m = t[2],
                                  .v = t[3],
                                  .values = values,
                                  .beta1 = 0.9,
                                  .beta2 = 0.95,
                                  .eps = 1e-8};
        struct fill_args narrow = {.y = tensor_1d(s->to, DTYPE_F32, n / 2), .value = 1};
        op_sumsq(o, &sum);
        op_adamw(o, &step);
        if (!s->mode.narrow)
            op_fill(o, &narrow); /* as many bytes as the bf16 parameters have */
    }
    set_types(s, false);
}

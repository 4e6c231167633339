/* SPDX-License-Identifier: Apache-2.0 */
#include "train/ops/cpu/fast.h"

#include <math.h>

#include "base/core/fault.h"
#include "train/ops/cpu/vec_edge.h"
#include "train/ops/cpu/vec_math.h"
#include "train/ops/experts.h"

/* Gated units and rotary positions: what goes through pairs of numbers of a row. */

/* act(x) */
static inline __attribute__((always_inline)) vf gate(enum glu act, vf x)
{
    vf s, c;
    if (act == GLU_GELU_TANH)
        return v_gelu_tanh(x);
    if (act == GLU_GELU_ERF)
        return v_gelu_erf(x);
    v_sigmoid(x, &s, &c);
    return x * s;
}

static inline __attribute__((always_inline)) void glu_row(const struct glu_args *a, int64_t i,
                                                          const enum glu act)
{
    int64_t width = a->y.size[1], j = 0;
    const float *x = row(a->x, i), *u = x + width;
    float *y = row(a->y, i);
    for (; j + VL <= width; j += VL)
        v_store(y + j, gate(act, v_load(x + j)) * v_load(u + j));
    if (j < width)
        v_put(y + j, width - j, gate(act, v_get(x + j, width - j)) * v_get(u + j, width - j));
}

static void glu_task(void *arg, int task, int thread)
{
    const struct glu_args *a = arg;
    struct range r = grain_range(a->y.size[0], 2 * a->y.size[1], task);
    (void)thread;
    for (int64_t i = r.begin; i < r.end; i++)
        if (a->act == GLU_SILU)
            glu_row(a, i, GLU_SILU);
        else if (a->act == GLU_GELU_TANH)
            glu_row(a, i, GLU_GELU_TANH);
        else
            glu_row(a, i, GLU_GELU_ERF);
}

void FAST(glu)(struct ops *o, const void *args, void *scratch)
{
    struct glu_args a = *(const struct glu_args *)args;
    (void)scratch;
    pool_run(o->dev->pool, grain_tasks(a.y.size[0], 2 * a.y.size[1]), glu_task, &a);
}

/* Of n columns. All is read before anything is written: dx may be x. */
static inline __attribute__((always_inline)) void glu_bwd_step(float *dg, float *du,
                                                               const float *dy, const float *g,
                                                               const float *u, const enum glu act,
                                                               int64_t n)
{
    vf s, c, slope, value, x = v_get(g, n), up = v_get(u, n), d = v_get(dy, n);
    if (act == GLU_SILU) {
        v_sigmoid(x, &s, &c);
        slope = FAULT("glu_bwd") ? s : v_fma(x * c, s, s);
        value = x * s;
    } else {
        slope = act == GLU_GELU_TANH ? v_gelu_tanh_slope(x) : v_gelu_erf_slope(x);
        value = gate(act, x);
    }
    v_put(dg, n, d * up * slope);
    v_put(du, n, d * value);
}

static inline __attribute__((always_inline)) void glu_bwd_row(const struct glu_bwd_args *a,
                                                              int64_t i, const enum glu act)
{
    int64_t width = a->dy.size[1], j = 0;
    const float *x = row(a->x, i), *u = x + width, *dy = row(a->dy, i);
    float *dx = row(a->dx, i);
    for (; j + VL <= width; j += VL)
        glu_bwd_step(dx + j, dx + width + j, dy + j, x + j, u + j, act, VL);
    if (j < width)
        glu_bwd_step(dx + j, dx + width + j, dy + j, x + j, u + j, act, width - j);
}

static void glu_bwd_task(void *arg, int task, int thread)
{
    const struct glu_bwd_args *a = arg;
    struct range r = grain_range(a->dy.size[0], 2 * a->dy.size[1], task);
    (void)thread;
    for (int64_t i = r.begin; i < r.end; i++)
        if (a->act == GLU_SILU)
            glu_bwd_row(a, i, GLU_SILU);
        else if (a->act == GLU_GELU_TANH)
            glu_bwd_row(a, i, GLU_GELU_TANH);
        else
            glu_bwd_row(a, i, GLU_GELU_ERF);
}

void FAST(glu_bwd)(struct ops *o, const void *args, void *scratch)
{
    struct glu_bwd_args a = *(const struct glu_bwd_args *)args;
    (void)scratch;
    pool_run(o->dev->pool, grain_tasks(a.dy.size[0], 2 * a.dy.size[1]), glu_bwd_task, &a);
}

static inline __attribute__((always_inline)) void
rope_step(float *x, int64_t half, const float *cosine, const float *sine, vf sign, int64_t n)
{
    vf u = v_get(x, n), v = v_get(x + half, n);
    vf c = v_get(cosine, n), s = v_get(sine, n) * sign;
    v_put(x, n, u * c - v * s);
    v_put(x + half, n, u * s + v * c);
}

static void rope_task(void *arg, int task, int thread)
{
    const struct rope_args *a = arg;
    int64_t heads = a->x.size[1], dim = a->x.size[2], half = a->rotary / 2;
    struct range r = grain_range(a->x.size[0], heads * a->rotary, task);
    vf sign = v_set1(a->backward && !FAULT("rope_bwd") ? -1 : 1);
    (void)thread;
    for (int64_t i = r.begin; i < r.end; i++) {
        const float *cosine = row(a->cos, ints(a->position)[i]);
        const float *sine = row(a->sin, ints(a->position)[i]);
        for (int64_t h = 0; h < heads; h++) {
            float *x = row(a->x, i) + h * dim;
            int64_t j = 0;
            for (; j + VL <= half; j += VL)
                rope_step(x + j, half, cosine + j, sine + j, sign, VL);
            if (j < half)
                rope_step(x + j, half, cosine + j, sine + j, sign, half - j);
        }
    }
}

void FAST(rope)(struct ops *o, const void *args, void *scratch)
{
    struct rope_args a = *(const struct rope_args *)args;
    (void)scratch;
    pool_run(o->dev->pool, grain_tasks(a.x.size[0], a.x.size[1] * a.rotary), rope_task, &a);
}

/* ---- the gate of a shared expert ---------------------------------------------------------------
 */

static float gate_of(struct tensor logit, int64_t i)
{
    return 1 / (1 + expf(-row(logit, i)[0]));
}

static void gate_task(void *arg, int task, int thread)
{
    const struct gate_args *a = arg;
    int64_t width = a->y.size[1];
    struct range r = grain_range(a->y.size[0], width, task);
    (void)thread;
    for (int64_t i = r.begin; i < r.end; i++) {
        vf s = v_set1(gate_of(a->logit, i));
        for (int64_t j = 0; j < width; j += VL)
            v_put(row(a->y, i) + j, width - j, v_get(row(a->x, i) + j, width - j) * s);
    }
}

void FAST(gate)(struct ops *o, const void *args, void *scratch)
{
    struct gate_args a = *(const struct gate_args *)args;
    (void)scratch;
    pool_run(o->dev->pool, grain_tasks(a.y.size[0], a.y.size[1]), gate_task, &a);
}

static void gate_bwd_task(void *arg, int task, int thread)
{
    const struct gate_bwd_args *a = arg;
    int64_t width = a->dy.size[1];
    struct range r = grain_range(a->dy.size[0], width, task);
    (void)thread;
    for (int64_t i = r.begin; i < r.end; i++) {
        float g = gate_of(a->logit, i);
        vf s = v_set1(g), sum = v_zero();
        for (int64_t j = 0; j < width; j += VL) {
            vf dy = v_get(row(a->dy, i) + j, width - j);
            sum = v_fma(dy, v_get(row(a->x, i) + j, width - j), sum);
            v_put(row(a->dx, i) + j, width - j, dy * s);
        }
        row(a->dlogit, i)[0] = v_sum(sum) * g * (FAULT("gate_bwd") ? 1 : 1 - g);
    }
}

void FAST(gate_bwd)(struct ops *o, const void *args, void *scratch)
{
    struct gate_bwd_args a = *(const struct gate_bwd_args *)args;
    (void)scratch;
    pool_run(o->dev->pool, grain_tasks(a.dy.size[0], a.dy.size[1]), gate_bwd_task, &a);
}

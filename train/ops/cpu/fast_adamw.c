/* SPDX-License-Identifier: Apache-2.0 */
#include "train/ops/cpu/fast.h"

#include <math.h>

#include "base/core/fault.h"
#include "train/ops/segments.h"
#include "train/ops/values.h"

/* ---- AdamW: one pass, all in float ----------------------------------------------------------- */

/*
 * A factor as base + rest, base 1 or 0. What a factor near 1 takes away, 1 - beta or lr decay, may
 * be so small that rounding the factor itself to float would change it by a thousandth.
 */
struct two {
    float base, rest;
};

struct adamw_job {
    float *p, *m, *v;
    const float *g;
    int64_t n, first;
    struct tensor segments;
    struct two keep, beta1, beta2;
    float factor, one_less_beta1, one_less_beta2, step_size, unbias, eps;
};

static struct two two_of(double x)
{
    double base = x > 0.5 ? 1 : 0;
    return (struct two){(float)base, (float)(x - base)};
}

/* x * t + add */
static vf times(vf x, struct two t, vf add)
{
    return v_fma(x, v_set1(t.base), v_fma(x, v_set1(t.rest), add));
}

/* Whole vectors need no mask. */
static inline vf get(const float *p, int64_t n)
{
    return n == VL ? v_load(p) : v_load_n(p, n);
}

static inline void adamw_put(float *p, int64_t n, vf v)
{
    if (n == VL)
        v_store(p, v);
    else
        v_store_n(p, n, v);
}

static inline void adamw_vector(const struct adamw_job *j, struct two keep, int64_t i, int64_t n)
{
    vf g = get(j->g + i, n) * v_set1(j->factor);
    vf m = times(get(j->m + i, n), j->beta1, g * v_set1(j->one_less_beta1));
    vf v = times(get(j->v + i, n), j->beta2, g * v_set1(j->one_less_beta2) * g);
    vf down = v_fma(v_sqrt(v), v_set1(j->unbias), v_set1(j->eps));
    vf p = times(get(j->p + i, n), keep, v_set1(-j->step_size) * m / down);
    adamw_put(j->m + i, n, m);
    adamw_put(j->v + i, n, v);
    adamw_put(j->p + i, n, p);
}

static void adamw_task(void *arg, int task, int thread)
{
    const struct adamw_job job = *(const struct adamw_job *)arg;
    struct range r = grain_range(job.n, 1, task);
    struct segment_run run;
    (void)thread;
    for (int64_t i = r.begin; i < r.end; i = run.end) {
        run = segment_run(job.segments, job.first, i, r.end);
        struct two keep = run.kind == SEGMENT_DECAYS ? job.keep : two_of(1);
        if (run.kind == SEGMENT_STILL)
            continue;
        for (; i + VL <= run.end; i += VL)
            adamw_vector(&job, keep, i, VL);
        if (i < run.end)
            adamw_vector(&job, keep, i, run.end - i);
    }
}

void FAST(adamw)(struct ops *o, const void *args, void *scratch)
{
    const struct adamw_args *a = args;
    (void)scratch;
    if (!tensor_none(a->skip) && ints(a->skip)[0] != 0)
        return;
    const struct step_values *now = step_values_of(a->values);
    double decay = now->decay;
    struct adamw_job job = {.p = a->p.data,
                            .m = a->m.data,
                            .v = a->v.data,
                            .g = a->g.data,
                            .n = tensor_count(a->p),
                            .first = a->first,
                            .segments = a->segments,
                            .keep = two_of(1 - (FAULT("adamw_decay") ? decay : now->lr * decay)),
                            .beta1 = two_of(a->beta1),
                            .beta2 = two_of(a->beta2),
                            .factor = (float)value_of(a->factor, 1),
                            .one_less_beta1 = (float)(1 - a->beta1),
                            .one_less_beta2 = (float)(1 - a->beta2),
                            .step_size = (float)(now->lr / now->correction[0]),
                            .unbias = (float)(1 / sqrt(now->correction[1])),
                            .eps = (float)a->eps};
    pool_run(o->dev->pool, grain_tasks(job.n, 1), adamw_task, &job);
}

/* ---- SGD ------------------------------------------------------------------------------------- */

struct sgd_job {
    float *p, *m; /* m: or NULL */
    const float *g;
    int64_t n, first;
    struct tensor segments;
    float factor, lr, momentum, decay;
};

static inline void sgd_vector(const struct sgd_job *j, float decay, int64_t i, int64_t n)
{
    vf p = get(j->p + i, n);
    vf step = v_fma(get(j->g + i, n), v_set1(j->factor), p * v_set1(decay));
    if (j->m) {
        step = v_fma(get(j->m + i, n), v_set1(j->momentum), step);
        adamw_put(j->m + i, n, step);
    }
    adamw_put(j->p + i, n, v_fma(step, v_set1(-j->lr), p));
}

static void sgd_task(void *arg, int task, int thread)
{
    const struct sgd_job job = *(const struct sgd_job *)arg;
    struct range r = grain_range(job.n, 1, task);
    struct segment_run run;
    (void)thread;
    for (int64_t i = r.begin; i < r.end; i = run.end) {
        run = segment_run(job.segments, job.first, i, r.end);
        float decay = run.kind == SEGMENT_DECAYS ? job.decay : 0;
        if (run.kind == SEGMENT_STILL)
            continue;
        for (; i + VL <= run.end; i += VL)
            sgd_vector(&job, decay, i, VL);
        if (i < run.end)
            sgd_vector(&job, decay, i, run.end - i);
    }
}

void FAST(sgd)(struct ops *o, const void *args, void *scratch)
{
    const struct sgd_args *a = args;
    (void)scratch;
    if (!tensor_none(a->skip) && ints(a->skip)[0] != 0)
        return;
    const struct step_values *now = step_values_of(a->values);
    struct sgd_job job = {.p = a->p.data,
                          .m = tensor_none(a->m) ? NULL : a->m.data,
                          .g = a->g.data,
                          .n = tensor_count(a->p),
                          .first = a->first,
                          .segments = a->segments,
                          .factor = (float)value_of(a->factor, 1),
                          .lr = (float)now->lr,
                          .momentum = (float)a->momentum,
                          .decay = (float)now->decay};
    pool_run(o->dev->pool, grain_tasks(job.n, 1), sgd_task, &job);
}

/* ---- sum of squares -------------------------------------------------------------------------- */

enum { SUMS = 4 };

struct sumsq_job {
    const float *x;
    int64_t n;
    double *part; /* of each task */
};

/* The square of a float is exact in double. */
static void sumsq_task(void *arg, int task, int thread)
{
    const struct sumsq_job *j = arg;
    struct range r = grain_range(j->n, 1, task);
    const float *x = j->x;
    vd sum[SUMS] = {vd_zero(), vd_zero(), vd_zero(), vd_zero()};
    int64_t i = r.begin;
    double rest = 0;
    (void)thread;
    for (; i + 2 * VL <= r.end; i += 2 * VL) {
        vf a = v_load(x + i), b = v_load(x + i + VL);
        vd part[SUMS] = {v_low(a), v_high(a), v_low(b), v_high(b)};
        for (int s = 0; s < SUMS; s++)
            sum[s] = sum[s] + part[s] * part[s];
    }
    for (; i < r.end; i++)
        rest += (double)x[i] * (double)x[i];
    j->part[task] = vd_sum((sum[0] + sum[1]) + (sum[2] + sum[3])) + rest;
}

size_t FAST(sumsq_scratch)(const struct dev_desc *d, const void *args)
{
    const struct sumsq_args *a = args;
    (void)d;
    return (size_t)grain_tasks(tensor_count(a->x), 1) * sizeof(double);
}

void FAST(sumsq)(struct ops *o, const void *args, void *scratch)
{
    const struct sumsq_args *a = args;
    struct sumsq_job job = {a->x.data, tensor_count(a->x), scratch};
    int tasks = grain_tasks(job.n, 1);
    double total = 0;
    pool_run(o->dev->pool, tasks, sumsq_task, &job);
    for (int i = 0; i < tasks; i++)
        total += job.part[i];
    *(double *)a->total.data += total;
}

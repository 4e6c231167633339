/* SPDX-License-Identifier: Apache-2.0 */
#include "train/ops/cpu/fast.h"

#include <math.h>

#include "base/core/fault.h"
#include "train/ops/values.h"
#include "train/ops/cpu/vec_edge.h"
#include "train/ops/cpu/vec_math.h"

/*
 * Rows are independent; a task has some of them. Statistics go through a row once: a block's
 * maximum is found while the block comes into the nearest cache, then its exponentials are added up
 * while the next block is asked for. A larger maximum shrinks the sum so far.
 */

enum { BLOCK = 2048, LINE = 64 / sizeof(float), SUMS = 4, LOSS_WIDTH = 64 };

/* The label's column here, or -1. */
static int64_t label_column(struct tensor label, int64_t i, int64_t first, int64_t width)
{
    int64_t column = ints(label)[i] - first;
    return column >= 0 && column < width ? column : -1;
}

/* NaN is never the larger one. */
static float block_max(const float *x, int64_t n)
{
    vf lowest = v_set1(-INFINITY), m[SUMS] = {lowest, lowest, lowest, lowest};
    float max;
    int64_t j = 0;
    for (; j + SUMS * VL <= n; j += SUMS * VL)
        for (int s = 0; s < SUMS; s++)
            m[s] = v_max(v_load(x + j + s * VL), m[s]);
    for (; j + VL <= n; j += VL)
        m[0] = v_max(v_load(x + j), m[0]);
    max = v_max_lane(v_max(v_max(m[0], m[1]), v_max(m[2], m[3])));
    for (; j < n; j++)
        max = x[j] > max ? x[j] : max;
    return max;
}

/* The sum of exp(x - max); the `ahead` numbers behind them are asked for. */
static double block_sum(const float *x, int64_t n, int64_t ahead, float max)
{
    vf top = v_set1(max), sum[SUMS] = {v_zero(), v_zero(), v_zero(), v_zero()};
    int64_t j = 0;
    for (; j + SUMS * VL <= n; j += SUMS * VL) {
        for (int64_t k = j; k < j + SUMS * VL && k < ahead; k += LINE)
            __builtin_prefetch(x + n + k);
        for (int s = 0; s < SUMS; s++)
            sum[s] = sum[s] + v_exp(v_load(x + j + s * VL) - top);
    }
    for (; j + VL <= n; j += VL)
        sum[0] = sum[0] + v_exp(v_load(x + j) - top);
    if (j < n) {
        float rest[VL];
        for (int i = 0; i < VL; i++)
            rest[i] = -INFINITY; /* exp(-inf - 0) is 0, and max may be infinite */
        v_store_n(rest, n - j, v_load_n(x + j, n - j) - top);
        sum[1] = sum[1] + v_exp(v_load(rest));
    }
    return (double)v_sum((sum[0] + sum[1]) + (sum[2] + sum[3]));
}

/* *max is the row's maximum on return; it is input if `given`. */
static double row_sum(const float *x, int64_t width, bool given, float *max)
{
    double sum = 0;
    float top = given ? *max : -INFINITY;
    for (int64_t j = 0; j < width; j += BLOCK) {
        int64_t left = width - j, n = left < BLOCK ? left : BLOCK;
        int64_t ahead = left - n < BLOCK ? left - n : BLOCK;
        float here = given ? top : block_max(x + j, n);
        if (here > top) {
            sum *= exp((double)top - (double)here);
            top = here;
        }
        /* below any number: nothing but minus infinity so far, which weighs 0 later on */
        float base = !given && top < 0 && isinf(top) ? 0 : top;
        sum += block_sum(x + j, n, ahead, base);
    }
    *max = top;
    return !given && width && top < 0 && isinf(top) ? (double)NAN : sum;
}

static void stats_task(void *arg, int task, int thread)
{
    const struct xent_stats_args *a = arg;
    int64_t width = a->logits.size[1];
    struct range r = grain_range(a->logits.size[0], width, task);
    (void)thread;
    for (int64_t i = r.begin; i < r.end; i++) {
        const float *x = row(a->logits, i);
        int64_t label = label_column(a->label, i, a->first, width);
        float max = a->max_given ? row(a->max, 0)[i] : 0;
        row(a->sum, 0)[i] = (float)row_sum(x, width, a->max_given, &max);
        row(a->target, 0)[i] = label < 0 ? 0 : x[label];
        if (!a->max_given)
            row(a->max, 0)[i] = max;
    }
}

void FAST(xent_stats)(struct ops *o, const void *args, void *scratch)
{
    struct xent_stats_args a = *(const struct xent_stats_args *)args;
    (void)scratch;
    pool_run(o->dev->pool, grain_tasks(a.logits.size[0], a.logits.size[1]), stats_task, &a);
}

/* ---- loss and gradient ----------------------------------------------------------------------- */

struct loss_job {
    const struct xent_loss_args *a;
    double *total; /* of each task */
};

/* Elements of a row that count as work: without a gradient only a logarithm. */
static int64_t loss_width(const struct xent_loss_args *a)
{
    return a->grad ? a->logits.size[1] : LOSS_WIDTH;
}

/* x = by exp(x - max), times the slope of a cap that gave x (cap 0: none). */
static void scaled_exp(float *x, int64_t n, float max, float by, float cap)
{
    vf top = v_set1(max), f = v_set1(by), one = v_set1(1), inverse = v_set1(cap > 0 ? 1 / cap : 0);
    for (int64_t j = 0; j < n; j += VL) {
        vf v = v_get(x + j, n - j), t = v * inverse;
        vf g = v_exp(v - top) * f;
        v_put(x + j, n - j, cap > 0 ? g * (one - t * t) : g);
    }
}

/* The label's element alone may cancel: it is computed in double. */
static void logits_to_gradient(const struct xent_loss_args *a, int64_t i, double factor)
{
    int64_t width = a->logits.size[1], label = label_column(a->label, i, a->first, width);
    float *x = row(a->logits, i), max = row(a->max, 0)[i];
    double sum = (double)row(a->sum, 0)[i], at_label = label < 0 ? 0 : (double)x[label];
    if (factor == 0) {
        memset(x, 0, (size_t)width * sizeof(*x));
        return;
    }
    float cap = FAULT("head_cap") ? 0 : a->cap;
    double t = cap > 0 ? at_label / (double)cap : 0;
    scaled_exp(x, width, max, (float)(factor / sum), cap);
    if (label >= 0 && !FAULT("xent_grad"))
        x[label] = (float)((exp(at_label - (double)max) / sum - 1) * (1 - t * t) * factor);
}

static void loss_task(void *arg, int task, int thread)
{
    const struct loss_job *job = arg;
    const struct xent_loss_args *a = job->a;
    struct range r = grain_range(a->logits.size[0], loss_width(a), task);
    double total = 0, weight = loss_weight(a);
    (void)thread;
    for (int64_t i = r.begin; i < r.end; i++) {
        double mask = (double)row(a->mask, 0)[i], loss = 0;
        if (mask != 0)
            loss = (log((double)row(a->sum, 0)[i]) + (double)row(a->max, 0)[i] -
                    (double)row(a->target, 0)[i]) *
                   mask;
        row(a->loss, 0)[i] = (float)loss;
        total += loss;
        if (a->grad)
            logits_to_gradient(a, i, mask * weight);
    }
    job->total[task] = total;
}

size_t FAST(xent_loss_scratch)(const struct dev_desc *d, const void *args)
{
    const struct xent_loss_args *a = args;
    (void)d;
    return (size_t)grain_tasks(a->logits.size[0], loss_width(a)) * sizeof(double);
}

void FAST(xent_loss)(struct ops *o, const void *args, void *scratch)
{
    struct loss_job job = {args, scratch};
    int tasks = grain_tasks(job.a->logits.size[0], loss_width(job.a));
    double total = 0;
    struct xent_stats_args stats = loss_stats(job.a);
    if (job.a->alone)
        FAST(xent_stats)(o, &stats, NULL);
    pool_run(o->dev->pool, tasks, loss_task, &job);
    for (int i = 0; i < tasks; i++)
        total += job.total[i];
    *(double *)job.a->total.data += total;
}

/* ---- soft caps ------------------------------------------------------------------------------- */

static void cap_task(void *arg, int task, int thread)
{
    const struct cap_args *a = arg;
    int64_t width = a->x.size[1];
    struct range r = grain_range(a->x.size[0], width, task);
    vf cap = v_set1(a->cap), by = v_set1(1 / a->cap);
    (void)thread;
    for (int64_t i = r.begin; i < r.end; i++) {
        float *x = row(a->x, i);
        for (int64_t j = 0; j < width; j += VL)
            v_put(x + j, width - j, cap * v_tanh(v_get(x + j, width - j) * by));
    }
}

void FAST(cap)(struct ops *o, const void *args, void *scratch)
{
    struct cap_args a = *(const struct cap_args *)args;
    (void)scratch;
    pool_run(o->dev->pool, grain_tasks(a.x.size[0], a.x.size[1]), cap_task, &a);
}

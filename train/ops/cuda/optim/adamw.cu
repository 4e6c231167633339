/* SPDX-License-Identifier: Apache-2.0 */
#include <type_traits>

#include "train/ops/cuda/optim/rounding.cuh"
#include "train/ops/cuda/optim/sums.cuh"

extern "C" {
#include "train/ops/segments.h"
}

enum { THREADS = 256, SPAN = 1 << 13 };

/* ---- segments ---------------------------------------------------------------------------------
 */

struct segments {
    const update_segment *at; /* or NULL */
    int count;
    int64_t first; /* the place of the call's first element */
};

static segments segments_of(tensor t, int64_t first)
{
    return {(const update_segment *)t.data, tensor_none(t) ? 0 : (int)t.size[0], first};
}

/* The segment of element i. */
static __device__ int segment_at(const segments &s, int64_t i)
{
    int low = 0, high = s.count;
    while (high - low > 1) {
        int middle = (low + high) / 2;
        if (s.at[middle].begin <= s.first + i)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* Segment k, or the one after it that has element i; true: the n elements from i on are in it. */
static __device__ bool segment_follow(const segments &s, int &k, int64_t i, int n)
{
    while (k + 1 < s.count && s.at[k + 1].begin <= s.first + i)
        k++;
    return k + 1 >= s.count || s.at[k + 1].begin >= s.first + i + n;
}

static __device__ int segment_kind(const segments &s, int k)
{
    return s.count ? s.at[k].kind : SEGMENT_DECAYS;
}

/* The block's elements [begin, end): f(V, i, kind) for V of them from i on that are alike. */
template <int VEC, class F>
static __device__ void by_segments(const segments &s, int64_t begin, int64_t end, F f)
{
    __shared__ int shared;
    if (threadIdx.x == 0)
        shared = segment_at(s, begin);
    __syncthreads();
    int k = shared;
    for (int64_t i = begin + threadIdx.x * VEC; i < end; i += THREADS * VEC) {
        if (segment_follow(s, k, i, VEC) && i + VEC <= end) {
            f(std::integral_constant<int, VEC>(), i, segment_kind(s, k));
            continue;
        }
        for (int64_t e = i; e < i + VEC && e < end; e++) {
            segment_follow(s, k, e, 1);
            f(std::integral_constant<int, 1>(), e, segment_kind(s, k));
        }
    }
}

/* ---- AdamW, and SGD below: one pass, in float --------------------------------------------------
 */

struct adamw_job {
    flat p, g, m, v, copy; /* copy: of p, or none */
    const double *factor;
    const int32_t *skip;
    const step_values *values;
    segments parts;
    int64_t n;
    two beta1, beta2;
    float one_less_beta1, one_less_beta2, eps;
    rounder round;
};

/* What follows from the values of the step. */
struct adamw_now {
    two keep;
    float factor, step_size, unbias;
};

static __device__ adamw_now adamw_begin(const adamw_job &j)
{
    const step_values v = *j.values;
    return {two_of(1 - v.lr * v.decay), j.factor ? (float)*j.factor : 1,
            (float)(v.lr / v.correction[0]), (float)(1 / sqrt(v.correction[1]))};
}

/* Of a block of threads, with stochastic rounding: keys of weights and moments, the run of its
 * first element. */
struct round_now {
    uint64_t key[3];
    int run;
};

template <bool ROUND>
static __device__ round_now round_begin(const rounder &r, int64_t begin, round_now &shared)
{
    if constexpr (ROUND) {
        if (threadIdx.x < 3)
            shared.key[threadIdx.x] = rounder_key(r, threadIdx.x);
        if (threadIdx.x == 0)
            shared.run = rounder_run(r, begin);
        __syncthreads();
        return shared;
    } else {
        return {};
    }
}

template <int VEC, bool ROUND>
static __device__ void adamw_elements(const adamw_job &j, const adamw_now &now, two keep, int64_t i,
                                      round_now &round)
{
    float p[VEC], g[VEC], m[VEC], v[VEC];
    flat_load(p, j.p, i);
    flat_load(g, j.g, i);
    flat_load(m, j.m, i);
    flat_load(v, j.v, i);
    for (int k = 0; k < VEC; k++) {
        g[k] *= now.factor;
        m[k] = times(m[k], j.beta1, g[k] * j.one_less_beta1);
        v[k] = times(v[k], j.beta2, g[k] * j.one_less_beta2 * g[k]);
        p[k] = times(p[k], keep, -now.step_size * m[k] / fmaf(sqrtf(v[k]), now.unbias, j.eps));
    }
    if constexpr (ROUND) {
        const round_place at = rounder_place(j.round, round.run, i, VEC);
        flat_store_rounded(j.p, i, p, j.round, at, round.run, round.key[ROUND_WEIGHT]);
        flat_store_rounded(j.m, i, m, j.round, at, round.run, round.key[ROUND_MOMENT]);
        flat_store_rounded(j.v, i, v, j.round, at, round.run, round.key[ROUND_MOMENT + 1]);
    } else {
        flat_store(j.p, i, p);
        flat_store(j.m, i, m);
        flat_store(j.v, i, v);
    }
    if (j.copy.p)
        flat_store(j.copy, i, p);
}

/* A block has SPAN elements, so that what follows from the values is computed seldom. */
template <int VEC, bool ROUND>
static __global__ void __launch_bounds__(THREADS) adamw(const adamw_job j)
{
    __shared__ adamw_now shared;
    __shared__ round_now shared_round;
    const int64_t begin = (int64_t)blockIdx.x * SPAN, end = begin + SPAN < j.n ? begin + SPAN : j.n;
    if (j.skip && *j.skip)
        return;
    if (threadIdx.x == 0)
        shared = adamw_begin(j);
    __syncthreads();
    const adamw_now now = shared;
    round_now round = round_begin<ROUND>(j.round, begin, shared_round);
    by_segments<VEC>(j.parts, begin, end, [&](auto width, int64_t i, int kind) {
        if (kind != SEGMENT_STILL)
            adamw_elements<decltype(width)::value, ROUND>(
                j, now, kind == SEGMENT_DECAYS ? now.keep : two{1, 0}, i, round);
    });
}

extern "C" void cuda_adamw(ops *o, const void *args, void *)
{
    const adamw_args *a = (const adamw_args *)args;
    adamw_job j = {.p = flat_of(a->p),
                   .g = flat_of(a->g),
                   .m = flat_of(a->m),
                   .v = flat_of(a->v),
                   .copy = flat_of(a->copy),
                   .factor = (const double *)a->factor.data,
                   .skip = (const int32_t *)a->skip.data,
                   .values = (const step_values *)a->values.data,
                   .parts = segments_of(a->segments, a->first),
                   .n = tensor_count(a->p),
                   .beta1 = two_of(a->beta1),
                   .beta2 = two_of(a->beta2),
                   .one_less_beta1 = (float)(1 - a->beta1),
                   .one_less_beta2 = (float)(1 - a->beta2),
                   .eps = (float)a->eps,
                   .round = rounder_of(a->round)};
    if (!j.n)
        return;
    const int vec = j.round.run ? EIGHT : 4;
    const bool wide = flat_aligned(a->p, vec) && flat_aligned(a->g, vec) &&
                      flat_aligned(a->m, vec) && flat_aligned(a->v, vec) &&
                      flat_aligned(a->copy, vec);
    auto kernel = j.round.run ? (wide ? adamw<EIGHT, true> : adamw<1, true>)
                              : (wide ? adamw<4, false> : adamw<1, false>);
    kernel<<<(unsigned)ceil_div(j.n, SPAN), THREADS, 0, stream_of(o)>>>(j);
    dev_cuda_check(o->dev, "launch");
}

/* ---- SGD ---------------------------------------------------------------------------------------
 */

struct sgd_job {
    flat p, m, g, copy; /* m, copy: or none */
    const double *factor;
    const int32_t *skip;
    const step_values *values;
    segments parts;
    int64_t n;
    float momentum;
    rounder round;
};

template <int VEC, bool ROUND>
static __device__ void sgd_elements(const sgd_job &j, float factor, bool decays, int64_t i,
                                    round_now &round)
{
    const float lr = (float)j.values->lr, decay = decays ? (float)j.values->decay : 0;
    float p[VEC], g[VEC], m[VEC] = {0};
    flat_load(p, j.p, i);
    flat_load(g, j.g, i);
    if (j.m.p)
        flat_load(m, j.m, i);
    for (int k = 0; k < VEC; k++) {
        g[k] = fmaf(g[k], factor, p[k] * decay);
        m[k] = j.m.p ? fmaf(m[k], j.momentum, g[k]) : g[k];
        p[k] = fmaf(m[k], -lr, p[k]);
    }
    if constexpr (ROUND) {
        const round_place at = rounder_place(j.round, round.run, i, VEC);
        flat_store_rounded(j.p, i, p, j.round, at, round.run, round.key[ROUND_WEIGHT]);
        if (j.m.p)
            flat_store_rounded(j.m, i, m, j.round, at, round.run, round.key[ROUND_MOMENT]);
    } else {
        flat_store(j.p, i, p);
        if (j.m.p)
            flat_store(j.m, i, m);
    }
    if (j.copy.p)
        flat_store(j.copy, i, p);
}

template <int VEC, bool ROUND>
static __global__ void __launch_bounds__(THREADS) sgd(const sgd_job j)
{
    __shared__ round_now shared;
    const int64_t begin = (int64_t)blockIdx.x * SPAN, end = begin + SPAN < j.n ? begin + SPAN : j.n;
    if (j.skip && *j.skip)
        return;
    round_now round = round_begin<ROUND>(j.round, begin, shared);
    float factor = j.factor ? (float)*j.factor : 1;
    by_segments<VEC>(j.parts, begin, end, [&](auto width, int64_t i, int kind) {
        if (kind != SEGMENT_STILL)
            sgd_elements<decltype(width)::value, ROUND>(j, factor, kind == SEGMENT_DECAYS, i,
                                                        round);
    });
}

extern "C" void cuda_sgd(ops *o, const void *args, void *)
{
    const sgd_args *a = (const sgd_args *)args;
    sgd_job j = {.p = flat_of(a->p),
                 .m = flat_of(a->m),
                 .g = flat_of(a->g),
                 .copy = flat_of(a->copy),
                 .factor = (const double *)a->factor.data,
                 .skip = (const int32_t *)a->skip.data,
                 .values = (const step_values *)a->values.data,
                 .parts = segments_of(a->segments, a->first),
                 .n = tensor_count(a->p),
                 .momentum = (float)a->momentum,
                 .round = rounder_of(a->round)};
    if (!j.n)
        return;
    const int vec = j.round.run ? EIGHT : 4;
    const bool wide = flat_aligned(a->p, vec) && flat_aligned(a->g, vec) &&
                      flat_aligned(a->m, vec) && flat_aligned(a->copy, vec);
    auto kernel = j.round.run ? (wide ? sgd<EIGHT, true> : sgd<1, true>)
                              : (wide ? sgd<4, false> : sgd<1, false>);
    kernel<<<(unsigned)ceil_div(j.n, SPAN), THREADS, 0, stream_of(o)>>>(j);
    dev_cuda_check(o->dev, "launch");
}

/* ---- sum of squares --------------------------------------------------------------------------
 */

struct squares {
    __device__ double of(double x) const
    {
        return x * x;
    }
};

extern "C" size_t cuda_sumsq_scratch(const dev_desc *, const void *args)
{
    return sum_scratch(((const sumsq_args *)args)->x);
}

extern "C" void cuda_sumsq(ops *o, const void *args, void *scratch)
{
    const sumsq_args *a = (const sumsq_args *)args;
    double *total = (double *)a->total.data;
    sum_add(o, a->x, squares{}, (double *)scratch, total, NULL);
}

/* ---- clipping ----------------------------------------------------------------------------------
 */

static __global__ void clip(const double *total, const double *count, const double *scale,
                            double *norm, double *factor, int32_t *skip, double max_norm)
{
    double share = (count && *count > 1 ? *count : 1) * (scale ? *scale : 1);
    double length = sqrt(*total) / share, f = 1;
    bool finite = isfinite(length);
    if (!finite)
        f = 0;
    else if (max_norm > 0 && max_norm / (length + 1e-6) < 1)
        f = max_norm / (length + 1e-6);
    *norm = length;
    *factor = f / share;
    *skip = finite ? 0 : 1;
}

extern "C" void cuda_clip(ops *o, const void *args, void *)
{
    const clip_args *a = (const clip_args *)args;
    clip<<<1, 1, 0, stream_of(o)>>>((const double *)a->total.data, (const double *)a->count.data,
                                    (const double *)a->scale.data, (double *)a->norm.data,
                                    (double *)a->factor.data, (int32_t *)a->skip.data, a->max_norm);
    dev_cuda_check(o->dev, "launch");
}

/* ---- the values of a step ----------------------------------------------------------------------
 */

static __global__ void select_row(const double *x, const int32_t *skip, double *y, int n)
{
    if ((int)threadIdx.x < n)
        y[threadIdx.x] = x[(*skip ? n : 0) + (int)threadIdx.x];
}

extern "C" void cuda_select(ops *o, const void *args, void *)
{
    const select_args *a = (const select_args *)args;
    const int n = (int)a->y.size[0];
    select_row<<<1, threads_for(n, 1024), 0, stream_of(o)>>>(
        (const double *)a->x.data, (const int32_t *)a->skip.data, (double *)a->y.data, n);
    dev_cuda_check(o->dev, "launch");
}

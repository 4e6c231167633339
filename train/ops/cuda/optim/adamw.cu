/* SPDX-License-Identifier: Apache-2.0 */
#include <type_traits>

#include "train/ops/cuda/optim/flat.cuh"

extern "C" {
#include "train/ops/segments.h"
}

enum { THREADS = 256, CHUNK = 1 << 15, PARTS = 1024, SPAN = 1 << 13 };

/*
 * A factor as base + rest, base 1 or 0: what a factor near 1 takes away may be so small that
 * rounding the factor itself would change it by a thousandth.
 */
struct two {
    float base, rest;
};

static __host__ __device__ two two_of(double x)
{
    double base = x > 0.5 ? 1 : 0;
    return {(float)base, (float)(x - base)};
}

static __device__ float times(float x, two t, float add)
{
    return fmaf(x, t.base, fmaf(x, t.rest, add));
}

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

template <int VEC>
static __device__ void adamw_elements(const adamw_job &j, const adamw_now &now, two keep, int64_t i)
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
    flat_store(j.p, i, p);
    flat_store(j.m, i, m);
    flat_store(j.v, i, v);
    if (j.copy.p)
        flat_store(j.copy, i, p);
}

/* A block has SPAN elements, so that what follows from the values is computed seldom. */
template <int VEC> static __global__ void __launch_bounds__(THREADS) adamw(const adamw_job j)
{
    __shared__ adamw_now shared;
    const int64_t begin = (int64_t)blockIdx.x * SPAN, end = begin + SPAN < j.n ? begin + SPAN : j.n;
    if (j.skip && *j.skip)
        return;
    if (threadIdx.x == 0)
        shared = adamw_begin(j);
    __syncthreads();
    const adamw_now now = shared;
    by_segments<VEC>(j.parts, begin, end, [&](auto width, int64_t i, int kind) {
        if (kind != SEGMENT_STILL)
            adamw_elements<decltype(width)::value>(
                j, now, kind == SEGMENT_DECAYS ? now.keep : two{1, 0}, i);
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
                   .eps = (float)a->eps};
    if (!j.n)
        return;
    if (flat_aligned(a->p) && flat_aligned(a->g) && flat_aligned(a->m) && flat_aligned(a->v) &&
        (tensor_none(a->copy) || flat_aligned(a->copy)))
        adamw<4><<<(unsigned)ceil_div(j.n, SPAN), THREADS, 0, stream_of(o)>>>(j);
    else
        adamw<1><<<(unsigned)ceil_div(j.n, SPAN), THREADS, 0, stream_of(o)>>>(j);
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
};

template <int VEC>
static __device__ void sgd_elements(const sgd_job &j, float factor, bool decays, int64_t i)
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
    flat_store(j.p, i, p);
    if (j.m.p)
        flat_store(j.m, i, m);
    if (j.copy.p)
        flat_store(j.copy, i, p);
}

template <int VEC> static __global__ void __launch_bounds__(THREADS) sgd(const sgd_job j)
{
    const int64_t begin = (int64_t)blockIdx.x * SPAN, end = begin + SPAN < j.n ? begin + SPAN : j.n;
    if (j.skip && *j.skip)
        return;
    float factor = j.factor ? (float)*j.factor : 1;
    by_segments<VEC>(j.parts, begin, end, [&](auto width, int64_t i, int kind) {
        if (kind != SEGMENT_STILL)
            sgd_elements<decltype(width)::value>(j, factor, kind == SEGMENT_DECAYS, i);
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
                 .momentum = (float)a->momentum};
    if (!j.n)
        return;
    if (flat_aligned(a->p) && flat_aligned(a->g) && (tensor_none(a->m) || flat_aligned(a->m)) &&
        (tensor_none(a->copy) || flat_aligned(a->copy)))
        sgd<4><<<(unsigned)ceil_div(j.n, SPAN), THREADS, 0, stream_of(o)>>>(j);
    else
        sgd<1><<<(unsigned)ceil_div(j.n, SPAN), THREADS, 0, stream_of(o)>>>(j);
    dev_cuda_check(o->dev, "launch");
}

/* ---- sum of squares: by chunks, in double ------------------------------------------------------
 */

/* At most PARTS blocks; a block's range is a multiple of CHUNK. */
static int64_t range_of(int64_t n)
{
    return ceil_div(ceil_div(n, PARTS), CHUNK) * CHUNK;
}

static __device__ double square(float x)
{
    return (double)x * (double)x;
}

template <bool WIDE, class T>
static __global__ void __launch_bounds__(THREADS)
    sumsq_parts(const T *x, int64_t n, int64_t range, double *part)
{
    __shared__ double warps[32];
    int64_t begin = blockIdx.x * range, end = begin + range < n ? begin + range : n;
    double sum = 0;
    int64_t i = begin + threadIdx.x * (WIDE ? 4 : 1);
    if (WIDE) {
#pragma unroll 4
        for (; i + 4 <= end; i += THREADS * 4) {
            float v[4];
            load(v, x + i);
            sum += (square(v[0]) + square(v[1])) + (square(v[2]) + square(v[3]));
        }
        for (; i < end && i < n; i++) /* the last, incomplete vector is one thread's */
            sum += square((float)x[i]);
    } else {
        for (; i < end; i += THREADS)
            sum += square((float)x[i]);
    }
    sum = block_sum(sum, warps);
    if (threadIdx.x == 0)
        part[blockIdx.x] = sum;
}

static __global__ void __launch_bounds__(THREADS)
    sumsq_total(const double *part, int parts, double *total)
{
    __shared__ double warps[32];
    double sum = 0;
    for (int i = (int)threadIdx.x; i < parts; i += THREADS)
        sum += part[i];
    sum = block_sum(sum, warps);
    if (threadIdx.x == 0)
        *total += sum;
}

extern "C" size_t cuda_sumsq_scratch(const dev_desc *, const void *args)
{
    int64_t n = tensor_count(((const sumsq_args *)args)->x);
    return n ? (size_t)ceil_div(n, range_of(n)) * sizeof(double) : 0;
}

template <class T> static void issue_parts(ops *o, tensor x, int64_t range, double *part)
{
    int64_t n = tensor_count(x);
    unsigned parts = (unsigned)ceil_div(n, range);
    if (flat_aligned(x))
        sumsq_parts<true><<<parts, THREADS, 0, stream_of(o)>>>((const T *)x.data, n, range, part);
    else
        sumsq_parts<false><<<parts, THREADS, 0, stream_of(o)>>>((const T *)x.data, n, range, part);
}

extern "C" void cuda_sumsq(ops *o, const void *args, void *scratch)
{
    const sumsq_args *a = (const sumsq_args *)args;
    int64_t n = tensor_count(a->x);
    double *part = (double *)scratch;
    if (!n)
        return;
    int64_t range = range_of(n);
    by_grad_type(a->x.dtype, [&](auto t) { issue_parts<decltype(t)>(o, a->x, range, part); });
    sumsq_total<<<1, THREADS, 0, stream_of(o)>>>(part, (int)ceil_div(n, range),
                                                 (double *)a->total.data);
    dev_cuda_check(o->dev, "launch");
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

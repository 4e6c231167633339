/* SPDX-License-Identifier: Apache-2.0 */
#include "train/ops/cuda/device.cuh"

enum { THREADS = 256, CHUNK = 1 << 15, PARTS = 1024 };

/* ---- AdamW: one pass in float -----------------------------------------------------------------
 */

/*
 * A factor as base + rest, base 1 or 0: what a factor near 1 takes away may be so small that
 * rounding the factor itself would change it by a thousandth.
 */
struct two {
    float base, rest;
};

static two two_of(double x)
{
    double base = x > 0.5 ? 1 : 0;
    return {(float)base, (float)(x - base)};
}

static __device__ float times(float x, two t, float add)
{
    return fmaf(x, t.base, fmaf(x, t.rest, add));
}

struct adamw_job {
    float *p, *m, *v;
    const float *g;
    bf16 *copy; /* of p; or NULL */
    const double *factor;
    const int32_t *skip;
    int64_t n;
    two keep, beta1, beta2;
    float one_less_beta1, one_less_beta2, step_size, unbias, eps;
};

static __device__ void adamw_element(const adamw_job &j, float factor, float &p, float g, float &m,
                                     float &v)
{
    g *= factor;
    m = times(m, j.beta1, g * j.one_less_beta1);
    v = times(v, j.beta2, g * j.one_less_beta2 * g);
    p = times(p, j.keep, -j.step_size * m / fmaf(sqrtf(v), j.unbias, j.eps));
}

template <int VEC> static __global__ void __launch_bounds__(THREADS) adamw(const adamw_job j)
{
    int64_t i = ((int64_t)blockIdx.x * THREADS + threadIdx.x) * VEC;
    if (i >= j.n || (j.skip && *j.skip))
        return;
    float factor = j.factor ? (float)*j.factor : 1;
    if (VEC > 1 && i + VEC > j.n) {
        for (; i < j.n; i++) {
            adamw_element(j, factor, j.p[i], j.g[i], j.m[i], j.v[i]);
            if (j.copy)
                j.copy[i] = __float2bfloat16(j.p[i]);
        }
        return;
    }
    float p[VEC], g[VEC], m[VEC], v[VEC];
    load(p, j.p + i);
    load(g, j.g + i);
    load(m, j.m + i);
    load(v, j.v + i);
    for (int k = 0; k < VEC; k++)
        adamw_element(j, factor, p[k], g[k], m[k], v[k]);
    store(j.p + i, p);
    store(j.m + i, m);
    store(j.v + i, v);
    if constexpr (VEC == 4) {
        if (j.copy)
            *(uint2 *)(j.copy + i) = make_uint2(narrow_two(p[0], p[1]), narrow_two(p[2], p[3]));
    } else if (j.copy) {
        store(j.copy + i, p);
    }
}

/* A tensor of any rank that has no gaps: only its address matters. */
static bool flat_aligned(tensor t)
{
    return (uintptr_t)t.data % 16 == 0;
}

extern "C" void cuda_adamw(ops *o, const void *args, void *)
{
    const adamw_args *a = (const adamw_args *)args;
    adamw_job j = {.p = (float *)a->p.data,
                   .m = (float *)a->m.data,
                   .v = (float *)a->v.data,
                   .g = (const float *)a->g.data,
                   .copy = (bf16 *)a->copy.data,
                   .factor = (const double *)a->factor.data,
                   .skip = (const int32_t *)a->skip.data,
                   .n = tensor_count(a->p),
                   .keep = two_of(1 - a->lr * a->decay),
                   .beta1 = two_of(a->beta1),
                   .beta2 = two_of(a->beta2),
                   .one_less_beta1 = (float)(1 - a->beta1),
                   .one_less_beta2 = (float)(1 - a->beta2),
                   .step_size = (float)(a->lr / (1 - pow(a->beta1, (double)a->step))),
                   .unbias = (float)(1 / sqrt(1 - pow(a->beta2, (double)a->step))),
                   .eps = (float)a->eps};
    if (!j.n)
        return;
    if (flat_aligned(a->p) && flat_aligned(a->g) && flat_aligned(a->m) && flat_aligned(a->v) &&
        (uintptr_t)a->copy.data % 8 == 0)
        adamw<4><<<(unsigned)ceil_div(j.n, THREADS * 4), THREADS, 0, stream_of(o)>>>(j);
    else
        adamw<1><<<(unsigned)ceil_div(j.n, THREADS), THREADS, 0, stream_of(o)>>>(j);
    dev_cuda_check(o->dev, "launch");
}

/* ---- SGD ---------------------------------------------------------------------------------------
 */

struct sgd_job {
    float *p, *m; /* m: or NULL */
    const float *g;
    bf16 *copy; /* of p; or NULL */
    const double *factor;
    const int32_t *skip;
    int64_t n;
    float lr, momentum, decay;
};

static __global__ void __launch_bounds__(THREADS) sgd(const sgd_job j)
{
    int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (i >= j.n || (j.skip && *j.skip))
        return;
    float factor = j.factor ? (float)*j.factor : 1;
    float step = fmaf(j.g[i], factor, j.p[i] * j.decay);
    if (j.m)
        j.m[i] = step = fmaf(j.m[i], j.momentum, step);
    j.p[i] = fmaf(step, -j.lr, j.p[i]);
    if (j.copy)
        j.copy[i] = __float2bfloat16(j.p[i]);
}

extern "C" void cuda_sgd(ops *o, const void *args, void *)
{
    const sgd_args *a = (const sgd_args *)args;
    sgd_job j = {.p = (float *)a->p.data,
                 .m = (float *)a->m.data,
                 .g = (const float *)a->g.data,
                 .copy = (bf16 *)a->copy.data,
                 .factor = (const double *)a->factor.data,
                 .skip = (const int32_t *)a->skip.data,
                 .n = tensor_count(a->p),
                 .lr = (float)a->lr,
                 .momentum = (float)a->momentum,
                 .decay = (float)a->decay};
    if (!j.n)
        return;
    sgd<<<(unsigned)ceil_div(j.n, THREADS), THREADS, 0, stream_of(o)>>>(j);
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

template <bool WIDE>
static __global__ void __launch_bounds__(THREADS)
    sumsq_parts(const float *x, int64_t n, int64_t range, double *part)
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
            sum += square(x[i]);
    } else {
        for (; i < end; i += THREADS)
            sum += square(x[i]);
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

extern "C" void cuda_sumsq(ops *o, const void *args, void *scratch)
{
    const sumsq_args *a = (const sumsq_args *)args;
    const float *x = (const float *)a->x.data;
    int64_t n = tensor_count(a->x);
    if (!n)
        return;
    int64_t range = range_of(n);
    int parts = (int)ceil_div(n, range);
    if (flat_aligned(a->x))
        sumsq_parts<true><<<parts, THREADS, 0, stream_of(o)>>>(x, n, range, (double *)scratch);
    else
        sumsq_parts<false><<<parts, THREADS, 0, stream_of(o)>>>(x, n, range, (double *)scratch);
    sumsq_total<<<1, THREADS, 0, stream_of(o)>>>((const double *)scratch, parts,
                                                 (double *)a->total.data);
    dev_cuda_check(o->dev, "launch");
}

/* ---- clipping ----------------------------------------------------------------------------------
 */

static __global__ void clip(const double *total, const double *count, double *norm, double *factor,
                            int32_t *skip, double max_norm)
{
    double share = count && *count > 1 ? *count : 1, length = sqrt(*total) / share, f = 1;
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
                                    (double *)a->norm.data, (double *)a->factor.data,
                                    (int32_t *)a->skip.data, a->max_norm);
    dev_cuda_check(o->dev, "launch");
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "train/ops/cuda/device.cuh"

enum { THREADS = 512 };

/* The label's column here, or -1. */
static __device__ int64_t label_column(int32_t label, int64_t first, int64_t width)
{
    int64_t column = label - first;
    return column >= 0 && column < width ? column : -1;
}

/* ---- stats: a block for each row, one pass ------------------------------------------------------
 */

/* exp(x); what was read with 16 bits does not need expf's last bits, which cost as much as reading
 * it.
 */
template <class T> static __device__ float exp_of(float x)
{
    return sizeof(T) == 4 ? expf(x) : exp2f(x * 1.44269504088896340736f);
}

/* max and the sum of exp(x - max) of what was seen; an empty one has -INFINITY and 0. */
struct peak {
    float max, sum;
};

/* What is subtracted: a finite number while nothing finite was seen, so that a NaN stays one. */
static __device__ float base_of(float max)
{
    return max == -INFINITY ? 0 : max;
}

static __device__ peak join(peak a, peak b)
{
    float max = fmaxf(a.max, b.max), base = base_of(max);
    return {max, a.sum * expf(a.max - base) + b.sum * expf(b.max - base)};
}

template <class T, int VEC> static __device__ peak add(peak p, const float (&x)[VEC])
{
    float max = p.max;
    for (int k = 0; k < VEC; k++)
        max = fmaxf(max, x[k]);
    float base = base_of(max), sum = 0;
    for (int k = 0; k < VEC; k++)
        sum += exp_of<T>(x[k] - base);
    return {max, max > p.max ? fmaf(p.sum, expf(p.max - base), sum) : p.sum + sum};
}

static __device__ peak warp_join(peak p)
{
    for (int k = 16; k; k /= 2)
        p = join(p, {__shfl_xor_sync(~0u, p.max, k), __shfl_xor_sync(~0u, p.sum, k)});
    return p;
}

/* That of a block, in every thread. */
template <int SIZE> static __device__ peak block_join(peak p, peak (&peaks)[32])
{
    p = warp_join(p);
    if (threadIdx.x % 32 == 0)
        peaks[threadIdx.x / 32] = p;
    __syncthreads();
    p = warp_join(threadIdx.x % 32 < SIZE / 32 ? peaks[threadIdx.x % 32] : peak{-INFINITY, 0});
    if (isinf(p.max)) /* nothing but -INFINITY, or a +INFINITY: the sum is not a number */
        p.sum = NAN;
    return p;
}

template <class T> struct stats_job {
    mat_in<T> logits;
    const int32_t *label;
    float *max, *sum, *target;
    int64_t width, first;
    bool max_given;
};

template <int VEC, class T>
static __global__ void __launch_bounds__(THREADS) xent_stats(const stats_job<T> j)
{
    __shared__ float part[32];
    __shared__ peak peaks[32];
    int64_t i = blockIdx.x;
    const T *x = j.logits.row(i);
    peak p = {-INFINITY, 0};
    float given = j.max_given ? j.max[i] : 0, sum = 0;
    const int64_t whole = j.width / VEC * VEC; /* the columns behind it are read one at a time */
#pragma unroll 4
    for (int64_t c = threadIdx.x * VEC; c < whole; c += THREADS * VEC) {
        float v[VEC];
        load(v, x + c);
        if (j.max_given)
            for (int k = 0; k < VEC; k++)
                sum += exp_of<T>(v[k] - given);
        else
            p = add<T>(p, v);
    }
    if (whole + threadIdx.x < j.width) {
        float v[1];
        load(v, x + whole + threadIdx.x);
        if (j.max_given)
            sum += exp_of<T>(v[0] - given);
        else
            p = add<T>(p, v);
    }
    if (j.max_given) {
        p = {given, block_sum(sum, part)};
    } else {
        p = block_join<THREADS>(p, peaks);
    }
    if (threadIdx.x == 0) {
        int64_t column = label_column(j.label[i], j.first, j.width);
        j.max[i] = p.max;
        j.sum[i] = p.sum;
        j.target[i] = column < 0 ? 0.0f : (float)x[column];
    }
}

template <class T> static void issue_stats(ops *o, const xent_stats_args *a)
{
    const int vec = wide_of<T>();
    int64_t n = a->logits.size[0], width = a->logits.size[1];
    stats_job<T> j = {mat_in_of<T>(a->logits),
                      ints_of(a->label),
                      (float *)a->max.data,
                      (float *)a->sum.data,
                      (float *)a->target.data,
                      width,
                      a->first,
                      a->max_given};
    if (aligned(a->logits))
        xent_stats<vec><<<(unsigned)n, THREADS, 0, stream_of(o)>>>(j);
    else
        xent_stats<1><<<(unsigned)n, THREADS, 0, stream_of(o)>>>(j);
    dev_cuda_check(o->dev, "launch");
}

extern "C" void cuda_xent_stats(ops *o, const void *args, void *)
{
    const xent_stats_args *a = (const xent_stats_args *)args;
    if (!a->logits.size[0])
        return;
    by_type(a->logits.dtype, [&](auto t) { issue_stats<decltype(t)>(o, a); });
}

/* ---- loss and gradient --------------------------------------------------------------------------
 */

struct loss_job {
    const int32_t *label;
    const float *max, *sum, *target, *mask;
    float *loss;
    double *total;
    int64_t n, width, first;
    double scale;
    const double *factor, *divisor; /* or NULL */
    float cap;                      /* 0: none */
};

static __device__ double weight_of(const loss_job &j)
{
    double divisor = j.divisor ? *j.divisor : 1;
    return divisor > 0 ? j.scale * (j.factor ? *j.factor : 1) / divisor : 0;
}

/* One block, so that the sum has one order. */
static __global__ void __launch_bounds__(1024) xent_loss(const loss_job j)
{
    __shared__ double part[32];
    double total = 0;
    for (int64_t i = threadIdx.x; i < j.n; i += blockDim.x) {
        double mask = (double)j.mask[i], loss = 0;
        if (mask != 0)
            loss = (log((double)j.sum[i]) + (double)j.max[i] - (double)j.target[i]) * mask;
        j.loss[i] = (float)loss;
        total += loss;
    }
    total = block_sum(total, part);
    if (threadIdx.x == 0)
        *j.total += total;
}

/* What the gradient of a row's logits needs. */
struct row_slope {
    double factor, sum;
    float max, by, cap;
    int64_t label;
};

template <class T> static __device__ float slope_of(const row_slope &r, float x, int64_t column)
{
    float t = r.cap > 0 ? x / r.cap : 0, by = 1 - t * t; /* the slope of the cap */
    if (r.factor == 0)
        return 0;
    if (column == r.label) /* a probability near 1 loses its digits here */
        return (float)((exp((double)x - (double)r.max) / r.sum - 1) * r.factor) * by;
    return exp_of<T>(x - r.max) * r.by * by;
}

template <int VEC, class T>
static __global__ void __launch_bounds__(THREADS) xent_gradient(const loss_job j, mat_in<T> logits)
{
    const int64_t i = blockIdx.x, whole = j.width / VEC * VEC, last = whole + threadIdx.x;
    row_slope r = {(double)j.mask[i] * weight_of(j),          (double)j.sum[i], j.max[i], 0, j.cap,
                   label_column(j.label[i], j.first, j.width)};
    r.by = (float)(r.factor / r.sum);
    T *x = logits.row(i);
#pragma unroll 2
    for (int64_t c = threadIdx.x * VEC; c < whole; c += THREADS * VEC) {
        float v[VEC];
        load(v, x + c);
        for (int k = 0; k < VEC; k++)
            v[k] = slope_of<T>(r, v[k], c + k);
        store(x + c, v);
    }
    if (last < j.width) {
        float v[1];
        load(v, x + last);
        v[0] = slope_of<T>(r, v[0], last);
        store(x + last, v);
    }
}

template <class T> static void issue_gradient(ops *o, tensor logits, const loss_job &j)
{
    const int vec = wide_of<T>();
    mat_in<T> x = mat_in_of<T>(logits);
    if (aligned(logits))
        xent_gradient<vec><<<(unsigned)j.n, THREADS, 0, stream_of(o)>>>(j, x);
    else
        xent_gradient<1><<<(unsigned)j.n, THREADS, 0, stream_of(o)>>>(j, x);
}

/* ---- both for a whole vocabulary: a block for each row, which is read from memory once
 * -----------
 */

/*
 * What of a row fits shared memory stays there between its statistics and its gradient; the rest of
 * the rows in flight, at most two on a processor, is found in the L2 cache.
 */
template <int SIZE, int VEC, class T>
static __global__ void __launch_bounds__(SIZE)
    xent_whole(const stats_job<T> s, const loss_job j, int64_t kept)
{
    extern __shared__ __align__(16) unsigned char memory[];
    __shared__ peak peaks[32];
    const int64_t i = blockIdx.x, whole = j.width / VEC * VEC, last = whole + threadIdx.x;
    const int64_t label = label_column(j.label[i], j.first, j.width);
    T *const x = s.logits.row(i), *const held = (T *)memory;
    float target = threadIdx.x == 0 && label >= 0 ? (float)x[label] : 0, end[1] = {0};
    peak p = {-INFINITY, 0};
#pragma unroll 4
    for (int64_t c = threadIdx.x * VEC; c < whole; c += SIZE * VEC) {
        float v[VEC];
        load(v, x + c);
        if (c < kept)
            store(held + c, v);
        p = add<T>(p, v);
    }
    if (last < j.width) {
        load(end, x + last);
        p = add<T>(p, end);
    }
    p = block_join<SIZE>(p, peaks); /* and nobody writes before everybody has read */
    if (threadIdx.x == 0) {
        s.max[i] = p.max;
        s.sum[i] = p.sum;
        s.target[i] = target;
    }
    row_slope r = {};
    r.factor = (double)j.mask[i] * weight_of(j);
    r.sum = (double)p.sum;
    r.max = p.max;
    r.label = label;
    r.by = (float)(r.factor / r.sum);
#pragma unroll 2
    for (int64_t c = threadIdx.x * VEC; c < whole; c += SIZE * VEC) {
        float v[VEC];
        load(v, c < kept ? held + c : x + c);
        for (int k = 0; k < VEC; k++)
            v[k] = slope_of<T>(r, v[k], c + k);
        store(x + c, v);
    }
    if (last < j.width) {
        end[0] = slope_of<T>(r, end[0], last);
        store(x + last, end);
    }
}

enum { LARGE = 1024, SMALL = 512, STATIC = 1024, FEWEST_COLUMNS = 1 << 14 };

template <int SIZE, class T>
static void launch_whole(ops *o, const stats_job<T> &s, const loss_job &j)
{
    const int vec = wide_of<T>(), piece = SIZE * 16; /* bytes of a row that a block reads at once */
    int64_t pieces = ceil_div(j.width * (int64_t)sizeof(T), piece);
    int64_t most = (o->dev->desc.shared - STATIC) / piece;
    int bytes = (int)(pieces < most ? pieces : most) * piece;
    cudaFuncSetAttribute(xent_whole<SIZE, vec, T>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                         bytes);
    xent_whole<SIZE, vec, T>
        <<<(unsigned)j.n, SIZE, bytes, stream_of(o)>>>(s, j, bytes / (int64_t)sizeof(T));
}

/* False where statistics and gradient are apart: short rows, those not aligned, soft caps. */
template <class T> static bool issue_whole(ops *o, const xent_loss_args *a, const loss_job &j)
{
    const stats_job<T> s = {mat_in_of<T>(a->logits),
                            j.label,
                            (float *)a->max.data,
                            (float *)a->sum.data,
                            (float *)a->target.data,
                            j.width,
                            j.first,
                            false};
    if (!aligned(a->logits) || j.width < FEWEST_COLUMNS || a->cap > 0)
        return false;
    if (j.width * (int64_t)sizeof(T) <= (o->dev->desc.shared - 2 * STATIC) / 2)
        launch_whole<SMALL, T>(o, s, j); /* two blocks fit a processor */
    else
        launch_whole<LARGE, T>(o, s, j);
    return true;
}

extern "C" void cuda_xent_loss(ops *o, const void *args, void *)
{
    const xent_loss_args *a = (const xent_loss_args *)args;
    loss_job j = {.label = ints_of(a->label),
                  .max = (const float *)a->max.data,
                  .sum = (const float *)a->sum.data,
                  .target = (const float *)a->target.data,
                  .mask = (const float *)a->mask.data,
                  .loss = (float *)a->loss.data,
                  .total = (double *)a->total.data,
                  .n = a->logits.size[0],
                  .width = a->logits.size[1],
                  .first = a->first,
                  .scale = a->scale,
                  .factor = (const double *)a->factor.data,
                  .divisor = (const double *)a->divisor.data,
                  .cap = a->cap};
    if (!j.n)
        return;
    bool done = false;
    if (a->alone && a->grad)
        by_type(a->logits.dtype, [&](auto t) { done = issue_whole<decltype(t)>(o, a, j); });
    if (a->alone && !done) {
        const xent_stats_args s = {a->logits, a->label, a->max, a->sum, a->target, a->first, false};
        cuda_xent_stats(o, &s, NULL);
    }
    xent_loss<<<1, 1024, 0, stream_of(o)>>>(j);
    if (a->grad && !done)
        by_type(a->logits.dtype, [&](auto t) { issue_gradient<decltype(t)>(o, a->logits, j); });
    dev_cuda_check(o->dev, "launch");
}

/* ---- the cap of logits --------------------------------------------------------------------------
 */

template <int VEC, class T>
static __global__ void __launch_bounds__(THREADS) cap(mat_in<T> x, int64_t width, float cap)
{
    T *row = x.row(blockIdx.x);
    for (int64_t c = threadIdx.x * VEC; c < width; c += THREADS * VEC) {
        float v[VEC];
        load(v, row + c);
        for (int k = 0; k < VEC; k++)
            v[k] = cap * tanhf(v[k] / cap);
        store(row + c, v);
    }
}

template <class T> static void issue_cap(ops *o, const cap_args *a)
{
    const int64_t n = a->x.size[0], width = a->x.size[1];
    if (width % wide_of<T>() == 0 && aligned(a->x))
        cap<wide_of<T>()>
            <<<(unsigned)n, THREADS, 0, stream_of(o)>>>(mat_in_of<T>(a->x), width, a->cap);
    else
        cap<1><<<(unsigned)n, THREADS, 0, stream_of(o)>>>(mat_in_of<T>(a->x), width, a->cap);
    dev_cuda_check(o->dev, "launch");
}

extern "C" void cuda_cap(ops *o, const void *args, void *)
{
    const cap_args *a = (const cap_args *)args;
    if (tensor_count(a->x))
        by_type(a->x.dtype, [&](auto t) { issue_cap<decltype(t)>(o, a); });
}

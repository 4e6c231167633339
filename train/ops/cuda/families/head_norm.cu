/* SPDX-License-Identifier: Apache-2.0 */
#include "train/ops/cuda/device.cuh"

extern "C" {
#include "train/ops/head_norm.h"
}

/*
 * With xhat = pre * rstd and g = dy * w:
 *     dx = rstd * (g - xhat * mean(g * xhat)), dw += sum of dy * xhat over tokens and heads.
 * A head is held by `lanes` neighbouring lanes. The sums for dw are taken by ranges of heads, then
 * added up in the order of the ranges, before dx takes the place of dy.
 */

enum { THREADS = 256, COLUMNS = 32, STRIPES = 8 };
static const int64_t most_ranges = 512, fewest_heads = 64;

template <class T> struct head_job {
    mat_in<T> x, pre; /* x: dx in the backward */
    mat rstd;
    const T *w;
    int64_t n;
    int heads, dim, lanes;
    float eps, one; /* one: 1 where weights are stored less one */
};

/* A head of a token; false past the last. */
template <class T>
static __device__ bool head_at(const head_job<T> &j, int64_t at, int64_t *ret_row, int *ret_head)
{
    *ret_row = at / j.heads;
    *ret_head = (int)(at - *ret_row * j.heads);
    return at < j.n * j.heads;
}

/* Over the lanes of a head; by whole warps. */
static __device__ float lanes_sum(float v, int lanes)
{
    for (int k = lanes / 2; k; k /= 2)
        v += __shfl_xor_sync(~0u, v, k);
    return v;
}

template <int VEC, class T>
static __global__ void __launch_bounds__(THREADS) head_norm(const head_job<T> j)
{
    const int lane = (int)threadIdx.x % j.lanes, step = j.lanes * VEC;
    int64_t i;
    int head;
    const bool there =
        head_at(j, ((int64_t)blockIdx.x * THREADS + threadIdx.x) / j.lanes, &i, &head);
    const int64_t at = (int64_t)head * j.dim;
    float sum = 0;
    for (int c = lane * VEC; there && c < j.dim; c += step) {
        float v[VEC];
        load(v, j.x.row(i) + at + c);
        for (int k = 0; k < VEC; k++)
            sum += v[k] * v[k];
        if (j.pre.p)
            store(j.pre.row(i) + at + c, v);
    }
    const float rstd = 1 / sqrtf(lanes_sum(sum, j.lanes) / (float)j.dim + j.eps);
    if (there && lane == 0 && j.rstd.p)
        j.rstd.row(i)[head] = rstd;
    for (int c = lane * VEC; there && c < j.dim; c += step) {
        float v[VEC], w[VEC];
        load(v, j.x.row(i) + at + c);
        load(w, j.w + c);
        for (int k = 0; k < VEC; k++)
            v[k] = v[k] * rstd * (w[k] + j.one);
        store(j.x.row(i) + at + c, v);
    }
}

template <int VEC, class T>
static __global__ void __launch_bounds__(THREADS) head_norm_bwd(const head_job<T> j)
{
    const int lane = (int)threadIdx.x % j.lanes, step = j.lanes * VEC;
    int64_t i;
    int head;
    const bool there =
        head_at(j, ((int64_t)blockIdx.x * THREADS + threadIdx.x) / j.lanes, &i, &head);
    const int64_t at = (int64_t)head * j.dim;
    const float rstd = there ? j.rstd.row(i)[head] : 0;
    float sum = 0;
    for (int c = lane * VEC; there && c < j.dim; c += step) {
        float dy[VEC], pre[VEC], w[VEC];
        load(dy, j.x.row(i) + at + c);
        load(pre, j.pre.row(i) + at + c);
        load(w, j.w + c);
        for (int k = 0; k < VEC; k++)
            sum += dy[k] * (w[k] + j.one) * (pre[k] * rstd);
    }
    const float mean = lanes_sum(sum, j.lanes) / (float)j.dim;
    for (int c = lane * VEC; there && c < j.dim; c += step) {
        float dy[VEC], pre[VEC], w[VEC];
        load(dy, j.x.row(i) + at + c);
        load(pre, j.pre.row(i) + at + c);
        load(w, j.w + c);
        for (int k = 0; k < VEC; k++)
            dy[k] = rstd * (dy[k] * (w[k] + j.one) - pre[k] * rstd * mean);
        store(j.x.row(i) + at + c, dy);
    }
}

/* ---- the gradient of the weight -----------------------------------------------------------------
 */

static int64_t heads_of_range(int64_t heads)
{
    int64_t each = ceil_div(heads, most_ranges);
    return each < fewest_heads ? fewest_heads : each;
}

/* part[range][dim] */
template <class T>
static __global__ void __launch_bounds__(COLUMNS *STRIPES)
    head_norm_columns(const head_job<T> j, int64_t range, float *part)
{
    __shared__ float stripe[STRIPES][COLUMNS];
    const int c = (int)(blockIdx.y * COLUMNS + threadIdx.x);
    const int64_t all = j.n * j.heads, begin = blockIdx.x * range;
    const int64_t end = begin + range < all ? begin + range : all;
    float sum = 0;
    for (int64_t r = begin + threadIdx.y; r < end && c < j.dim; r += STRIPES) {
        int64_t i;
        int head;
        head_at(j, r, &i, &head);
        const int64_t at = (int64_t)head * j.dim + c;
        sum += (float)j.x.row(i)[at] * ((float)j.pre.row(i)[at] * j.rstd.row(i)[head]);
    }
    stripe[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.y || c >= j.dim)
        return;
    sum = 0;
    for (int s = 0; s < STRIPES; s++)
        sum += stripe[s][threadIdx.x];
    part[blockIdx.x * (int64_t)j.dim + c] = sum;
}

template <class G>
static __global__ void __launch_bounds__(COLUMNS *STRIPES)
    head_norm_total(const float *part, int64_t ranges, int dim, G *dw)
{
    __shared__ float stripe[STRIPES][COLUMNS];
    const int c = (int)(blockIdx.x * COLUMNS + threadIdx.x);
    float sum = 0;
    for (int64_t r = threadIdx.y; r < ranges && c < dim; r += STRIPES)
        sum += part[r * dim + c];
    stripe[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.y || c >= dim)
        return;
    sum = 0;
    for (int s = 0; s < STRIPES; s++)
        sum += stripe[s][threadIdx.x];
    dw[c] = (G)((float)dw[c] + sum);
}

/* ---- entries ------------------------------------------------------------------------------------
 */

template <class T>
static head_job<T> head_job_of(tensor x, tensor pre, tensor rstd, tensor w, bool less_one)
{
    head_job<T> j = {};
    j.x = mat_in_of<T>(x);
    j.pre = mat_in_of<T>(pre);
    j.rstd = mat_of(rstd);
    j.w = (const T *)w.data;
    j.n = x.size[0];
    j.heads = (int)x.size[1];
    j.dim = (int)x.size[2];
    j.one = less_one ? 1.0f : 0.0f;
    return j;
}

/* Whether a head may be read 16 bytes at a time; and the lanes that have one. */
template <class T> static bool take_lanes(head_job<T> *j, tensor x, tensor pre, tensor w)
{
    bool wide = j->dim % wide_of<T>() == 0 && aligned(x) && aligned(pre) && aligned(w);
    int pieces = wide ? j->dim / wide_of<T>() : j->dim;
    for (j->lanes = 1; j->lanes < 32 && j->lanes < pieces;)
        j->lanes *= 2;
    return wide;
}

template <class T> static unsigned blocks_for(const head_job<T> &j)
{
    return (unsigned)ceil_div(j.n * j.heads * j.lanes, THREADS);
}

template <class T> static void issue_head_norm(ops *o, const head_norm_args *a)
{
    head_job<T> j = head_job_of<T>(a->x, a->pre, a->rstd, a->w, a->less_one);
    j.eps = a->eps;
    if (take_lanes(&j, a->x, a->pre, a->w))
        head_norm<wide_of<T>()><<<blocks_for(j), THREADS, 0, stream_of(o)>>>(j);
    else
        head_norm<1><<<blocks_for(j), THREADS, 0, stream_of(o)>>>(j);
    dev_cuda_check(o->dev, "launch");
}

extern "C" void cuda_head_norm(ops *o, const void *args, void *)
{
    const head_norm_args *a = (const head_norm_args *)args;
    if (tensor_count(a->x))
        by_type(a->x.dtype, [&](auto t) { issue_head_norm<decltype(t)>(o, a); });
}

template <class T> static void issue_head_norm_bwd(ops *o, const head_norm_bwd_args *a, float *part)
{
    head_job<T> j = head_job_of<T>(a->dx, a->pre, a->rstd, a->w, a->less_one);
    cudaStream_t stream = stream_of(o);
    const int64_t range = heads_of_range(j.n * j.heads), ranges = ceil_div(j.n * j.heads, range);
    const unsigned columns = (unsigned)ceil_div(j.dim, COLUMNS);
    head_norm_columns<<<dim3((unsigned)ranges, columns), dim3(COLUMNS, STRIPES), 0, stream>>>(
        j, range, part);
    by_grad_type(a->dw.dtype, [&](auto g) {
        head_norm_total<<<columns, dim3(COLUMNS, STRIPES), 0, stream>>>(part, ranges, j.dim,
                                                                        (decltype(g) *)a->dw.data);
    });
    if (take_lanes(&j, a->dx, a->pre, a->w))
        head_norm_bwd<wide_of<T>()><<<blocks_for(j), THREADS, 0, stream>>>(j);
    else
        head_norm_bwd<1><<<blocks_for(j), THREADS, 0, stream>>>(j);
    dev_cuda_check(o->dev, "launch");
}

extern "C" size_t cuda_head_norm_bwd_scratch(const dev_desc *, const void *args)
{
    const tensor dx = ((const head_norm_bwd_args *)args)->dx;
    int64_t all = dx.size[0] * dx.size[1];
    return (size_t)(ceil_div(all, heads_of_range(all)) * dx.size[2]) * sizeof(float);
}

extern "C" void cuda_head_norm_bwd(ops *o, const void *args, void *scratch)
{
    const head_norm_bwd_args *a = (const head_norm_bwd_args *)args;
    if (tensor_count(a->dx))
        by_type(a->dx.dtype,
                [&](auto t) { issue_head_norm_bwd<decltype(t)>(o, a, (float *)scratch); });
}

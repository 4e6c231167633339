/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_OPS_CUDA_OPTIM_SUMS_CUH
#define TRAIN_OPS_CUDA_OPTIM_SUMS_CUH

/*
 * Sums over a tensor without gaps, in double, by fixed ranges: of f.of(x), F being a struct that
 * may read the device's memory.
 */

#include "train/ops/cuda/optim/flat.cuh"

enum { SUM_THREADS = 256, SUM_CHUNK = 1 << 15, SUM_PARTS = 1024 };

/* At most SUM_PARTS blocks; a block's range is a multiple of SUM_CHUNK. */
static inline int64_t sum_range(int64_t n)
{
    return ceil_div(ceil_div(n, SUM_PARTS), SUM_CHUNK) * SUM_CHUNK;
}

static inline size_t sum_scratch(tensor x)
{
    int64_t n = tensor_count(x);
    return n ? (size_t)ceil_div(n, sum_range(n)) * sizeof(double) : 0;
}

template <bool WIDE, class T, class F>
static __global__ void __launch_bounds__(SUM_THREADS)
    sum_parts(const T *x, int64_t n, int64_t range, const F f, double *part)
{
    __shared__ double warps[32];
    int64_t begin = blockIdx.x * range, end = begin + range < n ? begin + range : n;
    double sum = 0;
    int64_t i = begin + threadIdx.x * (WIDE ? 4 : 1);
    if (WIDE) {
#pragma unroll 4
        for (; i + 4 <= end; i += SUM_THREADS * 4) {
            float v[4];
            load(v, x + i);
            sum += (f.of((double)v[0]) + f.of((double)v[1])) +
                   (f.of((double)v[2]) + f.of((double)v[3]));
        }
        for (; i < end && i < n; i++) /* the last, incomplete vector is one thread's */
            sum += f.of((double)(float)x[i]);
    } else {
        for (; i < end; i += SUM_THREADS)
            sum += f.of((double)(float)x[i]);
    }
    sum = block_sum(sum, warps);
    if (threadIdx.x == 0)
        part[blockIdx.x] = sum;
}

/* And *count += n, if there is one. */
static __global__ void __launch_bounds__(SUM_THREADS)
    sum_total(const double *part, int parts, double *total, double *count, double n)
{
    __shared__ double warps[32];
    double sum = 0;
    for (int i = (int)threadIdx.x; i < parts; i += SUM_THREADS)
        sum += part[i];
    sum = block_sum(sum, warps);
    if (threadIdx.x == 0) {
        *total += sum;
        if (count)
            *count += n;
    }
}

/* *total += the sum; `part` has sum_scratch bytes. */
template <class F>
static void sum_add(ops *o, tensor x, F f, double *part, double *total, double *count)
{
    int64_t n = tensor_count(x), range = n ? sum_range(n) : 1;
    const unsigned parts = (unsigned)ceil_div(n, range);
    cudaStream_t stream = stream_of(o);
    if (!n)
        return;
    by_grad_type(x.dtype, [&](auto t) {
        const decltype(t) *p = (const decltype(t) *)x.data;
        if (flat_aligned(x))
            sum_parts<true><<<parts, SUM_THREADS, 0, stream>>>(p, n, range, f, part);
        else
            sum_parts<false><<<parts, SUM_THREADS, 0, stream>>>(p, n, range, f, part);
    });
    sum_total<<<1, SUM_THREADS, 0, stream>>>(part, (int)parts, total, count, (double)n);
    dev_cuda_check(o->dev, "launch");
}

#endif

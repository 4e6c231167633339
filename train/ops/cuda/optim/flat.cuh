/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_OPS_CUDA_OPTIM_FLAT_CUH
#define TRAIN_OPS_CUDA_OPTIM_FLAT_CUH

/*
 * Tensors of the optimizer: any rank, no gaps, each of a type of its own. The type is looked at
 * while the kernel runs, the same in all threads, because every combination as a kernel would be
 * dozens of them; what they cost is the memory that they read.
 */

#include "train/ops/cuda/device.cuh"

/* F32, BF16 or F16; p NULL: none. */
struct flat {
    void *p;
    dtype type;
};

static inline flat flat_of(tensor t)
{
    return {t.data, t.dtype};
}

/* So many numbers at a time, 4 or 8, may be read from it, if it is there. */
static inline bool flat_aligned(tensor t, int vec = 4)
{
    return tensor_none(t) || (uintptr_t)t.data % ((size_t)vec * dtype_size(t.dtype)) == 0;
}

/* VEC: 1, 4 or 8 */
template <int VEC> static __device__ void flat_load(float (&v)[VEC], const flat &f, int64_t i)
{
    if (f.type == DTYPE_BF16)
        load(v, (const bf16 *)f.p + i);
    else if (f.type == DTYPE_F16)
        load(v, (const f16 *)f.p + i);
    else
        load(v, (const float *)f.p + i);
}

template <int VEC>
static __device__ void flat_store(const flat &f, int64_t i, const float (&v)[VEC])
{
    if (f.type == DTYPE_BF16)
        store((bf16 *)f.p + i, v);
    else if (f.type == DTYPE_F16)
        store((f16 *)f.p + i, v);
    else
        store((float *)f.p + i, v);
}

/*
 * A factor as base + rest, base 1 or 0: what a factor near 1 takes away may be so small that
 * rounding the factor itself would change it by a thousandth.
 */
struct two {
    float base, rest;
};

static __host__ __device__ inline two two_of(double x)
{
    double base = x > 0.5 ? 1 : 0;
    return {(float)base, (float)(x - base)};
}

static __device__ inline float times(float x, two t, float add)
{
    return fmaf(x, t.base, fmaf(x, t.rest, add));
}

/*
 * Over the elements of a range: J has n, skip (I32 or NULL: nothing is done where it is not 0), and
 * aligned, whether VEC at a time may be read; begin() makes what follows from numbers in the
 * device's memory, once for each block, and at<VEC>(now, i) does elements i .. i + VEC - 1.
 */
enum { FLAT_THREADS = 256, FLAT_SPAN = 1 << 13 };

template <int VEC, class J>
static __global__ void __launch_bounds__(FLAT_THREADS) flat_kernel(const J j)
{
    __shared__ typename J::now shared;
    const int64_t begin = (int64_t)blockIdx.x * FLAT_SPAN;
    const int64_t end = begin + FLAT_SPAN < j.n ? begin + FLAT_SPAN : j.n;
    if (j.skip && *j.skip)
        return;
    if (threadIdx.x == 0)
        shared = j.begin();
    __syncthreads();
    const typename J::now now = shared;
    for (int64_t i = begin + threadIdx.x * VEC; i < end; i += FLAT_THREADS * VEC) {
        if (i + VEC <= end)
            j.template at<VEC>(now, i);
        else
            for (int64_t k = i; k < end; k++)
                j.template at<1>(now, k);
    }
}

template <int VEC = 4, class J> static void flat_each(ops *o, const J &j)
{
    if (j.n && j.aligned)
        flat_kernel<VEC><<<(unsigned)ceil_div(j.n, FLAT_SPAN), FLAT_THREADS, 0, stream_of(o)>>>(j);
    else if (j.n)
        flat_kernel<1><<<(unsigned)ceil_div(j.n, FLAT_SPAN), FLAT_THREADS, 0, stream_of(o)>>>(j);
    dev_cuda_check(o->dev, "launch");
}

#endif

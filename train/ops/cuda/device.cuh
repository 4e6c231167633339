/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_OPS_CUDA_DEVICE_CUH
#define TRAIN_OPS_CUDA_DEVICE_CUH

/*
 * What the kernels share: rows of matrices, vectors of 4 floats where everything is aligned for
 * them, sums over warps and blocks in a fixed order, dropout masks.
 */

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cuda_runtime.h>

extern "C" {
#include "train/ops/cuda/kernels.h"
#include "train/tensor/cuda/dev_cuda.h"
}

/* A matrix of floats; p is NULL for none. */
struct mat {
    float *p;
    int64_t stride;
    __device__ float *row(int64_t i) const
    {
        return p + i * stride;
    }
};

static inline mat mat_of(tensor t)
{
    return {(float *)t.data, t.rank > 1 ? t.stride : 0};
}

static inline const int32_t *ints_of(tensor t)
{
    return (const int32_t *)t.data;
}

static inline cudaStream_t stream_of(ops *o)
{
    return (cudaStream_t)dev_cuda_stream(o->dev, STREAM_COMPUTE);
}

/* Rows of this tensor may be read 4 floats at a time. */
static inline bool aligned(tensor t)
{
    return tensor_none(t) || ((uintptr_t)t.data % 16 == 0 && (t.rank < 2 || t.stride % 4 == 0));
}

/* Threads of a block that has `items` things to do: whole warps, at most `most`. */
static inline int threads_for(int64_t items, int most)
{
    int64_t n = (items + 31) / 32 * 32;
    return n < 32 ? 32 : n > most ? most : (int)n;
}

static inline int64_t ceil_div(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

template <int VEC> static __device__ void load(float (&v)[VEC], const float *p)
{
    if constexpr (VEC == 4) {
        float4 x = *(const float4 *)p;
        v[0] = x.x, v[1] = x.y, v[2] = x.z, v[3] = x.w;
    } else {
        v[0] = *p;
    }
}

template <int VEC> static __device__ void store(float *p, const float (&v)[VEC])
{
    if constexpr (VEC == 4)
        *(float4 *)p = make_float4(v[0], v[1], v[2], v[3]);
    else
        *p = v[0];
}

static __device__ inline float warp_sum(float v)
{
    for (int k = 16; k; k /= 2)
        v += __shfl_xor_sync(~0u, v, k);
    return v;
}

static __device__ inline double warp_sum(double v)
{
    for (int k = 16; k; k /= 2)
        v += __shfl_xor_sync(~0u, v, k);
    return v;
}

static __device__ inline float warp_max(float v)
{
    for (int k = 16; k; k /= 2)
        v = fmaxf(v, __shfl_xor_sync(~0u, v, k));
    return v;
}

/* The sum over a block's threads, for all of them. `part` has 32 places. */
template <class T> static __device__ T block_sum(T v, T *part)
{
    v = warp_sum(v);
    __syncthreads();
    if (threadIdx.x % 32 == 0)
        part[threadIdx.x / 32] = v;
    __syncthreads();
    v = 0;
    for (unsigned i = 0; i < blockDim.x / 32; i++)
        v += part[i];
    return v;
}

/* ---- dropout: the masks of struct dropout -----------------------------------------------------
 */

struct drop_mask {
    bool on;
    uint32_t threshold, sub;
    float scale;
    uint64_t seed, row0;
};

static inline drop_mask mask_of(dropout d)
{
    return {d.p > 0, (uint32_t)ceil((double)d.p * 4294967296.0),
            d.sub,   (float)(1 / (1 - (double)d.p)),
            d.seed,  d.row0};
}

/* Philox4x32-10, as in base/core/rng.h. */
static __device__ inline uint4 random_block(uint64_t seed, uint32_t purpose, uint32_t sub,
                                            uint64_t index)
{
    uint4 c = {(uint32_t)index, (uint32_t)(index >> 32), sub, purpose};
    uint32_t k0 = (uint32_t)seed, k1 = (uint32_t)(seed >> 32);
#pragma unroll
    for (int round = 0; round < 10; round++) {
        uint32_t high0 = __umulhi(0xD2511F53u, c.x), low0 = 0xD2511F53u * c.x;
        uint32_t high1 = __umulhi(0xCD9E8D57u, c.z), low1 = 0xCD9E8D57u * c.z;
        c = make_uint4(high1 ^ c.y ^ k0, low1, high0 ^ c.w ^ k1, low0);
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    return c;
}

/* What element e is multiplied by. */
static __device__ inline float drop_factor(drop_mask d, uint64_t e)
{
    uint4 r = random_block(d.seed, 2 /* RNG_DROPOUT */, d.sub, e / 4);
    uint32_t bits = e % 4 == 0 ? r.x : e % 4 == 1 ? r.y : e % 4 == 2 ? r.z : r.w;
    return bits >= d.threshold ? d.scale : 0;
}

/* v *= the factors of columns col .. col + VEC - 1 of a row; VEC divides col and width. */
template <int VEC>
static __device__ void drop_apply(float (&v)[VEC], drop_mask d, int64_t row, int64_t col,
                                  int64_t width)
{
    uint64_t e = (d.row0 + (uint64_t)row) * (uint64_t)width + (uint64_t)col;
    if (!d.on)
        return;
    if constexpr (VEC == 4) {
        uint4 r = random_block(d.seed, 2 /* RNG_DROPOUT */, d.sub, e / 4);
        v[0] *= r.x >= d.threshold ? d.scale : 0;
        v[1] *= r.y >= d.threshold ? d.scale : 0;
        v[2] *= r.z >= d.threshold ? d.scale : 0;
        v[3] *= r.w >= d.threshold ? d.scale : 0;
    } else {
        v[0] *= drop_factor(d, e);
    }
}

#endif

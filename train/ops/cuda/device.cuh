/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_OPS_CUDA_DEVICE_CUH
#define TRAIN_OPS_CUDA_DEVICE_CUH

/*
 * What the kernels share: rows of matrices, vectors of 16 bytes where everything is aligned for
 * them, sums over warps and blocks in a fixed order, dropout masks.
 */

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <type_traits>

extern "C" {
#include "train/ops/cuda/kernels.h"
#include "train/tensor/cuda/dev_cuda.h"
}

/* A matrix of float, bf16 or f16 numbers; p is NULL for none. */
template <class T> struct mat_in {
    T *p;
    int64_t stride;
    __device__ T *row(int64_t i) const
    {
        return p + i * stride;
    }
};

typedef mat_in<float> mat;

template <class T> static inline mat_in<T> mat_in_of(tensor t)
{
    return {(T *)t.data, t.rank > 1 ? t.stride : 0};
}

static inline mat mat_of(tensor t)
{
    return mat_in_of<float>(t);
}

typedef __nv_bfloat16 bf16;
typedef __half f16;

/* Calls f with a number of the type of `d`, F32 or one of 16 bits: f(bf16()). */
template <class F> static inline void by_type(dtype d, F f)
{
    if (d == DTYPE_BF16)
        f(bf16());
    else if (d == DTYPE_F16)
        f(f16());
    else
        f(float());
}

/* Of what gradients of weights may be: F32, or BF16 where activations are (ops_cuda_open). */
template <class F> static inline void by_grad_type(dtype d, F f)
{
    if (d == DTYPE_BF16)
        f(bf16());
    else
        f(float());
}

/* Numbers of type T in 16 bytes. */
template <class T> static __host__ __device__ constexpr int wide_of()
{
    return 16 / (int)sizeof(T);
}

static inline const int32_t *ints_of(tensor t)
{
    return (const int32_t *)t.data;
}

static inline cudaStream_t stream_of(ops *o)
{
    return (cudaStream_t)dev_cuda_stream(o->dev, STREAM_COMPUTE);
}

/* Rows of this tensor may be read 16 bytes at a time. */
static inline bool aligned(tensor t)
{
    return tensor_none(t) || ((uintptr_t)t.data % 16 == 0 &&
                              (t.rank < 2 || t.stride * dtype_size(t.dtype) % 16 == 0));
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

/* The same, such that each thread of a block does as many of them as any other. */
static inline int even_threads_for(int64_t items, int most)
{
    return threads_for(items > most ? ceil_div(items, ceil_div(items, most)) : items, most);
}

/* VEC numbers, with 16 bytes of them at a time where VEC is more than 1. */
template <int VEC> static __device__ void load(float (&v)[VEC], const float *p)
{
    if constexpr (VEC == 1) {
        v[0] = *p;
    } else {
#pragma unroll
        for (int k = 0; k < VEC; k += 4) {
            float4 x = *(const float4 *)(p + k);
            v[k] = x.x, v[k + 1] = x.y, v[k + 2] = x.z, v[k + 3] = x.w;
        }
    }
}

template <int VEC> static __device__ void store(float *p, const float (&v)[VEC])
{
    if constexpr (VEC == 1) {
        *p = v[0];
    } else {
#pragma unroll
        for (int k = 0; k < VEC; k += 4)
            *(float4 *)(p + k) = make_float4(v[k], v[k + 1], v[k + 2], v[k + 3]);
    }
}

/* Two numbers of 16 bits in a word, the first in its low half. */
template <class T> static __device__ void widen_two(float &a, float &b, uint32_t two)
{
    if constexpr (std::is_same<T, bf16>::value) {
        a = __uint_as_float(two << 16);
        b = __uint_as_float(two & 0xffff0000u);
    } else {
        float2 x = __half22float2(*(__half2 *)&two);
        a = x.x, b = x.y;
    }
}

/* To the nearest, ties to even. */
template <class T> static __device__ uint32_t narrow_two(float a, float b)
{
    if constexpr (std::is_same<T, bf16>::value) {
        __nv_bfloat162 x = __floats2bfloat162_rn(a, b);
        return *(uint32_t *)&x;
    } else {
        __half2 x = __floats2half2_rn(a, b);
        return *(uint32_t *)&x;
    }
}

/* T: of 16 bits; VEC may be 4, too, which takes 8 bytes. */
template <int VEC, class T> static __device__ void load(float (&v)[VEC], const T *p)
{
    static_assert(sizeof(T) == 2 && (VEC == 1 || VEC == 4 || VEC == 8), "numbers of 16 bits");
    if constexpr (VEC == 1) {
        v[0] = (float)*p;
    } else if constexpr (VEC == 4) {
        uint2 x = *(const uint2 *)p;
        widen_two<T>(v[0], v[1], x.x);
        widen_two<T>(v[2], v[3], x.y);
    } else {
        uint4 x = *(const uint4 *)p;
        widen_two<T>(v[0], v[1], x.x);
        widen_two<T>(v[2], v[3], x.y);
        widen_two<T>(v[4], v[5], x.z);
        widen_two<T>(v[6], v[7], x.w);
    }
}

template <int VEC, class T> static __device__ void store(T *p, const float (&v)[VEC])
{
    static_assert(sizeof(T) == 2 && (VEC == 1 || VEC == 4 || VEC == 8), "numbers of 16 bits");
    if constexpr (VEC == 1)
        *p = (T)v[0];
    else if constexpr (VEC == 4)
        *(uint2 *)p = make_uint2(narrow_two<T>(v[0], v[1]), narrow_two<T>(v[2], v[3]));
    else
        *(uint4 *)p = make_uint4(narrow_two<T>(v[0], v[1]), narrow_two<T>(v[2], v[3]),
                                 narrow_two<T>(v[4], v[5]), narrow_two<T>(v[6], v[7]));
}

/* And v becomes what was stored. */
template <int VEC> static __device__ void store_rounding(float *p, float (&v)[VEC])
{
    store(p, v);
}

template <int VEC, class T> static __device__ void store_rounding(T *p, float (&v)[VEC])
{
    static_assert(sizeof(T) == 2 && (VEC == 1 || VEC == 8), "numbers of 16 bits");
    if constexpr (VEC == 1) {
        *p = (T)v[0];
        v[0] = (float)*p;
    } else {
        uint4 x = make_uint4(narrow_two<T>(v[0], v[1]), narrow_two<T>(v[2], v[3]),
                             narrow_two<T>(v[4], v[5]), narrow_two<T>(v[6], v[7]));
        *(uint4 *)p = x;
        widen_two<T>(v[0], v[1], x.x);
        widen_two<T>(v[2], v[3], x.y);
        widen_two<T>(v[4], v[5], x.z);
        widen_two<T>(v[6], v[7], x.w);
    }
}

/* 16 bytes of a row as they are, and the numbers in them: what is read ahead takes few registers.
 */
template <class T> static __device__ uint4 load_raw(const T *p)
{
    return *(const uint4 *)p;
}

template <class T> static __device__ void widen(float (&v)[wide_of<T>()], uint4 x)
{
    if constexpr (sizeof(T) == 4) {
        v[0] = __uint_as_float(x.x), v[1] = __uint_as_float(x.y);
        v[2] = __uint_as_float(x.z), v[3] = __uint_as_float(x.w);
    } else {
        widen_two<T>(v[0], v[1], x.x);
        widen_two<T>(v[2], v[3], x.y);
        widen_two<T>(v[4], v[5], x.z);
        widen_two<T>(v[6], v[7], x.w);
    }
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

/*
 * Philox4x32, as in base/core/rng.h: blocks of counters c side by side, so that they share the keys
 * of the rounds.
 */
template <int ROUNDS, int N> static __device__ void random_blocks(uint64_t seed, uint4 (&c)[N])
{
    uint32_t k0 = (uint32_t)seed, k1 = (uint32_t)(seed >> 32);
#pragma unroll
    for (int round = 0; round < ROUNDS; round++) {
#pragma unroll
        for (int i = 0; i < N; i++) {
            uint64_t p0 = (uint64_t)0xD2511F53u * c[i].x, p1 = (uint64_t)0xCD9E8D57u * c[i].z;
            c[i] = make_uint4((uint32_t)(p1 >> 32) ^ c[i].y ^ k0, (uint32_t)p1,
                              (uint32_t)(p0 >> 32) ^ c[i].w ^ k1, (uint32_t)p0);
        }
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
        if (N > 1) /* else the compiler finds the keys again for each block */
            asm volatile("" : "+r"(k0), "+r"(k1));
    }
}

static __device__ inline uint4 random_counter(uint32_t purpose, uint32_t sub, uint64_t index)
{
    return make_uint4((uint32_t)index, (uint32_t)(index >> 32), sub, purpose);
}

static __device__ inline uint4 random_block(uint64_t seed, uint32_t purpose, uint32_t sub,
                                            uint64_t index)
{
    uint4 c[1] = {random_counter(purpose, sub, index)};
    random_blocks<10>(seed, c);
    return c[0];
}

/* ---- dropout: the masks of struct dropout -----------------------------------------------------
 */

/* The definition is in ops.h, the host's functions in dropout.h. */
enum { DROP_BITS = 15, DROP_BLOCK = 8, DROP_ROUNDS = 7 };

struct drop_mask {
    bool on;
    uint32_t threshold, sub;
    float scale;
    uint64_t seed, row0;
    const drop_origin *origin; /* in the device's memory, or NULL */
};

static __device__ inline uint64_t drop_seed(const drop_mask &d)
{
    return d.origin ? __ldg((const unsigned long long *)&d.origin->seed) : d.seed;
}

static __device__ inline uint64_t drop_row0(const drop_mask &d)
{
    return d.origin ? d.row0 + __ldg((const unsigned long long *)&d.origin->row0) : d.row0;
}

static inline drop_mask mask_of(dropout d)
{
    const uint32_t all = 1 << DROP_BITS, t = (uint32_t)((double)d.p * all + 0.5);
    const uint32_t threshold = t < all ? t : all - 1;
    return {d.p > 0,
            threshold,
            d.sub,
            (float)(all / (all - (double)threshold)),
            d.seed,
            d.row0,
            (const drop_origin *)d.origin.data};
}

/* The blocks of a row of a [n, width] tensor begin here; `row` is global, with row0. */
static __device__ inline uint64_t drop_row_block(uint64_t row, int64_t width)
{
    return row * (uint64_t)((width + DROP_BLOCK - 1) / DROP_BLOCK);
}

/* In their place the random bits of blocks. */
static __device__ inline uint4 drop_counter(uint32_t sub, uint64_t block)
{
    return random_counter(2 /* RNG_DROPOUT */, sub, block);
}

template <int N> static __device__ void drop_random(uint64_t seed, uint4 (&counter)[N])
{
    random_blocks<DROP_ROUNDS>(seed, counter);
}

static __device__ inline uint4 drop_random(uint64_t seed, uint32_t sub, uint64_t block)
{
    uint4 c[1] = {drop_counter(sub, block)};
    drop_random(seed, c);
    return c[0];
}

/* What drop_kept adds. */
static __device__ inline uint32_t drop_addend(const drop_mask &d)
{
    return ((1 << DROP_BITS) - d.threshold) * 0x10001u;
}

/*
 * Of word w of a block the elements w and w + 4: bits 15 and 31 are set where they are kept, the
 * others are of no meaning.
 */
static __device__ inline uint32_t drop_kept(uint32_t word, uint32_t addend)
{
    return (word & 0x7fff7fffu) + addend;
}

/* Bit i: element i of a block is kept. */
static __device__ inline uint32_t drop_kept_eight(const drop_mask &d, uint64_t seed, uint64_t block)
{
    const uint4 r = drop_random(seed, d.sub, block);
    const uint32_t add = drop_addend(d);
    const uint32_t kept[4] = {drop_kept(r.x, add), drop_kept(r.y, add), drop_kept(r.z, add),
                              drop_kept(r.w, add)};
    uint32_t ret = 0;
#pragma unroll
    for (int w = 0; w < 4; w++)
        ret |= (kept[w] >> 15 & 1) << w | kept[w] >> 31 << (w + 4);
    return ret;
}

/* What column `col` of a global row is multiplied by. */
static __device__ inline float drop_factor(const drop_mask &d, uint64_t row, int64_t col,
                                           int64_t width)
{
    const uint64_t block = drop_row_block(row, width) + (uint64_t)(col / DROP_BLOCK);
    return drop_kept_eight(d, drop_seed(d), block) >> col % DROP_BLOCK & 1 ? d.scale : 0;
}

/* The factors of columns col .. col + VEC - 1 of a row, for a mask that is on; VEC divides col. */
template <int VEC>
static __device__ void drop_factors(float (&f)[VEC], const drop_mask &d, int64_t row, int64_t col,
                                    int64_t width)
{
    static_assert(VEC == 1 || VEC == 4 || VEC == 8, "within a block");
    const uint64_t first = drop_row_block(drop_row0(d) + (uint64_t)row, width);
    const uint4 r = drop_random(drop_seed(d), d.sub, first + (uint64_t)col / DROP_BLOCK);
    const uint32_t add = drop_addend(d);
    const uint32_t kept[4] = {drop_kept(r.x, add), drop_kept(r.y, add), drop_kept(r.z, add),
                              drop_kept(r.w, add)};
    const int i = (int)(col % DROP_BLOCK);
    const uint32_t bit = i < 4 ? 0x8000u : 0x80000000u;
    if constexpr (VEC == 8) {
#pragma unroll
        for (int w = 0; w < 8; w++)
            f[w] = kept[w % 4] & (w < 4 ? 0x8000u : 0x80000000u) ? d.scale : 0;
    } else if constexpr (VEC == 4) {
#pragma unroll
        for (int w = 0; w < 4; w++)
            f[w] = kept[w] & bit ? d.scale : 0;
    } else {
        const uint32_t mine = i % 4 < 2 ? i % 2 ? kept[1] : kept[0] : i % 2 ? kept[3] : kept[2];
        f[0] = mine & bit ? d.scale : 0;
    }
}

/* v *= those factors, if it is on. */
template <int VEC>
static __device__ void drop_apply(float (&v)[VEC], const drop_mask &d, int64_t row, int64_t col,
                                  int64_t width)
{
    if (!d.on)
        return;
    float f[VEC];
    drop_factors(f, d, row, col, width);
#pragma unroll
    for (int k = 0; k < VEC; k++)
        v[k] *= f[k];
}

#endif

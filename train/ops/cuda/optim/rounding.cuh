/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_OPS_CUDA_OPTIM_ROUNDING_CUH
#define TRAIN_OPS_CUDA_OPTIM_ROUNDING_CUH

/*
 * Stochastic rounding as in train/ops/rounding.h, with the same random bits. A thread has EIGHT
 * elements, which share a block of random bits where the first one's index is a multiple of 8, as
 * it is in nearly all tensors; or one.
 */

#include "train/ops/cuda/optim/flat.cuh"

extern "C" {
#include "train/ops/rounding.h"
}

enum { EIGHT = 8, RNG_OF_ROUNDING = 7 /* RNG_ROUND */ };

struct rounder {
    const number_run *run;
    int count;
    int64_t first; /* where element 0 of the call lies in the range */
    const double *number;
    uint64_t seed;
};

static inline rounder rounder_of(const rounding &r)
{
    return {(const number_run *)r.runs.data, tensor_none(r.runs) ? 0 : (int)r.runs.size[0], r.first,
            (const double *)r.number.data, r.seed};
}

static __device__ inline uint64_t rounder_key(const rounder &r, uint32_t which)
{
    uint4 b = random_block(r.seed, RNG_OF_ROUNDING, which, (uint64_t)*r.number);
    return b.x | (uint64_t)b.y << 32;
}

/* The run that holds element i. */
static __device__ inline int rounder_run(const rounder &r, int64_t i)
{
    int low = 0, high = r.count;
    while (high - low > 1) {
        int middle = (low + high) / 2;
        if (r.run[middle].begin <= r.first + i)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* Where elements are: `in_row`, the n from the first on lie in one row of a tensor. */
struct round_place {
    uint64_t index;
    uint32_t stream;
    bool in_row;
};

/* k: the run of an element before i, becomes that of i. */
static __device__ inline round_place rounder_place(const rounder &r, int &k, int64_t i, int n)
{
    const int64_t place = r.first + i;
    while (k + 1 < r.count && r.run[k + 1].begin <= place)
        k++;
    const number_run run = r.run[k];
    const bool ends = k + 1 < r.count && r.run[k + 1].begin < place + n;
    const int64_t at = place - run.begin;
    if (run.width == run.stride)
        return {(uint64_t)(run.index + at), run.stream, !ends};
    const int64_t row = at >> 32 ? at / run.width : (uint32_t)at / (uint32_t)run.width;
    const int64_t column = at - row * run.width;
    return {(uint64_t)(run.index + row * run.stride + column), run.stream,
            !ends && column + n <= run.width};
}

/* ---- random bits ------------------------------------------------------------------------------
 */

/* 16 bits of one element. Not inline, nor is what follows: the kernels have them in many places and
 * seldom call them. */
static __device__ __noinline__ uint32_t round_one(uint64_t key, uint32_t stream, uint64_t e)
{
    const uint4 b = random_block(key, RNG_OF_ROUNDING, stream, e / 8);
    const unsigned word = (unsigned)(e % 8 / 2);
    const uint32_t two = word == 0 ? b.x : word == 1 ? b.y : word == 2 ? b.z : b.w;
    return two >> 16 * (unsigned)(e % 2) & 0xffff;
}

/* Those of elements e .. e + 7, two in each word, where e is no multiple of 8. */
static __device__ __noinline__ uint4 round_across(uint64_t key, uint32_t stream, uint64_t e)
{
    uint4 a = random_block(key, RNG_OF_ROUNDING, stream, e / 8);
    uint4 b = random_block(key, RNG_OF_ROUNDING, stream, e / 8 + 1);
    if (e & 4)
        a = make_uint4(a.z, a.w, b.x, b.y), b = make_uint4(b.z, b.w, 0, 0);
    if (e & 2)
        a = make_uint4(a.y, a.z, a.w, b.x), b.x = b.y;
    if (e & 1)
        a = make_uint4(__funnelshift_r(a.x, a.y, 16), __funnelshift_r(a.y, a.z, 16),
                       __funnelshift_r(a.z, a.w, 16), __funnelshift_r(a.w, b.x, 16));
    return a;
}

/* Likewise of eight elements from i on in several rows or tensors; k: the run of the first. */
static __device__ __noinline__ uint4 round_apart(const rounder &r, int k, int64_t i, uint64_t key)
{
    uint32_t two[4];
    for (int j = 0; j < EIGHT; j++) {
        const round_place p = rounder_place(r, k, i + j, 1);
        const uint32_t bits = round_one(key, p.stream, p.index);
        two[j / 2] = j % 2 ? two[j / 2] | bits << 16 : bits;
    }
    return make_uint4(two[0], two[1], two[2], two[3]);
}

static __device__ inline uint4 round_eight(const rounder &r, const round_place &at, int k,
                                           int64_t i, uint64_t key)
{
    if (!at.in_row)
        return round_apart(r, k, i, key);
    if (at.index % 8)
        return round_across(key, at.stream, at.index);
    return random_block(key, RNG_OF_ROUNDING, at.stream, at.index / 8);
}

/* ---- storing ----------------------------------------------------------------------------------
 */

static __device__ inline uint32_t rounded(float x, uint32_t bits)
{
    const uint32_t infinite = 0x7f800000, u = __float_as_uint(x), sum = u + bits;
    if ((u & infinite) == infinite)
        return u >> 16 | (u << 9 ? 0x40 : 0);
    return ((sum & infinite) == infinite ? u : sum) >> 16;
}

static __device__ inline uint32_t rounded_two(float a, float b, uint32_t two)
{
    return rounded(a, two & 0xffff) | rounded(b, two >> 16) << 16;
}

/* VEC elements from i on, whose place is `at` and the first one's run k: 8 or 1. */
template <int VEC>
static __device__ void flat_store_rounded(const flat &f, int64_t i, const float (&v)[VEC],
                                          const rounder &r, const round_place &at, int k,
                                          uint64_t key)
{
    static_assert(VEC == 1 || VEC == EIGHT, "as blocks of random bits");
    uint16_t *to = (uint16_t *)f.p + i;
    if (f.type != DTYPE_BF16) {
        flat_store(f, i, v);
    } else if constexpr (VEC == 1) {
        *to = (uint16_t)rounded(v[0], round_one(key, at.stream, at.index));
    } else {
        const uint4 two = round_eight(r, at, k, i, key);
        *(uint4 *)to = make_uint4(rounded_two(v[0], v[1], two.x), rounded_two(v[2], v[3], two.y),
                                  rounded_two(v[4], v[5], two.z), rounded_two(v[6], v[7], two.w));
    }
}

#endif

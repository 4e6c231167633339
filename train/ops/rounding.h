/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_OPS_ROUNDING_H
#define TRAIN_OPS_ROUNDING_H

/*
 * Stochastic rounding from F32 to BF16 (struct rounding, ops.h). BF16 is the upper half of F32, so
 * 16 random bits are added to the lower half, which is then cut off: a number goes away from 0 with
 * exactly the probability of what is cut off, and its mean is the number itself, subnormal ones
 * included. What BF16 can represent never changes, NaN and infinities stay, and a finite number
 * never becomes infinite: beyond the largest finite one it is that one.
 *
 * The bits of element e of a tensor: philox(key, RNG_ROUND, stream, e / 8), the e % 8th 16 bits of
 * its 128, low half of a word first. `stream` is a hash of the tensor's name, `e` its index in the
 * whole tensor of a checkpoint, so that the bits do not depend on the layout; `key` the first 64
 * bits of philox(seed, RNG_ROUND, which, step).
 */

#include <string.h>

#ifndef __cplusplus
#include "base/core/rng.h"
#endif
#include "train/ops/ops.h"

/* Which of the numbers of an element: its weight, or the i-th moment, ROUND_MOMENT + i. */
enum { ROUND_WEIGHT, ROUND_MOMENT };

/*
 * A part of a tensor in a flat range: `width` elements of each row of it, one row after the other.
 * It ends where the next one begins, the last one never does, and the first begins at 0; the same
 * table serves every part of the range. The layout is fixed, the same on the host and on every
 * device.
 */
struct number_run {
    int64_t begin;         /* in the range */
    int64_t index;         /* of that element in the whole tensor */
    int64_t width, stride; /* of a row here, and in the whole tensor */
    uint32_t stream, zero;
};

enum { RUN_INTS = sizeof(struct number_run) / sizeof(int32_t) };

#ifndef __cplusplus /* devices have functions of their own (cuda/optim/rounding.cuh) */

/* The run that holds the element at `place` of the range. */
static inline int64_t run_find(const struct number_run *run, int64_t n, int64_t place)
{
    int64_t low = 0, high = n;
    while (high - low > 1) {
        int64_t middle = (low + high) / 2;
        if (run[middle].begin <= place)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* Its index in the whole tensor. */
static inline uint64_t run_index(const struct number_run *r, int64_t place)
{
    int64_t k = place - r->begin;
    return (uint64_t)(r->index + k / r->width * r->stride + k % r->width);
}

static inline uint64_t round_key(uint64_t seed, uint32_t which, uint64_t step)
{
    struct rng4 r = rng_block(seed, RNG_ROUND, which, step);
    return r.v[0] | (uint64_t)r.v[1] << 32;
}

/* The block of random bits that element e shares with its neighbours, and its own 16 of these. */
static inline struct rng4 round_block(uint64_t key, uint32_t stream, uint64_t e)
{
    return rng_block(key, RNG_ROUND, stream, e / 8);
}

static inline uint32_t round_bits(struct rng4 block, uint64_t e)
{
    return block.v[e % 8 / 2] >> 16 * (e % 2) & 0xffff;
}

/* A NaN is made quiet, as by any cast. */
static inline uint16_t round_bf16(float x, uint32_t bits)
{
    const uint32_t infinite = 0x7f800000;
    uint32_t u;
    memcpy(&u, &x, sizeof(u));
    if ((u & infinite) == infinite)
        return (uint16_t)(u >> 16 | (u << 9 ? 0x40 : 0));
    uint32_t sum = u + bits;
    return (uint16_t)(((sum & infinite) == infinite ? u : sum) >> 16);
}

#endif /* __cplusplus */

#endif

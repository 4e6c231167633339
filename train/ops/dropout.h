/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_OPS_DROPOUT_H
#define TRAIN_OPS_DROPOUT_H

/* The masks of struct dropout, one element at a time. */

#include "base/core/rng.h"
#include "train/ops/ops.h"
#include "train/ops/values.h"

static inline uint64_t drop_seed(struct dropout d)
{
    return tensor_none(d.origin) ? d.seed : ((const struct drop_origin *)d.origin.data)->seed;
}

static inline uint64_t drop_row0(struct dropout d)
{
    const struct drop_origin *o = d.origin.data;
    return tensor_none(d.origin) ? d.row0 : d.row0 + o->row0;
}

/* Random bits of an element, and how many elements have a block of them. */
enum { DROP_BITS = 15, DROP_BLOCK = 8, DROP_ROUNDS = 7 };

/* An element is kept if its bits are at least this: p in units of 2^-15, below 1. */
static inline uint32_t drop_threshold(struct dropout d)
{
    uint32_t t = (uint32_t)((double)d.p * (1 << DROP_BITS) + 0.5);
    return t < 1 << DROP_BITS ? t : (1 << DROP_BITS) - 1;
}

/* 1 / (1 - p) of that p, so that the mean of a factor is 1. */
static inline double drop_scale(struct dropout d)
{
    return (double)(1 << DROP_BITS) / ((1 << DROP_BITS) - (double)drop_threshold(d));
}

/* The number of the block that has the bits of column `col`; `row` includes row0. */
static inline uint64_t drop_block(uint64_t row, int64_t col, int64_t width)
{
    return row * (uint64_t)((width + DROP_BLOCK - 1) / DROP_BLOCK) + (uint64_t)(col / DROP_BLOCK);
}

static inline struct rng4 drop_random(struct dropout d, uint64_t block)
{
    uint64_t seed = drop_seed(d);
    const uint32_t ctr[4] = {(uint32_t)block, (uint32_t)(block >> 32), d.sub, RNG_DROPOUT};
    const uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    return philox4x32_rounds(ctr, key, DROP_ROUNDS);
}

/* The bits of element i of a block. */
static inline uint32_t drop_bits(struct rng4 random, int64_t i)
{
    return random.v[i % 4] >> i / 4 * 16 & ((1 << DROP_BITS) - 1);
}

/* The global number of a row of a [n, width] tensor. */
static inline uint64_t drop_row(struct dropout d, int64_t row)
{
    int64_t at = tensor_none(d.rows) ? row : ((const int32_t *)d.rows.data)[row];
    return drop_row0(d) + (uint64_t)at;
}

/* What an element is multiplied by: 1 without dropout, else 0 or 1 / (1 - p). `row`: global. */
static inline double drop_factor(struct dropout d, uint64_t row, int64_t col, int64_t width)
{
    if (!(d.p > 0))
        return 1;
    struct rng4 random = drop_random(d, drop_block(row, col, width));
    return drop_bits(random, col % DROP_BLOCK) >= drop_threshold(d) ? drop_scale(d) : 0;
}

/* The same of a row's number in its tensor. */
static inline double drop_at(struct dropout d, int64_t row, int64_t col, int64_t width)
{
    return d.p > 0 ? drop_factor(d, drop_row(d, row), col, width) : 1;
}

/* The noise of element e of an embedding, between -noise and noise. */
static inline double drop_noise_at(struct dropout d, float noise, uint64_t e)
{
    uint32_t bits = rng_block(drop_seed(d), RNG_NOISE, 0, e / 4).v[e % 4];
    return (double)noise * (2 * (double)rng_unit(bits) - 1);
}

/* The number of element (row, 0) of a [n, width] tensor. */
static inline uint64_t drop_element(struct dropout d, int64_t row, int64_t width)
{
    return drop_row(d, row) * (uint64_t)width;
}

#endif

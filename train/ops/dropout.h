/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_OPS_DROPOUT_H
#define TRAIN_OPS_DROPOUT_H

/* The masks of struct dropout, one element at a time. */

#include <math.h>

#include "base/core/rng.h"
#include "train/ops/ops.h"

/* An element is kept if its 32 bits are at least this. */
static inline uint32_t drop_threshold(struct dropout d)
{
    return (uint32_t)ceil((double)d.p * 0x1p32);
}

static inline double drop_scale(struct dropout d)
{
    return 1 / (1 - (double)d.p);
}

/* What element e is multiplied by: 1 without dropout, else 0 or 1 / (1 - p). */
static inline double drop_factor_at(struct dropout d, uint64_t e)
{
    if (!(d.p > 0))
        return 1;
    uint32_t bits = rng_block(d.seed, RNG_DROPOUT, d.sub, e / 4).v[e % 4];
    return bits >= drop_threshold(d) ? drop_scale(d) : 0;
}

/* The same for element (row, col) of a [n, width] tensor. */
static inline double drop_factor(struct dropout d, int64_t row, int64_t col, int64_t width)
{
    return drop_factor_at(d, (d.row0 + (uint64_t)row) * (uint64_t)width + (uint64_t)col);
}

#endif

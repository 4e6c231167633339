/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_OPS_DROPOUT_H
#define TRAIN_OPS_DROPOUT_H

/* The masks of struct dropout, one element at a time. */

#include <math.h>

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
    uint32_t bits = rng_block(drop_seed(d), RNG_DROPOUT, d.sub, e / 4).v[e % 4];
    return bits >= drop_threshold(d) ? drop_scale(d) : 0;
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
    int64_t at = tensor_none(d.rows) ? row : ((const int32_t *)d.rows.data)[row];
    return (drop_row0(d) + (uint64_t)at) * (uint64_t)width;
}

/* drop_factor_at of element (row, col). */
static inline double drop_factor(struct dropout d, int64_t row, int64_t col, int64_t width)
{
    return drop_factor_at(d, drop_element(d, row, width) + (uint64_t)col);
}

#endif

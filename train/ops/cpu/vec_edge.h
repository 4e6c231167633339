/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_OPS_CPU_VEC_EDGE_H
#define TRAIN_OPS_CPU_VEC_EDGE_H

/*
 * Loads and stores of at most n elements, n >= 1, that cost no mask where n is at least VL. Lanes
 * behind the edge are loaded as zeros and not stored.
 */

#include "train/ops/cpu/vec.h"

static inline __attribute__((always_inline)) vf v_get(const float *p, int64_t n)
{
    return n >= VL ? v_load(p) : v_load_n(p, n);
}

static inline __attribute__((always_inline)) void v_put(float *p, int64_t n, vf v)
{
    if (n >= VL)
        v_store(p, v);
    else
        v_store_n(p, n, v);
}

/* Zeros behind the edge. */
static inline __attribute__((always_inline)) vf v_keep(vf v, int64_t n)
{
    float lane[VL];
    if (n >= VL)
        return v;
    v_store(lane, v);
    return v_load_n(lane, n);
}

#endif

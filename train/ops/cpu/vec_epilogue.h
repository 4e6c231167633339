/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_OPS_CPU_VEC_EPILOGUE_H
#define TRAIN_OPS_CPU_VEC_EPILOGUE_H

/* What follows a product: bias, activation and its slope, on a piece of y still in the cache. */

#include "base/core/fault.h"
#include "train/ops/cpu/fast.h"
#include "train/ops/cpu/vec_math.h"

static inline vf act_slope(enum act act, vf pre)
{
    if (FAULT("matmul_dgelu"))
        return act == ACT_GELU_ERF ? v_gelu_tanh(pre) : v_gelu_erf(pre);
    return act == ACT_GELU_ERF ? v_gelu_erf_slope(pre) : v_gelu_tanh_slope(pre);
}

static inline void epilogue_row(const struct matmul_args *a, int64_t i, struct range cols)
{
    float *y = row(a->y, i), *pre = tensor_none(a->pre) ? NULL : row(a->pre, i);
    const float *bias = tensor_none(a->bias) ? NULL : row(a->bias, 0);
    for (int64_t j = cols.begin; j < cols.end; j += VL) {
        int64_t n = cols.end - j;
        vf v = v_load_n(y + j, n);
        if (bias)
            v = v + v_load_n(bias + j, n);
        if (a->act_bwd) {
            v = v * act_slope(a->act, v_load_n(pre + j, n));
        } else if (a->act != ACT_NONE) {
            if (pre)
                v_store_n(pre + j, n, v);
            v = a->act == ACT_GELU_ERF ? v_gelu_erf(v) : v_gelu_tanh(v);
        }
        v_store_n(y + j, n, v);
    }
}

static inline void epilogue(const struct matmul_args *a, struct range rows, struct range cols)
{
    if (tensor_none(a->bias) && a->act == ACT_NONE)
        return;
    for (int64_t i = rows.begin; i < rows.end; i++)
        epilogue_row(a, i, cols);
}

#endif

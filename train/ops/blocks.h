/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_OPS_BLOCKS_H
#define TRAIN_OPS_BLOCKS_H

/* Operations of optimizers that look at whole tensors. Types as in ops.h. */

#include "train/ops/ops.h"

/*
 * Statistics of a block of gradients x (contiguous, `grad`), of which a call may have a part. First
 * without deviations: count += n, sum += sum of x. Then, when these are those of the whole block:
 * deviations += sum of (x - sum / count)^2. All F64 [1], added up in double.
 */
struct moments_args {
    struct tensor count, sum, deviations /* or none */, x;
};

/*
 * y[i] = |g| / (s + eps) of block i: the norm of its gradients by their standard deviation (of
 * count - 1; 0 for a single element), both times `factor`. With `max` all are divided by the
 * greatest. Blocks of count 0 get 0. All F64 [n] but factor, F64 [1], and skip, I32 [1]: where it
 * is not 0 nothing happens. SGD-SaI (Xu et al. 2024, arXiv 2412.11768).
 */
struct gsnr_args {
    struct tensor y, count, sum, deviations, factor, skip;
    double eps;
    bool max;
};

/*
 * A running mean of gradients, n elements, contiguous: with g' = g * factor
 *     m = g' where *number, that of the step, is 1, else momentum m + (1 - momentum) g'
 *     y = m, with nesterov momentum m + (1 - momentum) g'
 * m may be none: y is g'. y may be m's memory. m and y are `master`, g is `grad`; factor and number
 * F64 [1]. Where *skip (I32 [1]) is not 0, m stays and y is undefined.
 */
struct momentum_args {
    struct tensor y, m, g, factor, skip, number /* or none */;
    double momentum;
    bool nesterov;
    struct rounding round; /* of m, and of y where it is m's memory */
};

/*
 * p = p (1 - lr decay) - lr scale x on n elements, contiguous, of the type `master`; with `gsnr`
 * (F64 [1] or none) scale is multiplied by it. lr and decay are those of `values` (F64
 * [STEP_VALUES], values.h); decay is 0 unless `decays`. Nothing happens where *skip is not 0.
 */
struct decayed_args {
    struct tensor p, x, gsnr, skip, values;
    bool decays;
    double scale;
    struct rounding round; /* of p */
};

/* y = s y + t x, and x = x / (|x| + 1e-7) of any number of elements: of the type `master`, without
 * gaps. */
struct combine_args {
    struct tensor y, x;
    double s, t;
};
struct unit_args {
    struct tensor x;
};

void op_moments(struct ops *o, const struct moments_args *a);
void op_gsnr(struct ops *o, const struct gsnr_args *a);
void op_momentum(struct ops *o, const struct momentum_args *a);
void op_decayed(struct ops *o, const struct decayed_args *a);
void op_combine(struct ops *o, const struct combine_args *a);
void op_unit(struct ops *o, const struct unit_args *a);

struct op_cost blocks_cost(enum op op, const void *args);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_OPS_HEAD_NORM_H
#define TRAIN_OPS_HEAD_NORM_H

/*
 * The RMS norm of each head of queries or keys (QK norm; Henry et al. 2020): the same weight for
 * all heads. Types, sizes and what is written or added to as in ops.h.
 */

#include "train/ops/ops.h"

/*
 * In place on heads x [n,H,D]: x = x / sqrt(mean(x^2) + eps) * w, the mean over a head. pre [n,H,D]
 * receives what was in x, rstd [n,H] one over the root; both none if there will be no backward.
 * less_one: as of norm_args.
 */
struct head_norm_args {
    float eps;
    bool less_one;
    struct tensor x, pre, rstd, w /* [D] */;
};

/* dx holds the gradient of the output and receives that of the input; dw is added to. */
struct head_norm_bwd_args {
    bool less_one;
    struct tensor dx, pre, rstd, w, dw;
};

void op_head_norm(struct ops *o, const struct head_norm_args *a);
void op_head_norm_bwd(struct ops *o, const struct head_norm_bwd_args *a);

/* op_cost of these. */
struct op_cost head_norm_cost(enum op op, const void *args);

#endif

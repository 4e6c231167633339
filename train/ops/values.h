/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_OPS_VALUES_H
#define TRAIN_OPS_VALUES_H

/*
 * What differs between two steps, and between two micro-batches. Ops read it from the device's
 * memory, not from their arguments: a captured call repeats its arguments, and the host issues a
 * step before it knows how the one before it ended. The layout is fixed, the same on the host and
 * on every device; every member has 8 bytes and is aligned to them.
 */

#include <assert.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>

#include "train/ops/ops.h"

/* Of a step: a tensor F64 [STEP_VALUES]. */
struct step_values {
    double lr;            /* learning rate */
    double decay;         /* weight decay of what decays */
    double number;        /* of the optimizer's step, from 1; skipped ones do not count */
    double correction[2]; /* of Adam's moments, which begin at 0: 1 - beta^number of each */
    double scale;         /* of the loss; 1: none */
    double route; /* weight of a micro-batch's balancing and z losses, loss scale included */
};

/* Where they are among the doubles. */
enum { STEP_NUMBER = 2, STEP_SCALE = 5, STEP_ROUTE = 6, STEP_VALUES = 7 };

static_assert(offsetof(struct step_values, number) == STEP_NUMBER * sizeof(double) &&
                  offsetof(struct step_values, scale) == STEP_SCALE * sizeof(double) &&
                  offsetof(struct step_values, route) == STEP_ROUTE * sizeof(double) &&
                  sizeof(struct step_values) == STEP_VALUES * sizeof(double),
              "a tensor of doubles");

/* Of optimizer step `number`, without a loss scale; beta1 and beta2 as AdamW's. */
static inline struct step_values step_values_make(double lr, double decay, double number,
                                                  double beta1, double beta2)
{
    struct step_values v = {lr, decay, number, {1 - pow(beta1, number), 1 - pow(beta2, number)},
                            1,  1};
    return v;
}

/* Where dropout's masks begin: a tensor I32 [DROP_ORIGIN]. */
struct drop_origin {
    uint64_t seed;
    uint64_t row0; /* global number of the micro-batch's first row */
};

enum { DROP_ORIGIN = sizeof(struct drop_origin) / sizeof(int32_t) };

/* Of a micro-batch: F64 [1] and I32 [DROP_ORIGIN], one after the other. */
struct micro_values {
    double divisor; /* the weight of a loss is the loss scale by this; 0: the weight is 0 */
    struct drop_origin origin;
};

static_assert(sizeof(struct micro_values) == 24, "without gaps");

/* One number of the values of a step: F64 [1]; none of none. */
static inline struct tensor step_value(struct tensor values, int which)
{
    return tensor_none(values) ? values : tensor_rows(values, which, 1);
}

/* For the host's entries: the values of a step, and F64 [1] or `otherwise` where it is none. */
static inline const struct step_values *step_values_of(struct tensor values)
{
    return (const struct step_values *)values.data;
}

static inline double value_of(struct tensor t, double otherwise)
{
    return tensor_none(t) ? otherwise : *(const double *)t.data;
}

/* What the gradients of logits are multiplied by. */
static inline double loss_weight(const struct xent_loss_args *a)
{
    double divisor = value_of(a->divisor, 1), factor = value_of(a->factor, 1);
    return divisor > 0 ? a->scale * factor / divisor : 0;
}

/* What of xent_stats a call with `alone` contains. */
static inline struct xent_stats_args loss_stats(const struct xent_loss_args *a)
{
    return (struct xent_stats_args){.logits = a->logits,
                                    .label = a->label,
                                    .max = a->max,
                                    .sum = a->sum,
                                    .target = a->target,
                                    .first = a->first,
                                    .max_given = false};
}

/* y [n] = row 0 of x [2,n], or row 1 where *skip (I32 [1]) is not 0. F64. */
struct select_args {
    struct tensor y, x, skip;
};

void op_select(struct ops *o, const struct select_args *a);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_OPTIM_OPTIM_H
#define TRAIN_OPTIM_OPTIM_H

/*
 * The optimizer's part of a step: norm of all gradients, clipping, update by the rule of
 * a table (AdamW, SGD). Under ZeRO (Rajbhandari
 * et al. 2020) a rank keeps a rule's state, Adam's moments, say, of its share of the parameters
 * alone, and updates these. A tensor below has a number for each element of the parameters' slab,
 * or for each that is kept (struct zero_split). Norm, clip factor and skip flag stay on the device;
 * the caller reads them once, when the step is over.
 */

#include "train/comm/comm.h"
#include "train/ops/ops.h"
#include "train/spec/param.h"
#include "train/zero/zero.h"

enum { OPTIM_STATES = 2 };

/* In the order of --optimizer; plain: without momentum, which needs no state. */
enum optim_kind { OPTIM_ADAM, OPTIM_SGD, OPTIM_SGD_PLAIN };

struct optim;

/* Elements of one parameter, all of one decay, and what belongs to them. */
struct optim_piece {
    struct tensor p, copy, g, state[OPTIM_STATES];
    double lr, decay;
    int64_t step;
};

/* An optimizer: what it keeps for each element, by the name that it has in a checkpoint, and how it
 * changes the weights. */
struct optim_rule {
    int states;
    const char *state[OPTIM_STATES];
    void (*update)(const struct optim *o, struct ops *ops, const struct optim_piece *x);
};
const struct optim_rule *optim_rule(enum optim_kind kind);

struct optim {
    const struct optim_rule *rule;
    const struct params *params;
    const struct zero_split *zero;
    struct tensor weights, grads; /* all or kept */
    struct tensor master;         /* what is updated: `weights`, or kept ones of a wider type */
    struct tensor state[OPTIM_STATES]; /* kept */
    struct tensor total, norm, factor; /* F64 [1] */
    struct tensor labels; /* F64 [1]: gradients are to be divided by it; none: they are means */
    struct tensor skip;   /* I32 [1]: 1 if the norm was not finite and nothing was done */
    double beta1, beta2, eps, momentum, clip;
};

/* Cuts moments from `optimizer`, with weights of the type `master` if `weights` are of another, and
 * the scalars from `activations`. Called twice, as slabs are. */
void optim_take(struct optim *o, struct slab *optimizer, struct slab *activations,
                enum dtype master);

/* What a step has of its own: learning rate, weight decay of matrices, its number from 1 without
 * skipped ones. */
struct optim_at {
    double lr, decay;
    int64_t step;
};

/* Gradients are left as they are; of the weights those that are kept are updated. */
void optim_step(struct optim *o, struct ops *ops, struct comm *comm, const struct optim_at *at);

#endif

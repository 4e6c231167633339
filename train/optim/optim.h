/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_OPTIM_OPTIM_H
#define TRAIN_OPTIM_OPTIM_H

/*
 * The optimizer's part of a step: norm of all gradients, clipping, update by the rule of a table
 * (AdamW, SGD). What a rule keeps for each weight, Adam's moments, say, lies in slabs of
 * the same layout as the parameters, or under ZeRO (Rajbhandari et al. 2020) of an equal part of it
 * on each data-parallel rank: that rank updates these weights, and all gather them. Norm, clip
 * factor and skip flag stay on the device; the caller reads them once, when the step is over.
 */

#include "train/comm/comm.h"
#include "train/ops/ops.h"
#include "train/spec/param.h"

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
    struct tensor weights, grads; /* flat: params->elements */
    struct tensor master; /* likewise, what is updated: `weights`, or theirs in a wider type */
    struct tensor state[OPTIM_STATES]; /* of the elements that this rank updates */
    int64_t begin, count;              /* these: begin .. begin + count - 1 of the flat slabs */
    struct tensor total, norm, factor; /* F64 [1] */
    struct tensor skip; /* I32 [1]: 1 if the norm was not finite and nothing was done */
    double beta1, beta2, eps, momentum, decay, clip;
};

/* Which elements this rank updates: all, or its share of them. */
void optim_share(struct optim *o, struct layout layout, int rank);

/* Cuts moments from `optimizer`, with weights of the type `master` if `weights` are of another, and
 * the scalars from `activations`. Called twice, as slabs are. */
void optim_take(struct optim *o, struct slab *optimizer, struct slab *activations,
                enum dtype master);

/* `step` counts from 1 and does not count skipped ones. Gradients are left as they are. */
void optim_step(struct optim *o, struct ops *ops, struct comm *comm, double lr, int64_t step);

#endif

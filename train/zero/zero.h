/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_ZERO_ZERO_H
#define TRAIN_ZERO_ZERO_H

/*
 * The flat weights and gradients of a rank, which are not always there (ZeRO), and gradients that
 * are sent while others are still computed. The model names the unit that it comes to (struct
 * model_units); here it is gathered before its weights are read, and its gradients are given to
 * reduce.h as soon as the last micro-batch has added to them.
 *
 * Under ZeRO 1 and 2 weights are whole on every rank: after a step they are gathered by buckets,
 * and with overlap_param_gather a bucket is waited for when its first unit is used. Under ZeRO 3 a
 * unit's weights are in a slot of the parameters' slab while they are used, and layers take turns
 * in few slots; under ZeRO 2 and 3 likewise its gradients, of which a rank adds its share to what
 * it keeps, after every micro-batch.
 *
 * Experts that are spread over ranks are the second part of their layer's unit, shared out to the
 * ranks that have the same experts. A part of which there is one copy needs no slot: it is used
 * where it is kept.
 */

#include "train/comm/comm.h"
#include "train/model/model.h"
#include "train/ops/ops.h"
#include "train/tensor/slab.h"
#include "train/zero/slots.h"
#include "train/zero/split.h"

struct zero {
    /* set by the caller, before zero_take; what is pointed to outlives it and stays where it is */
    const struct spec *spec;
    const struct params *params;
    struct ops *ops;
    struct comm *comm;
    struct slab *parameters, *gradients, *workspace;
    struct zero_split split;   /* zero_finish frees it */
    enum dtype real;           /* of the weights; gradients are of ops->grad */
    bool trains;               /* there are gradients */
    bool overlap_grad_reduce;  /* gradients are sent while others are computed */
    bool overlap_param_gather; /* and weights gathered while others are used */

    struct tensor weights, grads; /* flat: of all parameters, or of what is kept */
    struct unit_slots weight_slots, grad_slots;
    struct comm_ticket *ticket; /* [split.n] of each bucket's collective */
    bool *issued;               /* [split.n] and not yet waited for */
    int (*bucket)[UNIT_PARTS];  /* [layers + 2] numbers in split.bucket; -1: one copy, or no such
                                    part. ZeRO 2 and 3 alone */
    int64_t micros;             /* micro-batches of this step */
    int *added;                 /* [layers + 2] those that have added their gradients */
    bool *complete;             /* [params.n] the gradient, in this step */
    size_t early;               /* buckets of the last step that were sent during its backward
                                   passes */
};

/* Cuts weights and gradients from the slabs. Called twice, as slabs are. */
void zero_take(struct zero *z);
void zero_finish(struct zero *z);

/* Makes `w` and, where there are gradients, `g` a stage's views. Again after zero_take. */
void zero_bind(const struct zero *z, struct stage stage, struct weights *w, struct weights *g);

/* What the model calls. */
struct model_units zero_functions(struct zero *z);

/* At the start of a step of so many micro-batches. */
void zero_begin(struct zero *z, int64_t micros);

#endif

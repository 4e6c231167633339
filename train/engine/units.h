/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_ENGINE_UNITS_H
#define TRAIN_ENGINE_UNITS_H

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
#include "train/zero/split.h"

enum { UNIT_SLOT_LAYERS = 3, UNIT_SLOTS = UNIT_SLOT_LAYERS + 2 };

enum unit_part { PART_SHARED, PART_EXPERTS, UNIT_PARTS };

/* Memory for one unit at a time. */
struct unit_slot {
    int64_t at[UNIT_PARTS], size[UNIT_PARTS]; /* elements of the slots' tensor */
    int unit;                                 /* that it holds, UNIT_NONE: none */
    bool pending; /* its collectives have been issued and not waited for */
    struct comm_ticket ticket[UNIT_PARTS];
};

struct unit_slots {
    struct tensor t; /* what is kept, then all slots; none: there are no slots */
    int layers;      /* slots that layers take turns in; then the embedding's, then the head's,
                        which are one if the ends are not tied */
    struct unit_slot slot[UNIT_SLOTS];
    int64_t *place; /* [params.n] element of `t` where a parameter lies; NULL: there are no slots */
};

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

/* Bytes of the slots: memory for whole units, beside the shares that are kept. */
struct slots_whole {
    int layers;     /* at a time; 0: there are no slots */
    uint64_t layer; /* of the largest of them */
    uint64_t ends;  /* embedding and head */
};
struct slots_whole slots_whole(const struct unit_slots *s);

/* What the model calls. */
struct model_units zero_functions(struct zero *z);

/* At the start of a step of so many micro-batches. */
void zero_begin(struct zero *z, int64_t micros);

/* Weights were updated: every rank gets what the others keep. */
void gather_weights(struct zero *z);

/* Waits until all weights that this rank holds are up to date: before they are read other than by
 * the model. */
void gather_wait(struct zero *z);

/* Slots: a unit's gradients, and the end of a micro-batch's. */
struct tensor gradient_of(const struct zero *z, const struct param *p);
void settle_gradients(struct zero *z);

#endif

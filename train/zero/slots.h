/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_ZERO_SLOTS_H
#define TRAIN_ZERO_SLOTS_H

/*
 * Memory for whole units where a rank keeps shares of them (ZeRO 2 and 3): behind what is kept of
 * weights or gradients there are few slots, in which layers take turns.
 */

#include "train/comm/comm.h"
#include "train/spec/param.h"
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

struct zero;

/* The last unit of the model, with the head. */
int slots_last_unit(const struct zero *z);

/* Part of a unit that a parameter is in; the group that shares out a part. */
enum unit_part slots_param_part(const struct zero *z, const struct param *p);
enum group slots_group(enum unit_part part);

/* Fills z->bucket: parts of which there are several copies. */
void slots_find_buckets(struct zero *z);

/* The bucket that a part of a unit is. NULL: the unit has no such part, or the rank keeps all of
 * it. */
const struct zero_bucket *slots_bucket(const struct zero *z, int unit, enum unit_part part);

/* Cuts what is kept, which is returned, and the slots. */
struct tensor slots_take(const struct zero *z, struct unit_slots *s, int layers, struct slab *slab,
                         enum dtype d);

/* Forgets which units the slots hold. */
void slots_drop(struct unit_slots *s);

/* The slot that a unit takes. */
struct unit_slot *slots_find(const struct zero *z, struct unit_slots *s, int unit);

/* A part of the unit in its slot, and this rank's share of it there. */
struct tensor slots_part(const struct zero *z, const struct unit_slots *s, int unit,
                         enum unit_part part);
struct tensor slots_share(const struct zero *z, const struct unit_slots *s, int unit,
                          enum unit_part part);

/* What this rank keeps of it in the flat `t`. */
struct tensor slots_kept(const struct zero *z, struct tensor t, int unit, enum unit_part part);

/* Waits for the collectives of a slot. */
void slots_wait(struct zero *z, struct unit_slot *s);

/* Bytes of the slots: memory for whole units, beside the shares that are kept. */
struct slots_whole {
    int layers;     /* at a time; 0: there are no slots */
    uint64_t layer; /* of the largest of them */
    uint64_t ends;  /* embedding and head */
};
struct slots_whole slots_whole(const struct unit_slots *s);

#endif

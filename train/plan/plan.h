/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_PLAN_PLAN_H
#define TRAIN_PLAN_PLAN_H

/*
 * The planner: wrappers round the device, ops and comm tables that count what passes. Wrapped with
 * `execute` false nothing is done, so the very code of a step can run over unbound slabs; then the
 * peaks of the slabs are the memory that the step needs, and the counts are its work; ops that
 * prepare themselves for a shape do so now, and one that the table lacks is an error. With
 * `execute` true the calls go on to the tables below, and the counts can be held against the plan.
 */

#include <stdbool.h>
#include <stdint.h>

#include "train/comm/comm.h"
#include "train/comm/footprint.h"
#include "train/ops/ops.h"
#include "train/tensor/dev.h"

struct plan_count {
    uint64_t calls;
    double flops, bytes;
};

struct plan {
    bool execute;
    struct plan_count op[OP_COUNT];
    uint64_t collectives;
    double traffic; /* bytes of collectives whose group has more than one rank: of the larger
                       of what a call gives and takes */
    double sent[GROUP_COUNT];    /* bytes that this rank must send at least, if the ranks of a group
                                    share the work of a collective evenly */
    struct comm_staging staging; /* of processes that send messages; without `execute` */
    uint64_t allocations;        /* since the wrap */
    double copied;               /* bytes of device copies */
    struct err failed;           /* the first op that could not be prepared; code 0: none */

    /* private: the tables below, and what stands in their place */
    const struct dev_table *dev;
    const struct comm_table *comm;
    struct dev_table dev_wrap;
    struct comm_table comm_wrap;
    void (*call)(struct ops *o, enum op op, const void *args);
};

/* Without `execute` device and comm may be ones that are not open. Puts the wrapper round all
 * three, which must outlive it; plan_unwrap takes it off again. */
void plan_wrap(struct plan *p, struct dev *d, struct ops *o, struct comm *c, bool execute);
void plan_unwrap(struct plan *p, struct dev *d, struct ops *o, struct comm *c);

double plan_flops(const struct plan *p);

#endif

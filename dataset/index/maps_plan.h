/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DATASET_INDEX_MAPS_PLAN_H
#define DATASET_INDEX_MAPS_PLAN_H

/*
 * The numbers that follow from a spec, for the code that builds maps and the code that checks them.
 * They also share maps_walk.h.
 */

#include "dataset/index/maps.h"

/*
 * What follows from spec and token count alone. L = seq_length, e = extra, T = tokens of an epoch.
 */
struct maps_plan {
    uint64_t nseq;   /* sequences of the share */
    uint64_t tokens; /* T */
    uint64_t epochs; /* E */
    bool separate;
    uint64_t split;   /* samples in the first E - 1 epochs, if separate */
    uint64_t ndoc;    /* E * nseq */
    uint64_t nsample; /* S */
};

/* `name` is for messages. ERR_USAGE without tokens, or if the numbers overflow. */
int maps_plan_make(const struct maps_spec *q, const char *name, uint64_t tokens,
                   struct maps_plan *ret, struct err *e);

/* For maps of files. */
struct maps_late *maps_late_create(void);

static inline void maps_take_plan(struct maps *m, const struct maps_plan *p)
{
    m->tokens = p->tokens;
    m->epochs = p->epochs;
    m->separate = p->separate;
    m->ndoc = p->ndoc;
    m->nsample = p->nsample;
}

#endif

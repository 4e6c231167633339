/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DATASET_MAPS_PLAN_H
#define DATASET_MAPS_PLAN_H

/*
 * What those who build maps and those who check them share: the numbers that follow from a spec,
 * and the walk over the documents that the sample map is.
 */

#include "base/fault.h"
#include "dataset/maps.h"

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

enum { WALK_AHEAD = 32 };

struct walk {
    const struct shard *shard;
    const int32_t *doc;
    uint64_t ndoc;
    uint32_t need; /* tokens of a sample, extra included */
    uint32_t extra;
    uint64_t place; /* in doc */
    int64_t token;
};

static inline struct walk walk_start(const struct maps_spec *q, const struct shard *s,
                                     const struct maps *m)
{
    return (struct walk){s, m->doc, m->ndoc, q->seq_length + q->extra, q->extra, 0, 0};
}

/* Moves on by one sample; false when the documents end before it does. */
static inline bool walk_sample(struct walk *w)
{
    int64_t need = w->need;
    for (;;) {
        int64_t length = shard_length(w->shard, (uint64_t)w->doc[w->place]);
        int64_t left = length - w->token;
        if (FAULT("map_walk") ? need < left : need <= left) {
            w->token += need - w->extra;
            return true;
        }
        if (w->place + 1 == w->ndoc) {
            w->token = length - w->extra;
            return false;
        }
        need -= left;
        w->place++;
        w->token = 0;
        if (w->place + WALK_AHEAD < w->ndoc)
            __builtin_prefetch(w->shard->length + 4 * (uint64_t)w->doc[w->place + WALK_AHEAD]);
    }
}

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_COMM_COMM_H
#define TRAIN_COMM_COMM_H

/*
 * Collectives over the mesh's groups, on tensors. A call enqueues work behind the compute issued so
 * far and returns; comm_wait makes later compute wait for it. Every rank of the group makes the
 * same calls in the same order. A group of one is a real group whose collectives do nothing, so the
 * model has no "if distributed". comm_self.c is the backend for one rank.
 */

#include "train/layout/mesh.h"
#include "train/tensor/tensor.h"

enum reduce { REDUCE_SUM, REDUCE_MAX };

struct comm;

struct comm_table {
    /* in place */
    void (*all_reduce)(struct comm *c, enum group g, struct tensor t, enum reduce r);
    /* `part` of every rank, in order, into `whole` (first dimension) */
    void (*all_gather)(struct comm *c, enum group g, struct tensor whole, struct tensor part);
    /* sum of all ranks' `whole`, this rank's share into `part` */
    void (*reduce_scatter)(struct comm *c, enum group g, struct tensor part, struct tensor whole);
    void (*broadcast)(struct comm *c, enum group g, struct tensor t, int from);
    void (*send)(struct comm *c, enum group g, struct tensor t, int to);
    void (*recv)(struct comm *c, enum group g, struct tensor t, int from);
    void (*wait)(struct comm *c, enum group g);
    void (*barrier)(struct comm *c, enum group g);
    void (*abort)(struct comm *c); /* frees every rank that waits */
    void (*close)(struct comm *c);
};

struct comm {
    const struct comm_table *fn;
    void *state;
    struct mesh mesh;
    int rank, world;
};

/* One rank alone. */
void comm_self_open(struct comm *ret);
void comm_close(struct comm *c);

static inline int comm_size(const struct comm *c, enum group g)
{
    return mesh_group_size(c->mesh, g);
}

static inline void comm_all_reduce(struct comm *c, enum group g, struct tensor t, enum reduce r)
{
    c->fn->all_reduce(c, g, t, r);
}

static inline void comm_wait(struct comm *c, enum group g)
{
    c->fn->wait(c, g);
}

#endif

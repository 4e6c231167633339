/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_COMM_COMM_H
#define TRAIN_COMM_COMM_H

/*
 * Collectives over the mesh's groups, on contiguous tensors. A call is issued after the compute
 * issued so far, and returns a ticket; comm_wait makes later compute wait for that one call.
 * Tickets may be waited for in any order, or never; until then the call's tensors and counts must
 * stay valid and nobody else may access their data. Every rank of a group makes the same calls of
 * that group in the same order; calls of different groups are independent.
 *
 * A group of one is a real group whose collectives copy at most, so the model has no "if
 * distributed". Ranks are named by their index in the group. A sum adds in the order of these, in
 * fp32 for fp32 and narrower types and in double for double, whatever the backend: threads and MPI
 * give the same bits on every rank.
 *
 * A struct comm belongs to the thread that opened it. The first fault of any rank (one that did not
 * join in time, calls that do not fit each other, comm_abort) ends the calls of all ranks: waits
 * return, results are undefined, and comm_fault says why.
 */

#include "base/core/err.h"
#include "base/core/fault.h"
#include "train/layout/mesh.h"
#include "train/tensor/tensor.h"

enum reduce { REDUCE_SUM, REDUCE_MAX }; /* a NaN anywhere is the maximum */

enum comm_kind {
    COMM_ALL_REDUCE,
    COMM_ALL_GATHER,
    COMM_REDUCE_SCATTER,
    COMM_BROADCAST,
    COMM_EXCHANGE,
    COMM_ALL_TO_ALL,
    COMM_BARRIER,
    COMM_KINDS
};

enum {
    COMM_NOBODY = -1,
    COMM_IN_FLIGHT = 64 /* unfinished calls of a rank; one more waits for the oldest */
};

struct comm_call {
    enum comm_kind kind;
    enum group group;
    enum reduce reduce;
    struct tensor to, from;     /* destination and source on this rank; in place: `to` only */
    int to_rank, from_rank;     /* COMM_EXCHANGE, COMM_BROADCAST (from_rank) */
    const int64_t *give, *take; /* COMM_ALL_TO_ALL: rows for and from each rank of the group */
};

/* Zeroed: nothing to wait for. */
struct comm_ticket {
    uint64_t number;
};

struct comm;

/* What another thread may see of a rank's comm. */
struct comm_state {
    bool in_call;      /* a call is issued and not done: the oldest such */
    char call[128];    /* "call 5 of the data-parallel group (all-reduce)" */
    int missing;       /* the rank that it waits for; COMM_NOBODY: not known */
    uint64_t progress; /* another number whenever a call has moved */
    int fault;         /* of any rank, 0 if none */
    int64_t step;      /* that the fault's sentence names, 0 if none */
    char text[256];
};

struct comm_table {
    struct comm_ticket (*issue)(struct comm *c, const struct comm_call *call);
    void (*wait)(struct comm *c, struct comm_ticket t);
    void (*abort)(struct comm *c, const struct err *why);
    /* from any thread; NULL where there are no others: does nothing, nothing to see */
    void (*interrupt)(const struct comm *c, const struct err *why);
    void (*look)(const struct comm *c, struct comm_state *ret);
    void (*close)(struct comm *c);
};

#if WEFT_FAULTS
enum { COMM_COUNTED = 64 };

/* Calls so far over groups of more than one rank, messages to and from each rank (skip.h). */
struct comm_counts {
    uint64_t all, group[GROUP_COUNT];
    uint64_t to[GROUP_COUNT][COMM_COUNTED], by[GROUP_COUNT][COMM_COUNTED];
};
#endif

struct comm {
    const struct comm_table *fn;
    void *state; /* the backend's own */
    struct mesh mesh;
    int rank, world;
    int fault;          /* code of the first fault that this rank heard of, 0 if none */
    int64_t fault_step; /* that its sentence names, 0 if none */
    char fault_text[256];
    bool fault_heard; /* another process has told of it */
    bool planning;    /* calls are counted and not made (train/plan) */
#if WEFT_FAULTS
    struct comm_counts counts;
#endif
};

/* One rank alone. */
void comm_self_open(struct comm *ret);
/* Waits for the rank's own calls, unless there was a fault. Does nothing if `c` is zeroed. */
void comm_close(struct comm *c);

static inline int comm_size(const struct comm *c, enum group g)
{
    return mesh_group_size(c->mesh, g);
}

static inline int comm_index(const struct comm *c, enum group g)
{
    return mesh_group_index(c->mesh, c->rank, g);
}

/* In place. */
struct comm_ticket comm_all_reduce(struct comm *c, enum group g, struct tensor t, enum reduce r);

/* `part` of every rank, in order, into `whole`; `part` may be this rank's share of `whole`. */
struct comm_ticket comm_all_gather(struct comm *c, enum group g, struct tensor whole,
                                   struct tensor part);

/* The reduction of all ranks' `whole`, this rank's share of it into `part`, which may be that share
 * of `whole`. */
struct comm_ticket comm_reduce_scatter(struct comm *c, enum group g, struct tensor part,
                                       struct tensor whole, enum reduce r);

/* `t` of the rank `from` into that of all others. */
struct comm_ticket comm_broadcast(struct comm *c, enum group g, struct tensor t, int from);

/*
 * Sends `give` to one rank and receives `take` from one, which may be another; either may be none
 * and COMM_NOBODY. Two ranks that exchange with each other cannot block each other.
 */
struct comm_ticket comm_exchange(struct comm *c, enum group g, struct tensor give, int to,
                                 struct tensor take, int from);

/*
 * Rows of `give`, give_rows[k] of them for rank k one after the other, into the `take` of each rank
 * in the order of the senders, take_rows[k] from rank k.
 */
struct comm_ticket comm_all_to_all(struct comm *c, enum group g, struct tensor take,
                                   const int64_t *take_rows, struct tensor give,
                                   const int64_t *give_rows);

/* Over when every rank of the group has issued it. */
struct comm_ticket comm_barrier(struct comm *c, enum group g);

static inline void comm_wait(struct comm *c, struct comm_ticket t)
{
    c->fn->wait(c, t);
}

/* 0, or the first fault with its sentence, found by the job (err.h) or, if another process has told
 * of it, elsewhere. Up to date after each comm_wait. */
int comm_fault(const struct comm *c, struct err *e);

/* What another rank says is an exit code: itself if it is one of a failure in err.h, ERR_FAULT
 * otherwise. */
int comm_code(int code);

/* Ends the calls of all ranks with this error, unless there was a fault before. */
void comm_abort(struct comm *c, const struct err *why);

/* For a watchdog, from any thread while the comm is open: the same, of which the rank itself hears
 * in its wait; and what the rank is doing. */
void comm_interrupt(const struct comm *c, const struct err *why);
void comm_look(const struct comm *c, struct comm_state *ret);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_COMM_COMM_WIRE_H
#define TRAIN_COMM_COMM_WIRE_H

/*
 * Collectives of ranks that are processes, over anything that carries messages (MPI, sockets). One
 * thread of the process, the comm thread, makes all calls of the table below: it sends and receives
 * without blocking, so calls of different groups do not wait for each other, and sleeps between
 * polls while nothing moves. Before any data, ranks exchange which call they make. In a reduction
 * they exchange their parts and each adds its slice in rank order (reduce.h).
 */

#include "train/comm/queue.h"

/* A message that is on its way: what the carrier needs to know it again. */
struct wire_request {
    uint64_t word[2];
};

enum { WIRE_TEXT = 256 };

/* One that another rank tells is checked where it is heard: the code is that of a failure in err.h,
 * or ERR_FAULT, the step is not negative, and the text is plain. */
struct wire_fault {
    int32_t code;
    int32_t heard; /* not sent: another rank has told of it */
    int64_t step;  /* that the text names; 0: none */
    char text[WIRE_TEXT];
};

/*
 * A carrier. Messages of one tag from one rank to another arrive in the order in which they were
 * sent; those of different tags are independent. Memory stays where it is until the message is done
 * or cancelled.
 */
struct wire_table {
    /* Begins on the comm thread, and ends there: together, with all other ranks, or after a fault,
     * when they may not be there any more. */
    int (*begin)(void *wire, int *ret_rank, int *ret_world, struct err *e);
    void (*end)(void *wire, bool together);
    void (*send)(void *wire, int rank, int tag, void *at, int64_t bytes, struct wire_request *ret);
    void (*receive)(void *wire, int rank, int tag, void *at, int64_t bytes,
                    struct wire_request *ret);
    /* Whether all of them are done; moves what can be moved. */
    bool (*done)(void *wire, struct wire_request *r, int n);
    void (*cancel)(void *wire, struct wire_request *r, int n);
    /* Tells all other ranks of this rank's fault; returns at once. */
    void (*tell)(void *wire, const struct wire_fault *f);
    /* Whether another rank has told of one, is lost, or the carrier itself has failed. */
    bool (*heard)(void *wire, struct wire_fault *ret);
};

struct comm_wire;

/*
 * Starts the comm thread, which begins the wire. `o` may be NULL. On failure the wire has not
 * begun, or has ended.
 */
int comm_wire_join(struct comm_wire **ret, const struct wire_table *fn, void *wire,
                   const struct comm_options *o, struct err *e);
/* When its comm is closed. */
void comm_wire_leave(struct comm_wire *w);

/* One at a time, by all ranks. ERR_USAGE unless the mesh has the world's ranks. */
int comm_wire_open(struct comm *ret, struct comm_wire *w, struct mesh m, struct err *e);

#endif

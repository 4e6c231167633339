/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_COMM_FOOTPRINT_H
#define TRAIN_COMM_FOOTPRINT_H

/*
 * Memory that communication takes beside the tensors of its calls, at most. What an MPI library
 * takes for itself is not known, and not in it.
 */

#include <stdint.h>

#include "train/comm/comm.h"

/* ---- processes that send messages (comm_wire.h) ------------------------------------------- */

enum {
    WIRE_SCRATCH = 1 << 20, /* parts of a sum that came from others, of one call in flight */
    WIRE_EARLY = 1 << 28    /* sockets: messages kept that came before they were asked for */
};

/* Of one call while it is in flight. */
struct comm_staged {
    uint64_t scratch; /* in which a sum is added up */
    uint64_t early;   /* what others may send before this rank asks for it */
};
struct comm_staged comm_wire_staged(const struct comm *c, const struct comm_call *call);

/* Calls in flight, in the order in which they are issued. Zeroed: none. */
struct comm_staging {
    struct comm_staged call[COMM_IN_FLIGHT], sum; /* at number % COMM_IN_FLIGHT */
    uint64_t issued;
    uint64_t most; /* bytes at any time */
};
struct comm_ticket comm_staging_issue(struct comm_staging *s, struct comm_staged call);
void comm_staging_wait(struct comm_staging *s, struct comm_ticket t);

/* ---- GPUs ----------------------------------------------------------------------------------- */

/*
 * NCCL's buffers on this rank's GPU. NCCL gives each connection from another rank, in each of its
 * channels, a buffer for each of its protocols; `ring`, `messages` and the sizes are those of
 * NCCL 2.x (src/init.cc, src/include/device.h, src/graph/paths.cc), of which the documented
 * variables NCCL_BUFFSIZE and NCCL_MAX_NCHANNELS are heard. comm_nccl.c opens a communicator for
 * each group of several ranks, connected when it is made, and two for each neighbour in a pipeline.
 */
struct nccl_buffers {
    uint64_t connection; /* bytes of one: NCCL_BUFFSIZE (4 MiB), LL (512 KiB), LL128 (4.7 MiB) */
    int ring;            /* channels of collectives: 24, as GPUs joined by NVLink have */
    int messages;        /* channels to one rank that messages come from: 32 there */
};
struct nccl_buffers nccl_buffers(void);
uint64_t comm_nccl_bytes(struct mesh m, int rank, struct nccl_buffers b);

#endif

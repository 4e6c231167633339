/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_WATCH_REPLICA_H
#define TRAIN_WATCH_REPLICA_H

/*
 * Whether ranks that must hold the same bytes do: each digests its own, and all compare. A rank
 * whose memory, or whose part of a reduction, went wrong is found within the steps between two
 * comparisons, and named with the tensor.
 */

#include "train/comm/comm.h"

/* Host memory with the same name and size on every rank of the group. */
struct replica {
    const char *name;
    const void *at;
    size_t bytes;
};

/*
 * By all ranks of the group together. 0: equal. ERR_FAULT on all of them names the first tensor
 * that differs, and the ranks that disagree with the most (of two halves, with the first rank). A
 * fault of the comm comes back as it is.
 */
int replicas_compare(struct comm *c, enum group g, const struct replica *r, size_t n,
                     struct err *e);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_COMM_RANGE_H
#define TRAIN_COMM_RANGE_H

/* Which bytes travel between two ranks in a call that copies, for backends that send messages. */

#include "train/comm/comm.h"

struct comm_range {
    char *at;
    int64_t bytes; /* 0: nothing travels */
};

/* Elements [begin, end) of a tensor. */
struct comm_range comm_range(struct tensor t, int64_t begin, int64_t end);

/* What rank `me` of the group gives to its rank `k`. */
struct comm_range comm_given(const struct comm_call *call, int me, int k);
/* What it takes from rank `k`. */
struct comm_range comm_taken(const struct comm_call *call, int k);

/* Round `round` of a range that travels in messages of at most `most` bytes. */
struct comm_range comm_piece(struct comm_range r, int64_t round, int64_t most);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_ENGINE_ALL_RANKS_H
#define TRAIN_ENGINE_ALL_RANKS_H

/*
 * What the ranks of a job tell each other beside tensors: few bytes, where a run starts, saves and
 * ends. All ranks make the same calls in the same order; each is over when it returns. One rank
 * alone only copies.
 */

#include <stddef.h>

#include "base/core/buf.h"
#include "train/comm/comm.h"

/* The `n` bytes of every rank, appended to `all` in the order of ranks; size[world] are theirs. */
int all_ranks_gather(struct comm *c, const void *bytes, size_t n, struct buf *all, size_t *size,
                     struct err *e);

/* `b` becomes that of rank 0. */
int all_ranks_share(struct comm *c, struct buf *b, struct err *e);

/*
 * 0 if `code` is 0 on all ranks; otherwise that of the first rank that failed, which alone keeps
 * its sentence in `e`: a failure is told once. Those that have agreed on a failure before may do so
 * again: the rank with the sentence keeps it.
 */
int all_ranks_agree(struct comm *c, int code, struct err *e);

/* The largest `value` of all ranks; this one's after a fault. */
int all_ranks_max(struct comm *c, int value);

#endif

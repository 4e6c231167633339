/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_COMM_SKIP_H
#define TRAIN_COMM_SKIP_H

/*
 * The planted fault of a skipped collective (base/core/fault.h): all of its ranks skip it, so that
 * none waits. WEFT_FAULT is one of
 *
 *     comm_skip:N           the N-th collective of each rank, where all ranks make the same ones
 *     comm_skip:GROUP:N     the N-th collective of each group of this kind: tp, cp, dp, dp_cp, pp,
 *                           ep, etp, edp, shard, replica, ends, world
 *     comm_skip:GROUP>:N    the N-th message from any rank to any other in such a group, as
 *                           comm_exchange sends them
 *
 * with N from 1. Barriers, calls over a group of one rank, and those of a plan are not counted.
 */

#include "train/comm/comm.h"

#if WEFT_FAULTS
/* Counts the call, and takes out of an exchange the message that is left out. True: nothing of the
 * call is to be done. */
bool comm_skips(struct comm *c, struct comm_call *call);
#else
static inline bool comm_skips(struct comm *c, struct comm_call *call)
{
    (void)c;
    (void)call;
    return false;
}
#endif

#endif

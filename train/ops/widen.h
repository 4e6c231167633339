/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_OPS_WIDEN_H
#define TRAIN_OPS_WIDEN_H

/*
 * Tables whose entries compute in F32 alone, with tensors of 16 bits (BF16, F16): the host's. A
 * call's tensors of 16 bits are copied to F32 in the workspace, the entry runs on the copies, and
 * what it has written is rounded to the nearest value of 16 bits, ties to even, once. So all sums
 * are in F32 (or wider, where the entry has them so), which makes these results the reference for
 * devices with types of 16 bits of their own.
 */

#include "train/ops/ops.h"

/* Runs o's entry, or measures its scratch if `live` is false, as ops_run does. */
void widen_run(struct ops *o, enum op op, const void *args, bool live);

/* Whether the op's tensors are known here; a call of an op that is not listed is a BUG. */
bool widen_lists(enum op op);

#endif

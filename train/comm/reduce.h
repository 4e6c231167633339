/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_COMM_REDUCE_H
#define TRAIN_COMM_REDUCE_H

/*
 * The one addition of all backends: to[i] = from[0][i] + from[1][i] + ... + from[n - 1][i], in this
 * order, or the maximum. Element by element, so any partition of the work gives the same bits.
 * Narrow types are added in float and rounded once at the end, I32 in 64 bits. `to` may be one of
 * `from`.
 */

#include "train/comm/comm.h"

void comm_reduce(void *to, const void *const *from, int n, int64_t count, enum dtype d,
                 enum reduce r);

#endif

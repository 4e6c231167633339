/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_WATCH_COPIES_H
#define TRAIN_WATCH_COPIES_H

/*
 * Whether ranks that hold the same hold equal bytes. Each rank holds boxes of global tensors
 * (state_held): weights, the model's copy of them in 16 bits, the optimizer's state. Where boxes of
 * two ranks overlap, both hold the same. That is all that decides what is compared: data-parallel
 * ranks, parameters that tensor parallelism does not cut, key/value heads that several ranks hold,
 * experts, the tied embedding on both ends of a pipeline, copies of ZeRO's shares. Beside these,
 * all ranks hold one cursor.
 *
 * A rank reads each byte that another one holds, too, once (as fast as memory is read, on all
 * threads; a GPU's memory comes to the host by pieces), and sends 8 bytes for each box.
 */

#include "train/engine/rank.h"

struct copies;

/* Learns what the ranks hold. All ranks together, once a rank is bound. ERR_FAULT: of the comm. */
int copies_find(struct rank *r, struct copies **ret, struct err *e);
void copies_destroy(struct copies *c);

/* Bytes of this rank that others hold, too. */
uint64_t copies_bytes(const struct copies *c);

/*
 * All ranks together, between two steps. 0: equal. ERR_FAULT on all of them names the first tensor
 * that differs, and the ranks that disagree with the most (of two halves, with the first rank). A
 * fault of the comm or the device comes back as it is.
 */
int copies_compare(struct rank *r, struct copies *c, struct err *e);

#endif

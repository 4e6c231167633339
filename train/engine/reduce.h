/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_ENGINE_REDUCE_H
#define TRAIN_ENGINE_REDUCE_H

/* The sums of gradients over ranks, as the parameter table says (param.h, `summed`). */

#include "train/engine/rank.h"

/*
 * After the last micro-batch: first over tensor-parallel ranks, of parameters that all of them
 * have and of key/value heads that several have, then over data-parallel ranks; under ZeRO each of
 * these gets the sums of its own part alone. Between, over the ends of a pipeline, what both have.
 * `totals`, too.
 */
void reduce_gradients(struct rank *r);

/* Losses and counts of all data-parallel ranks, from the last stage to all. */
void reduce_totals(struct rank *r);

#endif

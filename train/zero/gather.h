/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_ZERO_GATHER_H
#define TRAIN_ZERO_GATHER_H

/* Weights of which ranks keep shares: gathered by units under ZeRO 3, by buckets under 1 and 2. */

#include "train/zero/zero.h"

/* A unit's weights are read next, those of `ahead` soon (struct model_units; `arg` is a struct
 * zero). */
void gather_unit(void *arg, int unit, int ahead);

/* Weights were updated: every rank gets what the others keep. */
void gather_weights(struct zero *z);

/* Waits until all weights that this rank holds are up to date: before they are read other than by
 * the model. */
void gather_wait(struct zero *z);

#endif

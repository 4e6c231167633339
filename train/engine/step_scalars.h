/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_ENGINE_STEP_SCALARS_H
#define TRAIN_ENGINE_STEP_SCALARS_H

/*
 * The values of a step (train/ops/values.h) on the device: the host hands over those that follow if
 * the step before was taken and those that follow if it was skipped, and the device takes one or
 * the other by its skip flag. They leave from one of two places of the staging slab in turn, so the
 * host may issue a step while the one before it is computed.
 */

#include "train/engine/rank.h"

void step_scalars_take(struct rank *r, struct slab *activations, struct slab *staging);

/* Of the step after `at`, with the micro-batches of r->config. */
struct step_values step_scalars_of(const struct rank *r, const struct cursor *at);

/* Before the first micro-batch of a step. */
void step_scalars_put(struct rank *r, struct step_values taken, struct step_values skipped);

#endif

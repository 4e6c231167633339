/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_ENGINE_STAGE_H
#define TRAIN_ENGINE_STAGE_H

/*
 * Micro-batches on their way to the device. The loader's batch is that of a data-parallel rank; of
 * context-parallel ranks each takes its rows of it (train/layout/context.h), with their labels,
 * mask and positions.
 */

#include "train/engine/rank.h"

/* The slots, once to measure and once in earnest. */
void stage_take(struct rank *r, struct slab *staging);

/* What of r->model.a is the same for every micro-batch: once, after binding. */
void stage_fill(struct rank *r);

/* The pass of one micro-batch, without the padding of its rows where that is possible. */
struct model_pass rank_pass(struct rank *r, const struct batch *b, bool train);

/* Copies what a pass works on to the device: a micro-batch, or several, with the layout of their
 * sequences and the divisors of their losses (`weighs`: rank_loss_divisor, else 1). `b` may change
 * when this returns. Returns the labels that count; 1 for the planner. */
double rank_stage(struct rank *r, const struct batch *b, bool weighs);

#endif

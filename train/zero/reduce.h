/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_ZERO_REDUCE_H
#define TRAIN_ZERO_REDUCE_H

/*
 * The sums of gradients over ranks, as the parameter table says (param.h, `summed`): first over
 * tensor-parallel ranks, of parameters that all of them have and of key/value heads that several
 * have; then over the ends of a pipeline, what both have; then over data-parallel ranks, by buckets
 * (split.h). Under ZeRO each of these gets the sums of its own share alone.
 *
 * With overlap_grad_reduce a bucket is sent when the last micro-batch has added the last of
 * its gradients, while the backward pass goes on; otherwise all are sent behind it. The calls and
 * the order of each sum are the same, and so are the bits.
 */

#include "train/zero/zero.h"

/* A unit's gradients are added to next; a micro-batch has added its own (struct model_units; `arg`
 * is a struct zero). */
void reduce_begin_unit(void *arg, int unit);
void reduce_end_unit(void *arg, int unit);

/* After the last micro-batch: what is left of all gradients. Waits for all. */
void reduce_gradients(struct zero *z);

/* `t` becomes the sum of all ranks of the group. */
void reduce_sum(struct comm *c, enum group g, struct tensor t);

#endif

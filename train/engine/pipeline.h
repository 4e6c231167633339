/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_ENGINE_PIPELINE_H
#define TRAIN_ENGINE_PIPELINE_H

/*
 * The micro-batches of a step through the stages: one loop over a slot table (train/schedule). A
 * rank without pipeline has the same table, without messages. Between stages travel the residual
 * stream and its gradient; nobody waits for a send but whoever needs its memory again.
 */

#include "train/engine/rank.h"

/* Where micro-batches come from, in their order; `ret` is valid until the next call. */
struct pipeline_source {
    int (*next)(void *arg, const struct batch **ret, struct err *e);
    void *arg;
    double labels; /* counted so far, of this rank's micro-batches */
};

/* After a change of effective.micros, to fewer than those that memory was taken for or back. */
void pipeline_reschedule(struct rank *r);

/* Forward and backward of all effective.micros micro-batches; gradients and the sum of losses add
 * up. An error is the source's. */
int pipeline_train(struct rank *r, struct pipeline_source *in, struct err *e);

/* Forward and loss of `micros` micro-batches, without dropout. */
int pipeline_evaluate(struct rank *r, struct pipeline_source *in, int64_t micros, struct err *e);

/* Cuts what messages and micro-batches in flight need. Called twice, as slabs are. */
void pipeline_take(struct rank *r, struct slab *activations);
void pipeline_finish(struct rank *r);

#endif

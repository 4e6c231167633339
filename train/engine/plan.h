/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_ENGINE_PLAN_H
#define TRAIN_ENGINE_PLAN_H

/* What a rank needs, measured by the code that will need it. */

#include "train/engine/rank.h"

/*
 * Runs the largest thing that this rank will do (a training step, an evaluated micro-batch, a
 * prompt of full length; by config.use) with counters in place of its device, ops and comm tables.
 * The slabs are cut (rank_take), bound or not: no memory is read or written. Afterwards their peaks
 * are known, r->plan holds the counts, and the tables are the real ones again. On an open device
 * ops that must be prepared have been; one that cannot is an error.
 */
int plan_rank(struct rank *r, struct err *e);

#endif

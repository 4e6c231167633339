/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_ENGINE_STEP_H
#define TRAIN_ENGINE_STEP_H

/* One training step, and the losses of an evaluation. */

#include "train/engine/rank.h"

struct step_result {
    double loss; /* mean over the step's tokens, of micro-batches' means */
    double grad_norm;
    double lr;     /* of the next step, as the log line shows it */
    bool skipped;  /* the norm was not finite: weights are as they were */
    double waited; /* seconds, for data */
};

/*
 * Reads config.micros micro-batches from `in`, takes the step, moves r->at on. On failure (data,
 * device) r->at and the weights are those before the step.
 */
int step_train(struct rank *r, struct loader *in, struct step_result *ret, struct err *e);

/* What step_train issues to the device, without a value read: the planner runs this too. */
void step_issue_micro(struct rank *r, const struct batch *b, int64_t micro, float scale);
void step_issue_update(struct rank *r, double lr);

/* Mean loss of `micros` micro-batches from `in`, without dropout. */
int step_evaluate(struct rank *r, struct loader *in, int64_t micros, double *ret, struct err *e);

#endif

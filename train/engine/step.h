/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_ENGINE_STEP_H
#define TRAIN_ENGINE_STEP_H

/* One training step, and the losses of an evaluation. */

#include "train/engine/rank.h"

struct step_result {
    double loss; /* mean over the step's counted labels, of all data-parallel ranks */
    double grad_norm;
    double balance, z; /* of a mixture of experts: means of the losses over layers and
                          micro-batches, without their coefficients */
    double crowded;    /* likewise: share of the passes of layers whose experts had no room for all
                          rows at once (model/rounds.h) */
    double lr;         /* of the next step, as the log line shows it */
    int64_t samples;   /* of this step, of all data-parallel ranks */
    bool skipped;      /* the norm was not finite, or `spike`: weights are as they were */
    bool spike;        /* the loss is above rank.loss_limit */
    double loss_scale; /* of the next step */
    double waited;     /* seconds, for data */
};

/*
 * step_issue reads the micro-batches of a step from `in` (effective.micros, or by the ramp) and
 * issues it; step_complete waits for it and moves r->at on. All ranks call them together. On
 * failure (data, device, another rank) r->at and the weights are those before the step; data that
 * one rank cannot read fail on all of them, before the update, as of all_ranks_agree. A step may be
 * issued while the one before it is computed, on a device of its own: issue, issue, complete,
 * issue, complete and so on. What follows from whether the step before was skipped, the device
 * finds out; the host learns of it when it completes that step, and r->at is the cursor after the
 * last completed step. At most STEPS_AHEAD are issued. If step_issue fails, the steps before it may
 * still be completed.
 */
int step_issue(struct rank *r, struct loader *in, struct err *e);
int step_complete(struct rank *r, struct step_result *ret, struct err *e);

/* Whether a second step may be issued after the one that is: not where the host must know how that
 * one ended, or would wait for it in any case; and not where the last step took AHEAD_MS or more. A
 * device's queue holds fewer launches than such a step has, so that the host would know the losses
 * of one step only at the end of the next, to save a wait that is short beside it. */
enum { AHEAD_MS = 500 };
bool step_may_issue(const struct rank *r);

/* Waits for steps that are issued, and forgets them; weights and optimizer have taken them. */
void step_drop(struct rank *r);

/* What step_issue issues after the last micro-batch, without a value read: the planner runs this,
 * too. Learning rate and the like are those that were put (step_scalars.h). */
void step_issue_update(struct rank *r);

/* Mean loss of `micros` micro-batches from `in` and as many of each other data-parallel rank,
 * without dropout. What one rank cannot read fails on all of them. */
int step_evaluate(struct rank *r, struct loader *in, int64_t micros, double *ret, struct err *e);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_OPTIM_SCALE_H
#define TRAIN_OPTIM_SCALE_H

/*
 * The loss scale. Gradients of 16 bits lose what is small, so the loss is multiplied by a scale
 * before the backward pass and the sums of gradients, which are wider, divided by it afterwards. A
 * dynamic scale is as large as the gradients allow: a step whose gradients overflow is skipped and
 * lowers it, a number of good steps in a row raises it. Pure functions of the steps so far.
 *
 * SCALE_MEGATRON is Megatron-LM core_v0.12.3's rule (DynamicGradScaler): an overflow uses one of
 * `hysteresis`; once they are used up each further one halves the scale, down to `least`. After
 * `window` good steps the scale is doubled and all of `hysteresis` are there again.
 *
 * SCALE_DEEPSPEED is DeepSpeed's (DynamicLossScaler): the last of `hysteresis` halves, and is not
 * used up; an overflow that would lower a scale which is `least` already ends the run. The scale is
 * doubled, and `hysteresis` refilled, whenever the number of good steps since the last overflow is
 * a multiple of `window`; with `consecutive` every good step refills it.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/core/err.h"

enum scale_rule { SCALE_MEGATRON, SCALE_DEEPSPEED };

/* Zeroed: the loss is not scaled. */
struct loss_scale {
    double first; /* at the start, or always; 0: no scale */
    bool dynamic;
    enum scale_rule rule;
    double least;
    int64_t window, hysteresis;
    bool consecutive;
};

/* What a checkpoint holds. */
struct loss_scale_state {
    double scale; /* of the next step; 1 without a scale */
    int64_t good; /* steps since the last overflow, or since the scale was raised */
    int64_t left; /* of the hysteresis */
};

struct loss_scale_state loss_scale_begin(const struct loss_scale *c);

/* After a step. ERR_FAIL: DeepSpeed's rule ends the run. */
int loss_scale_step(const struct loss_scale *c, struct loss_scale_state *s, bool overflow,
                    struct err *e);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_OPTIM_LR_H
#define TRAIN_OPTIM_LR_H

/*
 * The learning rate as a pure function of samples seen, by the rule of Megatron-LM core_v0.12.3
 * (OptimizerParamScheduler): linear warm-up from `init`, then a decay to `min` at `decay` samples.
 * The step taken after n samples uses lr_at(n); the log line shows lr_at(n + global batch).
 */

#include <stdint.h>

enum lr_style { LR_LINEAR, LR_COSINE, LR_CONSTANT, LR_INVERSE_SQRT };

struct lr {
    enum lr_style style;
    double max, min, init;
    double warmup; /* samples; a share of the decay need not be whole */
    int64_t decay; /* samples */
};

double lr_at(const struct lr *c, int64_t samples);

#endif

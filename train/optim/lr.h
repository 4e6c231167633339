/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_OPTIM_LR_H
#define TRAIN_OPTIM_LR_H

/*
 * Learning rate and weight decay as pure functions of samples seen. The step taken after n samples
 * uses lr_at(n) and decay_at(n); the log line shows lr_at(n + global batch). What a user gives in
 * iterations or tokens is converted to samples before (train/course), where it need not be whole.
 * With LR_HF n counts updates instead, as do `warmup` and `decay`.
 *
 * LR_CORE is the rule of Megatron-LM core_v0.12.3 (OptimizerParamScheduler), which
 * Megatron-DeepSpeed shares: linear warm-up from `init`, then from `max` down to `min` at `decay`.
 * LR_V1 is that of Megatron-LM v1.1.5 (AnnealingLR): the decay counts from the end of the warm-up
 * but is as long as if it began at 0, stops where the run does, and so ends above zero; `min` is a
 * floor. LR_EXPONENTIAL, a factor of exp(-0.693) over `decay`, exists there alone and always
 * follows LR_V1.
 *
 * LR_HF is the rule of transformers' schedules (linear, cosine, constant with warm-up), to the last
 * bit: update n has `max` * n / warmup in the warm-up, and what is left of `max` falls to 0 at
 * `decay`, whatever `min` and `init` say.
 */

#include <stdint.h>

enum lr_style {
    LR_LINEAR,
    LR_COSINE,
    LR_CONSTANT,
    LR_INVERSE_SQRT,
    LR_WSD, /* warm-up, stable, then decay over the last `wsd_decay` samples */
    LR_EXPONENTIAL
};

enum lr_rules { LR_CORE, LR_V1, LR_HF };

/* Of LR_WSD; r from 0 to 1: 2 * 0.5^r - 1, 1 - r, half a cosine, 1 - sqrt(r). */
enum wsd_style { WSD_EXPONENTIAL, WSD_LINEAR, WSD_COSINE, WSD_MINUS_SQRT };

struct lr {
    enum lr_style style;
    enum lr_rules rules;
    enum wsd_style wsd_style;
    double max, min, init;
    double warmup, decay, wsd_decay; /* samples; with LR_HF updates */
};

double lr_at(const struct lr *c, int64_t n);

enum decay_style { DECAY_CONSTANT, DECAY_LINEAR, DECAY_COSINE };

/* Weight decay from `start` to `end` at so many samples; with DECAY_CONSTANT both are equal. */
struct decay {
    enum decay_style style;
    double start, end;
    double samples;
};

double decay_at(const struct decay *c, int64_t samples);

/*
 * Samples of the step taken after n samples: from `start` to `full` by `increment`, each size for
 * an equal share of the first `samples` ones (Megatron-LM's --rampup-batch-size); or `full` but in
 * the last step of an epoch, which takes what is left of it.
 */
struct ramp {
    int64_t start, increment, samples; /* increment 0: no ramp */
    int64_t full;
    int64_t epoch; /* samples of an epoch; 0: no epochs. Not beside a ramp */
};

int64_t ramp_at(const struct ramp *c, int64_t samples);

#endif

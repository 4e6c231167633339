/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_COURSE_COURSE_H
#define TRAIN_COURSE_COURSE_H

/*
 * The course of a run: how many steps it takes, of how many samples each, and with which learning
 * rate and weight decay. Users give lengths in iterations, samples or tokens; here all of them
 * become samples. The names, meanings and defaults of the options are those of Megatron-LM
 * core_v0.12.3; of those that count tokens, Megatron-DeepSpeed's; of --lr-rules v1, v1.1.5's.
 */

#include "base/cli/opt.h"
#include "train/optim/lr.h"

/* 0: not given; start_decay and end_decay: -1. */
struct course_flags {
    int64_t train_iters, train_samples, train_tokens;
    double epochs;
    double lr, min_lr, warmup_init, warmup_fraction;
    int style, rules, wsd_style; /* enum lr_style, lr_rules, wsd_style */
    int64_t decay_iters, decay_samples, decay_tokens;
    int64_t warmup_iters, warmup_samples, warmup_tokens;
    int64_t wsd_iters, wsd_samples;
    double weight_decay, start_decay, end_decay;
    int decay_style; /* enum decay_style */
    struct opt_list ramp;
};

static inline bool course_has_length(const struct course_flags *f)
{
    return f->train_iters || f->train_samples || f->train_tokens || f->epochs > 0;
}

struct course {
    int64_t iterations; /* 0: no length is given */
    int64_t samples;    /* that these take */
    struct ramp ramp;
    struct lr lr;
    struct decay decay;
};

/* What lengths are counted in. */
struct course_units {
    int64_t global_batch; /* samples of a step */
    int64_t divisor;      /* of which a step's samples must be a multiple: the micro-batch by the
                             data-parallel processes */
    int64_t seq_length;
    int64_t epoch; /* samples of an epoch; 0: not known, and with --num-train-epochs no length is */
};

/* ERR_USAGE names the options that do not go together. Rates are checked by course_check, which
 * training alone does. */
int course_settle(const struct course_flags *f, const struct course_units *u, struct course *ret,
                  struct err *e);

/* Steps of an epoch; 0: the course is not in epochs. */
int64_t course_epoch_steps(const struct course *c);

/* Steps between evaluations: `given`, else an epoch, else 1000. */
int64_t course_eval_interval(const struct course *c, int64_t given);

/* The step that takes sample number `sample`, from 0 on; 0: the run ends before. */
int64_t course_step_of(const struct course *c, int64_t sample);

int course_check(const struct course_flags *f, const struct course *c, struct err *e);

#endif

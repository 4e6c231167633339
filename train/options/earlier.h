/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_OPTIONS_EARLIER_H
#define TRAIN_OPTIONS_EARLIER_H

/*
 * What the run that a checkpoint is of was started with: the config.toml that lies in it. A
 * checkpoint without that file says nothing; one that is no TOML is ERR_USAGE with file and line.
 */

#include "base/cli/opt.h"
#include "train/ckpt/ckpt.h"
#include "train/course/course.h"

/* Data, split, batches and the like of that run, where the command line and its file name none. */
int earlier_adopt(struct opts *o, const struct ckpt *c, struct err *e);

/* How that run evaluated itself. */
struct earlier_run {
    bool same; /* the options `o` name the samples of its evaluations, by the numbers below */
    int64_t iterations, eval_interval;
    bool full_validation;
};

/* After earlier_adopt. `data_digest` is that of the data that are open now, "" if not known;
 * `batch`, in sequences of a length, and the micro-batch are those adopted; `epoch`: as in struct
 * course_units. */
struct earlier_now {
    const char *data_digest;
    int64_t batch, micro_batch, seq_length, epoch;
};
int earlier_evaluated(const struct opts *o, const struct ckpt *c, const struct earlier_now *now,
                      struct earlier_run *ret, struct err *e);

/* The schedule of that run. ERR_DATA: the checkpoint has no configuration. */
int earlier_course(const struct opts *o, const struct ckpt *c, const struct earlier_now *now,
                   struct course *ret, struct err *e);

/* One warning that names the options which shape a run and are others now, with both values;
 * `any_schedule`: but those of learning rate and weight decay. */
int earlier_compare(const struct opts *o, const struct ckpt *c, bool any_schedule, struct err *e);

#endif

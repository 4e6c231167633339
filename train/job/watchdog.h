/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_JOB_WATCHDOG_H
#define TRAIN_JOB_WATCHDOG_H

/*
 * What a job of several processes is guarded by: a watchdog in each of them (train/watch/watch.h),
 * and comparisons of what several hold. With one process nothing here does anything.
 */

#include "train/job/job.h"
#include "train/watch/watch.h"

/* After job_open_world. `--distributed-timeout-minutes` is what a process that waits for others may
 * take for a phase of a step. ERR_RESOURCE: no thread could be started. */
int watchdog_open(struct job *j, struct err *e);
/* Before the rank's comm is closed. */
void watchdog_close(struct job *j);

/* The phase that this process is in from now on. */
void watchdog_enter(struct job *j, enum watch_phase p);

/* rank_config.progress, `arg` a struct job. */
void watchdog_progress(void *arg, enum rank_phase p, int64_t step);

/* After a step: after the first one, warns of what the optimizer's user should know. */
void watchdog_report_optimizer(struct job *j, bool skipped);

/*
 * All processes together, between two steps: that those which hold the same of weights, optimizer's
 * state and cursor hold the same bytes (train/watch/copies.h), unless it was seen after the same
 * samples before, or the option of the interval is 0. ERR_FAULT names the tensor and the ranks.
 */
int watchdog_compare(struct job *j, struct err *e);

/* The others may wait for this process: this frees them. What another process has told of is
 * printed there; of an output that all share, once. A code without a sentence is one that all have
 * agreed on, so that nobody waits. */
void watchdog_tell_others(struct job *j, struct err *e);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_REPORT_TIMERS_H
#define TRAIN_REPORT_TIMERS_H

/*
 * Times of a rank's phases under Megatron-LM's names: --timing-log-level 1 those of a whole step, 2
 * also those of each micro-batch. Their sums are printed with the log line; with
 * --timing-log-option all every call goes with its start and end into a file of each rank,
 *
 *     {"iteration": 3, "rank": 0, "spans": [["forward-compute", 1700000000.000123,
 * 1700000000.004567], ...]}
 *
 * in seconds since 1970 by that machine's clock.
 */

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/core/buf.h"
#include "base/core/err.h"

/* The names of a rank's phases, ended by NULL; those from `details` on belong to level 2. */
struct timer_names {
    const char *const *name;
    int n, details;
};

enum { TIMERS_MOST = 16 };
enum timer_option { TIMER_MINMAX, TIMER_MAX, TIMER_ALL };

struct timers {
    struct timer_names names;
    int level, rank;
    double epoch;                                /* the time of day where the clock is 0 */
    double begun[TIMERS_MOST], sum[TIMERS_MOST]; /* seconds; since the last line */
    int64_t steps;                               /* likewise */
    FILE *file;                                  /* of spans; NULL: none */
    char *path;
    struct buf spans; /* of this step */
};

/* `folder`: of the files of spans; NULL: none. ERR_IO. */
int timers_open(struct timers *ret, struct timer_names names, int level, int rank,
                const char *folder, struct err *e);
void timers_close(struct timers *t); /* zeroed or closed: nothing */

/* A phase begins, or ends. */
void timers_mark(struct timers *t, int which, bool begins);

/* The step is over. ERR_IO: its spans could not be written. */
int timers_step(struct timers *t, int64_t iteration, struct err *e);

/*
 * The lines of Megatron-LM for the sums of all ranks, sum[rank][TIMERS_MOST], of `steps` steps.
 * Phases that no rank had are left out; nothing at level 0.
 */
void timers_lines(const struct timers *t, enum timer_option o, const double *sum, int ranks,
                  int64_t steps, struct buf *out);

#endif

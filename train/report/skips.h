/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_REPORT_SKIPS_H
#define TRAIN_REPORT_SKIPS_H

/*
 * Counts of steps without an update. They are in the checkpoint, so that a resumed run reports and
 * ends as one without a break. All ranks count the same. How many steps were skipped since the
 * beginning needs no count: those of the run less those of the optimizer.
 */

#include <stdbool.h>
#include <stdint.h>

enum skip {
    SKIP_IN_A_ROW, /* up to the last step */
    SKIP_SPIKES,   /* of these, by --loss-spike-factor */
    SKIP_LINE,     /* since the last log line */
    SKIP_NAN,      /* steps whose loss is NaN, since the last log line */
    SKIP_REWINDS,  /* times that the run went back to a checkpoint */
    SKIPS
};

/* Zeroed: nothing was skipped. */
struct skips {
    int64_t n[SKIPS];
};

/* The key of a count in a checkpoint's state; one that is missing there is 0. */
const char *skips_name(enum skip s);

/* A step was taken, or `skipped`, which a `spike` is. */
void skips_step(struct skips *s, bool skipped, bool spike, bool nan);

/* A log line was written. */
void skips_line(struct skips *s);

/* The run is back at a checkpoint. */
void skips_rewind(struct skips *s);

#endif

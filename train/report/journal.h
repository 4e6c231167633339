/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_REPORT_JOURNAL_H
#define TRAIN_REPORT_JOURNAL_H

/*
 * What a run tells: the log line on stdout every --log-interval steps, evaluation lines, and the
 * metrics file with one JSON object a step. On a terminal the lines are short ones for people. On
 * resume the metrics are cut back to the step that the run resumes from, and so are the curves for
 * TensorBoard. After the first step a line tells the memory.
 */

#include <stdio.h>

#include "base/cli/progress.h"
#include "train/engine/state.h"
#include "train/engine/step.h"
#include "train/metrics/logline.h"
#include "train/options/options.h"
#include "train/report/board.h"
#include "train/report/skips.h"
#include "train/report/timers.h"

struct journal {
    const struct train_options *o;
    FILE *metrics; /* NULL: none */
    char *path;
    int64_t iterations, seq_length;
    double flops; /* of a sequence on one rank, by the published formula */
    double since; /* time of the last log line, less what was not training */
    double step_began;
    double loss_sum; /* since the last line */
    int64_t steps, counted;
    struct skips skips;
    char skips_text[SKIPS][24]; /* as they were when a checkpoint was begun */
    struct buf line;
    struct board board;
    struct timers timers;
    bool memory_told;
    int64_t crowded;   /* steps whose experts had no room for all tokens at once */
    bool unheard;      /* standard output could not be written: no line is printed any more */
    struct err failed; /* the first of the run's files that could not be written; code 0: none */
    /* for the caller to set after journal_open: */
    struct progress *meter; /* wiped before a line is printed; NULL: none */
    bool brief;             /* short lines */
    bool silent;            /* nothing is printed or written: another process does */
};

int journal_open(struct journal *j, const struct train_options *o, const struct rank *r,
                 int64_t iterations, struct err *e);
/* What journal_open would fail with, before anything is written; nothing is left. */
int journal_try(const struct train_options *o, struct err *e);
/* The journal of a process that says nothing: journal_step finds what another's finds. */
void journal_open_silent(struct journal *j, const struct train_options *o, const struct rank *r);

/*
 * ERR_ANOMALY when too many steps in a row were skipped. Files that cannot be written are no error
 * of the step, here and in all that follows: `failed` keeps the first one's sentence, nothing more
 * is written to any, and the caller ends the run when the weights are saved. Where standard output
 * cannot be written, a warning says so once, and the run goes on without it.
 */
int journal_step(struct journal *j, struct rank *r, const struct step_result *s, struct err *e);
void journal_evaluation(struct journal *j, const struct rank *r, const char *suffix,
                        const char *part, double loss);

/* --timing-log-level: the rank's phases are timed from now on. On each rank, which must stay where
 * it is. ERR_IO. */
int journal_open_timers(struct journal *j, struct rank *r, struct err *e);

/* The command that imports the metrics into Weights & Biases, if it was asked for. By the first
 * process, which is the one that speaks. */
void journal_tell_wandb(const struct train_options *o);

/* The counts of skipped steps to a checkpoint, whose texts stay until the next call, and back. */
void journal_put_skips(struct journal *j, struct state_pairs *ret);
int journal_read_skips(struct journal *j, const struct ckpt *c, struct err *e);

/* The run went back to the step at which the rank stands, when it had consumed so many samples. */
void journal_rewind(struct journal *j, const struct rank *r, int64_t consumed);

/* What went on since the last step was an evaluation or a checkpoint: the log's milliseconds are of
 * training alone. */
void journal_pause_over(struct journal *j);

/* Metrics so far are on disk, or `failed`. */
void journal_sync(struct journal *j);
void journal_close(struct journal *j);

#endif

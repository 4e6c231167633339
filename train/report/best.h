/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_REPORT_BEST_H
#define TRAIN_REPORT_BEST_H

/*
 * The best losses of validation so far: whose checkpoints stay (--keep-best), and how many
 * evaluations have passed without a better one (--early-stopping-patience, as transformers'
 * EarlyStoppingCallback counts them). A function of the evaluations in their order; checkpoints
 * hold it as a text, so that a resumed run goes on with it.
 */

#include <stdbool.h>
#include <stdint.h>

enum { BEST_MOST = 100, BEST_TEXT = 80 + BEST_MOST * 50 };

struct best {
    int keep;     /* --keep-best; 0: none */
    int patience; /* 0: a run does not end for it */
    /* what follows is the record */
    int n; /* the keep best ones, the best first; one at least is kept */
    int64_t iteration[BEST_MOST];
    double loss[BEST_MOST];
    int64_t last;    /* iteration of the newest evaluation */
    int64_t without; /* evaluations since the best one */
};

/* An evaluation; one of an iteration that the record has seen does not count again. True: it is
 * among the best `keep`. */
bool best_note(struct best *b, int64_t iteration, double loss);

/* So many evaluations without a better loss as the run was to wait for. */
bool best_is_over(const struct best *b);

/* The record as a text for a checkpoint, and back; NULL, or one that is none: a record of nothing.
 * False: there is nothing to write. */
bool best_write(const struct best *b, char ret[BEST_TEXT]);
void best_read(struct best *b, const char *text);

#endif

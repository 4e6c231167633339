/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_CLI_PROGRESS_H
#define BASE_CLI_PROGRESS_H

/*
 * A progress meter on stderr: time left and rate, redrawn at most ten times a second on a terminal,
 * one line every ten seconds elsewhere, silent when --quiet. One thread updates it. Whoever prints
 * a line of its own while a meter is drawn calls progress_clear first.
 */

#include <stdint.h>

#include "base/core/buf.h"

struct progress {
    const char *what; /* "prep build" */
    const char *unit; /* "MB", "docs", "steps" */
    double scale;     /* counts per unit, 1e6 for MB; 1: whole numbers are shown */
    uint64_t total;   /* 0: not known */
    uint64_t done;
    uint64_t from; /* part of `done` from before the start; set by the caller */
    /* Set by the caller to show the rate in another unit: its name, "tokens", and how many of them
     * a count is. NULL: in `unit`. */
    const char *rate_unit;
    double rate_per_count;
    double start, last; /* seconds, monotonic */
    int terminal, quiet;
    int drawn; /* characters on the terminal's line */
};

void progress_init(struct progress *p, const char *what, const char *unit, double scale,
                   uint64_t total, int quiet);

/* `note` (may be NULL) is printed after the rate: "1,204 docs, 2 bad". */
void progress_update(struct progress *p, uint64_t done, const char *note);

/* The line itself: "prep build: 12.3 of 45.6 MB (27 %), 0:10 left, 3.21 MB/s, 1,204 docs". */
void progress_text(const struct progress *p, double now, const char *note, struct buf *b);

/* Clears the terminal's line, so that another can be printed in its place; the next update
 * draws at once. */
void progress_clear(struct progress *p);

/* Clears the terminal's line; the caller prints its own summary. */
void progress_finish(struct progress *p);

/* Shortens a line of fields separated by ", " to at most `columns` bytes, by whole fields where the
 * first one fits. */
void progress_fit(struct buf *line, int columns);

/* Columns of a descriptor's terminal; 80 if unknown. */
int progress_columns(int fd);

/* Seconds on the monotonic clock. */
double clock_seconds(void);

#endif

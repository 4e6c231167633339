/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_PROGRESS_H
#define BASE_PROGRESS_H

/*
 * A progress meter on stderr: rate and time left, redrawn at most ten times a second on a terminal,
 * one line every ten seconds elsewhere, silent when --quiet. One thread updates it.
 */

#include <stdint.h>

#include "base/buf.h"

struct progress {
    const char *what; /* "prep build" */
    const char *unit; /* "MB", "docs", "tokens" */
    double scale;     /* counts per unit, 1e6 for MB */
    uint64_t total;   /* 0: not known */
    uint64_t done;
    uint64_t from;      /* of `done`, before it began to measure; for the caller to set */
    double start, last; /* seconds, monotonic */
    int terminal, quiet;
    int drawn; /* characters on the terminal's line */
};

void progress_init(struct progress *p, const char *what, const char *unit, double scale,
                   uint64_t total, int quiet);

/* `note` (may be NULL) stands behind the rate: "1,204 docs, 2 bad". */
void progress_update(struct progress *p, uint64_t done, const char *note);

/* The line itself: "prep build: 12.3 of 45.6 MB (27 %), 3.21 MB/s, 0:10 left, 1,204 docs". */
void progress_text(const struct progress *p, double now, const char *note, struct buf *b);

/* Wipes the terminal's line; the caller prints its own summary. */
void progress_finish(struct progress *p);

/* Seconds on the monotonic clock. */
double clock_seconds(void);

#endif

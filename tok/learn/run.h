/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_LEARN_RUN_H
#define TOK_LEARN_RUN_H

/*
 * Sorted runs of words with counts in an unnamed file, which vanishes with the process; and a merge
 * of several runs. A record is the number of bytes (32 bits), the count (64 bits) and the bytes;
 * little-endian, never seen by another process. One thread at a time.
 */

#include <stdint.h>

#include "base/core/buf.h"
#include "base/core/err.h"

struct learn_runs {
    int fd;         /* -1: no file yet */
    char *beside;   /* owned; for messages */
    struct buf out; /* not yet written */
    uint64_t size;  /* bytes written or buffered */
    uint64_t *end;  /* of each run */
    size_t n;
};

void learn_runs_init(struct learn_runs *r, const char *beside);
void learn_runs_finish(struct learn_runs *r);

/* Add in the order of learn_word_hash, then of bytes. */
int learn_runs_add(struct learn_runs *r, const char *word, uint32_t n, uint64_t count,
                   struct err *e);
/* Ends a run; the next word begins another. */
int learn_runs_end(struct learn_runs *r, struct err *e);

/* Called for each distinct word of all runs, with the sum of its counts, in the order below. The
 * word is valid during the call; a nonzero result ends the walk. */
typedef int learn_run_fn(void *arg, const char *word, uint32_t n, uint64_t count, struct err *e);
int learn_runs_walk(const struct learn_runs *r, learn_run_fn *fn, void *arg, struct err *e);

/* Bytes first, then length. */
int learn_word_compare(const char *a, size_t na, const char *b, size_t nb);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CONVERT_RESHARD_H
#define CONVERT_RESHARD_H

/*
 * A checkpoint once more, with its tensors, the optimizer's included, cut into the files of another
 * number of ranks: each group from its first tensor to its last one, in shares of equal size.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/core/err.h"

struct copy_journal;
struct vocab_rows;

struct reshard {
    const char *from; /* a checkpoint, or a folder of them: its newest */
    const char *to;   /* a folder of checkpoints; made if missing */
    int ranks;
    uint64_t max_file_size;        /* 0: the writer's own */
    int threads;                   /* 0: one for each processor */
    bool overwrite;                /* a checkpoint of that iteration may stand there */
    const struct vocab_rows *rows; /* the vocabulary changes by them (rows.h); NULL: it stays */
    struct copy_journal *journal;  /* reshard_run's own */
};

/*
 * ERR_USAGE: `to` has a checkpoint of that iteration. Nothing stands there on failure; one that was
 * interrupted, or failed for want of space, is continued by the next call.
 */
int reshard_run(const struct reshard *r, struct err *e);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CONVERT_COPY_COPY_CKPT_H
#define CONVERT_COPY_COPY_CKPT_H

/* Checkpoints that conversions write: under a temporary name, with a journal (copy_journal.h). */

#include "train/ckpt/ckpt.h"
#include "train/ckpt/shard.h"
#include "convert/copy/copy.h"

struct copy_ckpt {
    const char *dir; /* of checkpoints; made if missing */
    int64_t iteration;
    const char *identity; /* tells this conversion from others */
    /* Fills and commits the checkpoint. `journal` is for the copies' options. */
    int (*write)(void *arg, struct ckpt_writer *w, struct copy_journal *journal, struct err *e);
    void *arg;
};

/*
 * Begins the checkpoint, or takes over what an interrupted conversion of the same identity left,
 * and calls `write`. When that fails for want of space or the like, what it wrote is kept for the
 * next call; otherwise nothing is left.
 */
int copy_ckpt_write(const struct copy_ckpt *c, struct err *e);

/* One rank's planned shard (ckpt_shard_add): begun, filled by n steps whose target i is entry i,
 * ended and added to the writer. */
int copy_ckpt_shard(struct ckpt_writer *w, struct ckpt_shard *s, const struct copy_step *step,
                    size_t n, const struct copy_options *o, struct err *e);

#endif

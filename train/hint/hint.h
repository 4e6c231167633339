/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_HINT_HINT_H
#define TRAIN_HINT_HINT_H

/*
 * Options with which a job would fit into memory that does not. They are looked for on plans of
 * few layers; what is found is written out, parsed behind the command line as a user would give it,
 * and planned as a whole: only a text that fits is returned. The search ends after so many plans as
 * take a tenth of a second.
 *
 * Preferred are the processes that there are to more of them, tensor parallelism within a machine
 * (--nproc-per-node, else 8) to pipeline stages, these to tensor parallelism over machines, and all
 * of that to a shorter sequence.
 */

#include "base/core/limit.h"
#include "train/job/job.h"

/* What does not fit. */
struct hint_job {
    const struct job *job;      /* planned (job_plan_rank) */
    const struct rank *largest; /* of the pipeline's stages, planned as well */
    const struct mem_limit *limit;
    int limits;
    int64_t *left; /* hint_find's own: work that it may still do */
};

/* False: nothing was found. */
bool hint_find(const struct hint_job *p, struct buf *ret);

#endif

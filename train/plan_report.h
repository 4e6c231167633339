/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_PLAN_REPORT_H
#define TRAIN_PLAN_REPORT_H

/* What `train plan` says of a job that is planned (job_plan_rank): one process of each pipeline
 * stage is planned, and the largest is reported. */

#include "base/core/limit.h"
#include "train/job/job.h"

struct plan_report {
    struct job *job;
    struct rank *stage;          /* [pp] planned */
    int largest;                 /* of them */
    double flops;                /* of a step, of all processes */
    double traffic[GROUP_COUNT]; /* bytes that the process sends which sends most */
    double bubble;               /* share of a step in which a process waits for others */
    uint64_t checkpoint;         /* bytes of its tensors */
    struct mem_limit limit[MEM_LIMITS];
    int limits;
};

/* plan_report_close takes half-made ones, too. */
int plan_report_make(struct plan_report *ret, struct job *j, struct err *e);
void plan_report_close(struct plan_report *p);

/* For people, or as one JSON object. */
void plan_report_text(const struct plan_report *p, struct buf *out);
void plan_report_json(const struct plan_report *p, struct buf *out);

/* ERR_RESOURCE where it does not fit (fit.h); the hint names options with which it would.
 */
int plan_report_fit(const struct plan_report *p, struct err *e);

/*
 * Options with which a job would fit that does not. They are looked for on plans of few layers;
 * what is found is written out, parsed behind the command line as a user would give it, and planned
 * as a whole: only a text that fits is returned.
 *
 * Preferred are the processes that there are to more of them, tensor parallelism within a machine
 * (--nproc-per-node, else 8) to pipeline stages, these to tensor parallelism over machines, and all
 * of that to a shorter sequence.
 */

/* False: nothing was found. */
bool plan_hint(const struct plan_report *p, struct buf *ret);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_TRAIN_COMM_JOB_CALLS_H
#define TESTS_TRAIN_COMM_JOB_CALLS_H

/*
 * What one rank of a job of processes does in the tests, over any backend: the calls of calls.h,
 * whose bits must be those of threads, or one of the ways in which a job ends badly.
 */

#include "tests/train/comm/calls.h"
#include "train/comm/queue.h"

struct job_calls {
    void *job;
    int (*open)(struct comm *ret, void *job, struct mesh m, struct err *e);
    int rank, world;
    const struct calls_memory *memory; /* NULL: the host's */
};

/*
 * `what`: "" for the calls; "late", the last rank stays away; "other", it gives more than the
 * others; "abort", it aborts; "die", it kills itself. Returns an exit code with its sentence.
 */
int job_calls_run(const struct job_calls *j, const char *what, struct err *e);

/* Messages of 64 bytes, so that every call takes several rounds, and few of them are kept early. */
struct comm_options job_calls_options(const char *what);

#endif

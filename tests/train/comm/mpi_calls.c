/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <unistd.h>

#include "tests/train/comm/job_calls.h"
#include "train/comm/comm_mpi.h"

/*
 * One rank of an MPI job.
 *
 *     mpirun -n N mpi_calls [WHAT]     N: 2, 4 or 8; WHAT as in job_calls.h
 */

static int open_comm(struct comm *ret, void *job, struct mesh m, struct err *e)
{
    return comm_mpi_open(ret, job, m, e);
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    struct comm_options o = job_calls_options(what);
    struct comm_mpi *job;
    struct err e;
    int code = comm_mpi_join(&job, &o, &e);
    if (!code) {
        struct job_calls j = {.job = job,
                              .open = open_comm,
                              .rank = comm_mpi_rank(job),
                              .world = comm_mpi_world(job)};
        code = job_calls_run(&j, what, &e);
        if (code)
            fprintf(stderr, "rank %d: %s\n", j.rank, e.msg);
        usleep(code ? 300000 : 0); /* mpirun ends the others as soon as one fails */
        comm_mpi_leave(job);
    } else {
        fprintf(stderr, "%s\n", e.msg);
    }
    return code;
}

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_JOB_RANKS_H
#define TRAIN_JOB_RANKS_H

/*
 * The processes of a job: who has started this one, the others that it starts itself
 * (--nproc-per-node), and the collectives between them: over MPI under mpirun, where the program
 * was built with it, else over sockets.
 */

#include "train/job/job.h"
#include "train/launch/place.h"

/* Zeroed, or what ranks_meet has opened: for ranks_leave. */
struct ranks {
    struct comm_mpi *mpi;
    struct comm_tcp *tcp;
};

/*
 * Starts the job's processes on this machine, if the options ask for several and nobody has started
 * this one, and waits for their end. *ret_exit: the exit code of the job; -1: there was nothing to
 * start, and this process is the one to train. Before anything starts a thread.
 */
int ranks_start(const struct train_options *o, const struct launch_place *p, char **argv,
                int *ret_exit, struct err *e);

/* Meets the other processes, within --distributed-timeout-minutes. `ret` has one rank if there are
 * none. Collectives have no time-out of their own: train/job/watchdog.h watches over them. */
int ranks_meet(struct ranks *j, const struct train_options *o, const struct launch_place *p,
               struct job_world *ret, struct err *e);
void ranks_leave(struct ranks *j);

#endif

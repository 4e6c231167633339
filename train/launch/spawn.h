/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_LAUNCH_SPAWN_H
#define TRAIN_LAUNCH_SPAWN_H

/*
 * A program that starts its own ranks: `train run --nproc-per-node 8 ...` is a process that starts
 * itself 8 times, with torchrun's variables, and waits. Called before anything has started a thread
 * or opened a device. On several machines the same command is run on each, with another
 * --node-rank.
 */

#include <stdbool.h>

#include "train/launch/place.h"

struct spawn {
    int per_node;            /* processes to start; at least 1 */
    int nodes, node_rank;    /* 1 and 0: one machine */
    const char *master_addr; /* of node 0; NULL: 127.0.0.1, on one machine only */
    int master_port;         /* 0: any free port on one machine, LAUNCH_PORT on several */
    const char *made_token; /* of the job (token.h), handed to the processes; NULL: none was made */
    const char *log_folder; /* each rank's stderr goes to rank_0000.log in it, too; NULL: none */
    double grace;           /* seconds between the first failure and SIGTERM, and from it to
                             * SIGKILL; 0: 5 */
};

/* ERR_USAGE: the numbers do not fit each other. */
int spawn_check(const struct spawn *s, struct err *e);

/*
 * Starts `program` (a path) with argv and waits until all have ended. *ret_exit: 0, or the exit
 * code of the rank that was the first to fail, 128 + N if signal N ended it.
 *
 * Lines that ranks write to stderr are passed on whole; with a log folder those that are tagged
 * with a rank ("[rank 3] ") and no errors go there alone. Once a rank has written an error, or has
 * failed, only its own are, so that its sentence stands alone; the others are asked to end
 * (SIGTERM, then SIGKILL), except after the codes of a run that was asked to stop, which they
 * return, too. SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2 and SIGQUIT are passed on to all. If this
 * process is killed its ranks are killed.
 *
 * ERR_USAGE: as spawn_check; ERR_IO, ERR_RESOURCE: nothing was started, or what
 * was has been ended.
 */
int spawn_ranks(const struct spawn *s, const char *program, char *const *argv, int *ret_exit,
                struct err *e);

#endif

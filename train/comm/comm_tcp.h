/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_COMM_TCP_H
#define TRAIN_COMM_TCP_H

/*
 * Ranks that are processes with a socket between any two of them (train/launch connects them): the
 * collectives of comm_wire.h without MPI. A rank that exits without leaving, or a broken
 * connection, is a fault that names the rank.
 *
 * What arrives is checked, although it comes from a rank of this job: nothing but the greeting of a
 * connection is proven. Messages that come before they are asked for are kept up to
 * comm_options.early bytes in all; then a rank from which nothing is wanted waits, and one that
 * sends much more while something else is wanted of it is a fault.
 */

#include "train/comm/comm_wire.h"

struct comm_tcp;

/*
 * fd[world]: connected stream sockets, -1 for this rank itself; taken over, and closed on failure.
 * `o` may be NULL. ERR_RESOURCE: no thread could be started.
 */
int comm_tcp_join(struct comm_tcp **ret, int rank, int world, const int *fd,
                  const struct comm_options *o, struct err *e);
/* When its comm is closed. Waits until all ranks have left, unless there was a fault. */
void comm_tcp_leave(struct comm_tcp *job);

/* One at a time, by all ranks of the job. ERR_USAGE unless the mesh has its ranks. */
int comm_tcp_open(struct comm *ret, struct comm_tcp *job, struct mesh m, struct err *e);

#endif

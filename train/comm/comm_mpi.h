/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_COMM_MPI_H
#define TRAIN_COMM_MPI_H

/*
 * Ranks that are processes of one MPI job, as `mpirun -n 8` starts them. One thread of the process
 * makes all MPI calls: it sends and receives without blocking, so calls of different groups do not
 * wait for each other, and sleeps between its looks while nothing moves. Before any data, ranks
 * tell each other which call they make. In a reduction they exchange their parts and each adds its
 * slice in rank order (reduce.h): MPI's own all-reduce promises no order.
 */

#include "train/comm/queue.h"

struct comm_mpi;

/*
 * Joins the job: starts the thread, which initializes MPI, once in a process's life. `o` may be
 * NULL. ERR_FAULT: MPI could not be initialized.
 */
int comm_mpi_join(struct comm_mpi **ret, const struct comm_options *o, struct err *e);
int comm_mpi_rank(const struct comm_mpi *job);
int comm_mpi_world(const struct comm_mpi *job);
/*
 * Leaves it when its comm is closed. After a fault MPI is left as it is, for those who could finish
 * it together are not all there: the process is then to end with an error.
 */
void comm_mpi_leave(struct comm_mpi *job);

/* One at a time, by all ranks of the job. ERR_USAGE unless the mesh has its ranks. */
int comm_mpi_open(struct comm *ret, struct comm_mpi *job, struct mesh m, struct err *e);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_COMM_THREADS_H
#define TRAIN_COMM_THREADS_H

/*
 * Ranks that are threads of one process. Each has a comm thread, which opens the rank's calls in
 * their order, so that calls of different groups do not block each other. The one that joins a call
 * last carries it out for all of its ranks, directly from the memory of each into that of the
 * others.
 */

#include "train/comm/queue.h"

struct comm_threads;

/* The mesh has passed mesh_check. `o` may be NULL. Never NULL. */
struct comm_threads *comm_threads_create(struct mesh m, const struct comm_options *o);
/* When all of its ranks are closed. */
void comm_threads_destroy(struct comm_threads *t);

/* Called by the rank's own thread, once for each rank. ERR_RESOURCE: no thread could be started. */
int comm_threads_open(struct comm *ret, struct comm_threads *t, int rank, struct err *e);

#endif

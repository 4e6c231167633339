/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_COMM_THREADS_H
#define TRAIN_COMM_THREADS_H

/*
 * Ranks that are threads of one process. Each has a comm thread, which starts the rank's calls in
 * order and executes any of them that the other ranks have reached, so that calls of different
 * groups do not block each other. It reduces its slice directly from the others' memory, without
 * copies.
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

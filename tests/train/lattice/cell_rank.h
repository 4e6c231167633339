/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_TRAIN_LATTICE_CELL_RANK_H
#define TESTS_TRAIN_LATTICE_CELL_RANK_H

/* One rank of a cell: its samples, its steps, what it holds afterwards. For world.c. */

#include "tests/train/lattice/world.h"
#include "train/comm/comm_threads.h"

struct cell_rank {
    const struct cell *cell;
    int index;
    struct comm_threads *threads; /* NULL: one rank alone */
    struct comm comm;             /* until the rank takes it over; open: of a process */
    struct rank rank;
    struct err e;
    int code;
    struct cell_printed printed;
    struct cell_numbers grads, weights;
    size_t planned[SLAB_COUNT];
};

/* `arg` is a cell_rank with cell, index and threads or comm; the rest is set. Returns NULL. */
void *cell_rank_run(void *arg);
void cell_rank_close(struct cell_rank *c);

void cell_numbers_finish(struct cell_numbers *n);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_TRAIN_LATTICE_SPACE_H
#define TESTS_TRAIN_LATTICE_SPACE_H

/*
 * All cells of the lattice: each valid layout of 1, 2, 4 and 8 ranks (layout_list), with even and
 * with uneven stages, of each model, type, count of micro-batches and layers, with and without
 * dropout and documents, with each recomputation. The objective, overlap, the optimizer, the
 * copies of its state, a growing batch, evaluation and going back to a checkpoint are not
 * multiplied with all of these but alternate from cell to cell. What
 * would only repeat another cell is a rule of space.c; the values of a cell are those of
 * space_axes.
 */

#include "tests/train/lattice/world.h"

/* A cell is one of a base: a single rank's results serve all of these that have one optimizer. */
struct space_cell {
    int base;
    enum optim_kind optimizer;
    struct layout layout;
    struct recompute recompute;
    unsigned overlap;
};

struct space {
    struct space_cell *at; /* in a fixed order, base by base */
    size_t n, room;
    struct cell *base; /* without what their cells have */
    int bases;
};

enum { SPACE_AXES = 22, SPACE_VALUES = 9 };

void space_open(struct space *ret);
/* Those of one model, in double. */
void space_open_model(struct space *ret, struct spec model);
void space_close(struct space *s);

struct cell space_cell(const struct space *s, size_t number);
/* Its value on each axis, below SPACE_VALUES. */
void space_axes(const struct space *s, size_t number, int value[SPACE_AXES]);

/*
 * Numbers of `n` cells (of all, if there are fewer), ascending: any two values of two axes that
 * some cell has together are together in one of these, if n suffices; the rest is random.
 * *ret_pairs: such pairs; *ret_missing: those that no cell of the sample has.
 */
size_t space_sample(const struct space *s, uint64_t seed, size_t n, size_t *ret, size_t *ret_pairs,
                    size_t *ret_missing);

/*
 * Runs cells number[0 .. n) as ranks that are threads. Returns how many differ from the single
 * rank; each is told on stdout as a TAP comment.
 */
size_t space_run(const struct space *s, const size_t *number, size_t n);

/* The same by another runner: 0, or -1 with a sentence. */
struct cell_why {
    char text[600];
};
typedef int space_runner(void *arg, const struct cell *c, const struct cell_single *single,
                         double tolerance, struct cell_why *why);
size_t space_run_by(const struct space *s, const size_t *number, size_t n, space_runner *run,
                    void *arg);

#endif

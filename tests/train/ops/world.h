/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_TRAIN_OPS_WORLD_H
#define TESTS_TRAIN_OPS_WORLD_H

/*
 * What a test of ops needs: a device, a workspace, a table, and tensors that tell on whoever writes
 * where it may not. Every tensor lies between guards and may have gaps between its rows; guards,
 * gaps and fresh tensors hold a poison, a NaN that no arithmetic makes.
 */

#include "train/ops/ops.h"
#include "train/ops/values.h"

enum { WORLD_PIECES = 2048 };

struct world {
    struct dev dev;
    struct slab workspace;
    struct ops ops;
    int pieces;
    struct piece {
        char *memory;
        size_t bytes;
        struct tensor t;
    } piece[WORLD_PIECES];
    uint64_t stream; /* of the next random tensor */
};

/* Fails the case on error. The workspace has `workspace` bytes. */
void world_open(struct world *w, enum dtype real, const char *level, int threads, size_t workspace);
void world_close(struct world *w);
/* Frees the tensors; random numbers start again at `stream`. */
void world_clear(struct world *w, uint64_t stream);

/* Poisoned; `gap` elements lie between its rows. */
struct tensor world_poisoned(struct world *w, enum dtype d, int64_t gap, int rank,
                             const int64_t *size);
/* The table's real type; even numbers of standard deviation `scale`. */
struct tensor world_random(struct world *w, double scale, int64_t gap, int rank,
                           const int64_t *size);
struct tensor world_1d(struct world *w, double scale, int64_t n);
struct tensor world_2d(struct world *w, double scale, int64_t rows, int64_t cols, int64_t gap);
struct tensor world_3d(struct world *w, double scale, int64_t n, int64_t heads, int64_t dim,
                       int64_t gap);
/* I32 in [0, below). */
struct tensor world_ids(struct world *w, int64_t n, int64_t below);
struct tensor world_ints(struct world *w, int64_t n, const int32_t *value);
/* struct step_values of an optimizer's step, as a tensor. */
struct tensor world_values(struct world *w, struct step_values v);

/* Fills the elements with poison again. */
void world_poison(struct tensor t);
/* No guard and no gap of any tensor has been written; the case fails otherwise. */
void world_guarded(const struct world *w);

/* Element i in row-major order, as a double; and writing it. */
double world_get(struct tensor t, int64_t i);
void world_set(struct tensor t, int64_t i, double v);
/* A contiguous copy of the elements, in fresh memory; and putting it back. */
void *world_bytes(struct tensor t);
void world_restore(struct tensor t, const void *bytes);

#endif

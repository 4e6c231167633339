/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_TRAIN_ENGINE_GRAPH_STEPS_H
#define TESTS_TRAIN_ENGINE_GRAPH_STEPS_H

/*
 * Steps of a rank that launches passes as recorded, and of one that launches kernel by kernel: the
 * same bytes, on any device.
 */

#include "train/engine/rank.h"

enum { GRAPH_STEPS = 12, GRAPH_MICROS = 2 };

struct graph_cell {
    struct spec spec;
    enum dtype real;
    uint64_t documents; /* micro-batches have from 2 to so many more examples; 0: rows are whole */
    bool overflow;      /* the first loss scales are too large */
    bool ahead;         /* a step is issued before the end of the one before it is known */
    struct recompute recompute;
};

struct graph_outcome {
    bool on; /* at the end */
    int kinds, skipped;
    uint64_t replays;
};

/* GRAPH_STEPS steps, with an evaluation between them; losses, norms, weights and state are equal.
 */
struct graph_outcome graph_steps(const struct rank_backends *b, const struct graph_cell *c);

/* Cells of each kind, all of which must be replayed. */
void graph_dropout(const struct rank_backends *b, enum dtype real);
void graph_overflow(const struct rank_backends *b);
void graph_documents(const struct rank_backends *b, enum dtype real);
void graph_families(const struct rank_backends *b, enum dtype real);

#endif

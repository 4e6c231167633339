/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_LEARN_SP_LATTICE_H
#define TOK_LEARN_SP_LATTICE_H

/*
 * Segments as lattices: at each position the pieces that begin there. They are computed once, from
 * the sorted suffixes, and afterwards only removed, so that no step searches a text for pieces.
 *
 * Expectations are sums of integers (fixed point, 62 bits for the whole text), so that they do not
 * depend on the order of addition; everything else is computed segment by segment in a fixed order.
 * So all results are the same for any number of threads.
 *
 * Memory: 4 bytes for each position and 6 for each piece at a position.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/thread/pool.h"
#include "tok/learn/sp/segment.h"
#include "tok/learn/sp/suffix.h"

#define LEARN_NONE UINT32_MAX
enum { LEARN_LONGEST = 512 }; /* most characters of a piece */

struct learn_lattice;

/* Scores by piece. */
struct lattice_scores {
    const float *score; /* log of the probability */
    const float *prob;
    size_t n;
    float unknown; /* score of a character without a piece */
};

/* `symbol` numbers the pieces of one character, `repeat` the others, or LEARN_NONE. The segments
 * must outlive the lattice. NULL if one segment has 2^32 pieces at its positions. */
struct learn_lattice *learn_lattice_create(const struct learn_segments *text,
                                           const struct learn_suffix *suffix,
                                           const uint32_t *symbol, const uint32_t *repeat,
                                           struct pool *pool);
void learn_lattice_destroy(struct learn_lattice *l);

uint64_t learn_lattice_edges(const struct learn_lattice *l);

/* The expected count of each piece, followed by that of a character without a piece (n + 1 values);
 * returns the log likelihood of the text. */
double learn_lattice_expect(struct learn_lattice *l, const struct lattice_scores *s,
                            double *expected);

/* The count of each in the best paths (n + 1 values); returns the sum. */
uint64_t learn_lattice_best(struct learn_lattice *l, const struct lattice_scores *s,
                            uint64_t *count);

/* Piece k becomes to[k], or is removed (LEARN_NONE). The order of numbers must be kept. */
void learn_lattice_renumber(struct learn_lattice *l, const uint32_t *to);

/*
 * The best path through `length` characters from a position on without piece `but`: its score, and
 * its pieces from last to first in `way` (at most `length`), LEARN_NONE for a character without
 * one. `work` must hold length + 1 floats.
 */
float learn_lattice_way(const struct learn_lattice *l, const struct lattice_scores *s, uint32_t at,
                        uint32_t length, uint32_t but, float *work, uint32_t *way, uint32_t *ret_n);

#endif

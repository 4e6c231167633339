/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_LEARN_SP_LATTICE_H
#define TOK_LEARN_SP_LATTICE_H

/*
 * Segments as lattices: at each place the pieces that begin there. They are written down once, from
 * the sorted suffixes, and only become fewer, so that no step has to look for pieces in a text.
 *
 * Expectations are sums of whole numbers (fixed point, 62 bits for the whole text), so that they do
 * not depend on the order in which they are added; every other figure is made segment by segment
 * in one order. So all results are the same for any number of threads.
 *
 * It takes 4 bytes for each place and 6 for each piece at a place.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/thread/pool.h"
#include "tok/learn/sp/segment.h"
#include "tok/learn/sp/suffix.h"

#define LEARN_NONE UINT32_MAX
enum { LEARN_LONGEST = 512 }; /* characters of a piece at most */

struct learn_lattice;

/* Pieces by number. */
struct lattice_scores {
    const float *score; /* log of the probability */
    const float *prob;
    size_t n;
    float unknown; /* score of a character without a piece */
};

/* `symbol` numbers the pieces of one character, `repeat` the others, or LEARN_NONE. The segments
 * must outlive the lattice. NULL where a segment alone has 2^32 pieces at its places. */
struct learn_lattice *learn_lattice_create(const struct learn_segments *text,
                                           const struct learn_suffix *suffix,
                                           const uint32_t *symbol, const uint32_t *repeat,
                                           struct pool *pool);
void learn_lattice_destroy(struct learn_lattice *l);

uint64_t learn_lattice_edges(const struct learn_lattice *l);

/* How often each piece is expected, and behind them a character without one (n + 1 figures);
 * returns the log likelihood of the text. */
double learn_lattice_expect(struct learn_lattice *l, const struct lattice_scores *s,
                            double *expected);

/* How often each is in the best ways through (n + 1 figures); returns the sum. */
uint64_t learn_lattice_best(struct learn_lattice *l, const struct lattice_scores *s,
                            uint64_t *count);

/* Piece k becomes to[k], or is gone (LEARN_NONE). Numbers must keep their order. */
void learn_lattice_renumber(struct learn_lattice *l, const uint32_t *to);

/*
 * The best way through `length` characters from a place on without piece `but`: its score, and its
 * pieces from the last to the first in `way` (`length` of them at most), LEARN_NONE for a character
 * without one. `work` has room for length + 1 floats.
 */
float learn_lattice_way(const struct learn_lattice *l, const struct lattice_scores *s, uint32_t at,
                        uint32_t length, uint32_t but, float *work, uint32_t *way, uint32_t *ret_n);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_LEARN_SP_SUFFIX_H
#define TOK_LEARN_SP_SUFFIX_H

/*
 * The substrings that occur more than once in weighted words, found by sorting all suffixes by
 * their first symbols, one more than the longest wanted substring has, so that the work is bounded
 * by positions x length / 3, and mostly a few passes.
 *
 * A repeat is a substring with two occurrences or more, weighted by words, and different neighbours
 * on the right; the end 0 differs from everything, itself included. Its occurrences are a range of
 * the sorted positions. Repeats of one symbol are left out.
 *
 * Work is divided into parts by the first two symbols, so the result is the same for any number of
 * threads. Memory: 8 bytes for each position and 24 for each repeat (of which there are fewer than
 * positions), and for each thread 40 bytes for each position of the largest part.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/thread/pool.h"

/*
 * Concatenated words, each followed by an end: a symbol below `ends`. After ends other than 0
 * follows something outside of the word, the same after equal ends.
 */
struct learn_text {
    const uint32_t *sym;   /* below `symbols` */
    const uint32_t *word;  /* of each position */
    const uint64_t *count; /* of each word */
    size_t n;              /* positions, less than 2^32 */
    uint32_t symbols, ends;
};

struct learn_repeat {
    uint32_t first, last; /* positions at[first .. last) */
    uint64_t count;
    uint32_t length;
};

struct learn_suffix {
    uint32_t *at; /* positions of symbols, sorted by the suffixes there */
    size_t n;
    /*
     * Part by part, in the order of last position, inner before outer. part[i] .. part[i + 1] are
     * the repeats of a part, which share no positions with those of another.
     */
    struct learn_repeat *repeat;
    size_t nrepeat;
    size_t *part; /* nparts + 1 */
    size_t nparts;
};

/* Is this substring wanted? It may be followed by an end other than 0: then return false. Called by
 * several threads. */
typedef bool learn_wanted(const void *arg, const uint32_t *sym, uint32_t n);

/* Finds repeats of 2 to `longest` symbols. The caller finishes `s`. */
void learn_suffix(struct learn_suffix *s, const struct learn_text *t, uint32_t longest,
                  learn_wanted *wanted, const void *arg, struct pool *pool);
void learn_suffix_finish(struct learn_suffix *s);

#endif

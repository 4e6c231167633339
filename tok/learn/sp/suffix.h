/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_LEARN_SP_SUFFIX_H
#define TOK_LEARN_SP_SUFFIX_H

/*
 * The substrings that occur more than once in weighted words, found by sorting all suffixes by
 * their first symbols: no more of them than the longest substring asked for and one, so that the
 * work is bounded by places x length / 3, and mostly a few passes.
 *
 * A repeat is a substring of two occurrences or more, the weights of words counted, that has
 * different neighbours on the right; the end 0 differs from all, itself too. All its occurrences
 * together are a range of the sorted places. Those of one symbol are left out.
 *
 * Work is cut into parts by the first two symbols, so what comes out is the same for any number of
 * threads. It takes 8 bytes for each place and 24 for each repeat (of which there are fewer than
 * places), and each thread 40 bytes for each place of the largest part.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/thread/pool.h"

/*
 * Words side by side, with an end behind each: a symbol below `ends`. Behind ends other than 0
 * something goes on that is no part of the word, the same behind equal ends.
 */
struct learn_text {
    const uint32_t *sym;   /* below `symbols` */
    const uint32_t *word;  /* of each place */
    const uint64_t *count; /* of each word */
    size_t n;              /* places, less than 2^32 */
    uint32_t symbols, ends;
};

struct learn_repeat {
    uint32_t first, last; /* places at[first .. last) */
    uint64_t count;
    uint32_t length;
};

struct learn_suffix {
    uint32_t *at; /* places of symbols, in the order of what stands there */
    size_t n;
    /*
     * Part by part, in the order of last place, inner before outer. part[i] .. part[i + 1] are
     * those of a part, whose places no other part's repeats have.
     */
    struct learn_repeat *repeat;
    size_t nrepeat;
    size_t *part; /* nparts + 1 */
    size_t nparts;
};

/* Is this substring wanted? It may have an end behind it that is not 0: say no. Called by several
 * threads. */
typedef bool learn_wanted(const void *arg, const uint32_t *sym, uint32_t n);

/* Repeats of 2 to `longest` symbols. The caller finishes `s`. */
void learn_suffix(struct learn_suffix *s, const struct learn_text *t, uint32_t longest,
                  learn_wanted *wanted, const void *arg, struct pool *pool);
void learn_suffix_finish(struct learn_suffix *s);

#endif

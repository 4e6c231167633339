/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_LEARN_SP_SEGMENT_H
#define TOK_LEARN_SP_SEGMENT_H

/*
 * Words split wherever no piece may span the position (valid.h); equal segments before equal
 * characters are counted once. A unigram model encodes a word as its segments, so nothing is lost,
 * and there are far fewer of them. Characters that are in no piece are left out.
 *
 * Segments are concatenated, each followed by an end symbol as learn_suffix needs it, which encodes
 * what follows in the word: 0 for nothing, k + 1 for the k-th character by code point, and one more
 * for any that is in no piece. The symbols of characters come after the end symbols, by code point.
 *
 * Memory: 8 bytes for each position, 28 for each segment, twice as much during construction.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/core/err.h"
#include "tok/learn/sp/sp.h"
#include "tok/learn/sp/suffix.h"
#include "tok/learn/sp/valid.h"

struct learn_segments {
    uint32_t *sym, *word; /* by position */
    uint64_t *count;      /* by segment */
    uint32_t *begin;      /* by segment, its first position; n + 1 */
    size_t n, places;
    uint32_t longest; /* positions of the longest, without the end */
    uint64_t total;   /* characters of all segments, weighted by count */
    uint64_t unknown; /* of those left out */

    uint32_t *ch;           /* by symbol, 0 for ends */
    uint8_t *kind;          /* by symbol, from learn_valid_class */
    uint64_t *ch_count;     /* by symbol */
    uint32_t symbols, ends; /* ends are symbols, too */
};

/* The caller finishes `s` in any case. ERR_RESOURCE for 2^32 positions or more. */
int learn_segment(struct learn_segments *s, const struct learn_sentences *from,
                  const struct learn_valid *v, struct err *e);
void learn_segments_finish(struct learn_segments *s);

/* The input of learn_suffix. */
struct learn_text learn_segments_text(const struct learn_segments *s);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_LEARN_SP_SEGMENT_H
#define TOK_LEARN_SP_SEGMENT_H

/*
 * Words cut wherever no piece may reach across (valid.h); equal segments before equal
 * characters are counted once. What a unigram model makes of a word is what it makes of its
 * segments, so nothing is lost, and there are far fewer of them. Characters that are in no piece
 * are left out.
 *
 * Segments stand side by side, each with an end behind it as learn_suffix wants it, which tells
 * what follows in the word: 0 for nothing, k + 1 for the k-th character by code point, and one more
 * for any that is in no piece. The symbols of characters come after the ends, by code point.
 *
 * It takes 8 bytes for each place, 28 for each segment, while it is made twice as much.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/core/err.h"
#include "tok/learn/sp/sp.h"
#include "tok/learn/sp/suffix.h"
#include "tok/learn/sp/valid.h"

struct learn_segments {
    uint32_t *sym, *word; /* by place */
    uint64_t *count;      /* by segment */
    uint32_t *begin;      /* by segment, its first place; n + 1 */
    size_t n, places;
    uint32_t longest; /* places of the longest, without the end */
    uint64_t total;   /* characters of all segments, counts weighed */
    uint64_t unknown; /* and of those left out */

    uint32_t *ch;           /* by symbol, 0 for ends */
    uint8_t *kind;          /* by symbol, as learn_valid_class says */
    uint64_t *ch_count;     /* by symbol */
    uint32_t symbols, ends; /* ends are symbols, too */
};

/* The caller finishes `s` whatever comes back. ERR_RESOURCE where there are 2^32 places or more. */
int learn_segment(struct learn_segments *s, const struct learn_sentences *from,
                  const struct learn_valid *v, struct err *e);
void learn_segments_finish(struct learn_segments *s);

/* As learn_suffix reads them. */
struct learn_text learn_segments_text(const struct learn_segments *s);

#endif

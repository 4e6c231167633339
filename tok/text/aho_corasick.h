/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_TEXT_AHO_CORASICK_H
#define TOK_TEXT_AHO_CORASICK_H

/*
 * Which pieces end at each place of a text: an automaton of Aho and Corasick over characters. Its
 * state is the longest end of the text so far that a piece begins with; the longest piece that ends
 * there comes with it, the others behind that one. So a lattice is filled place by place, each from
 * what lies before it.
 *
 * Built once, then only read, by any number of threads. Texts and pieces are UTF-8.
 */

#include <stddef.h>
#include <stdint.h>

#include "tok/text/trie.h"

enum {
    ENDS_CHARS = 22, /* bits of an id plus 1 */
    ENDS_NEXT = (1 << ENDS_CHARS) - 1,
    ENDS_CHARS_MOST = 1023,
    ENDS_LANES = 16, /* texts that are walked side by side */
    ENDS_TEXTS = 256 /* and at most in a call */
};

struct ends_piece {
    float score;
    uint32_t more;   /* the longest piece that it ends with, 0: none; above it the piece's
                        characters, ENDS_CHARS_MOST also for more */
    uint32_t length; /* in bytes */
};

struct ends_unit {
    uint32_t base, check; /* as in trie.h, but by a character's number instead of a byte */
    uint32_t fail;        /* the longest end of this unit's string that is a unit, too */
    uint32_t piece;       /* the longest piece that ends here; 0: none */
};

enum { ENDS_ROOT = 0 };

struct ends {
    struct ends_unit *unit;
    struct ends_piece *piece; /* by their ids, plus 1 */
    uint32_t *number;         /* of characters, by code point; 0: no piece has it */
};

/*
 * Of n strings in the order of their bytes, whose values are ids below ENDS_NEXT. Of piece[id + 1]
 * the score and the length (0: the piece is left out) are given; it is on the heap and `a` takes
 * it.
 */
void ends_init(struct ends *a, const struct trie_key *key, size_t n, struct ends_piece *piece);
void ends_finish(struct ends *a);

/* The state behind the next character, which has this number; ENDS_ROOT begins. */
static inline uint32_t ends_step(const struct ends *a, uint32_t state, uint32_t number)
{
    for (;;) {
        uint32_t to = a->unit[state].base + number;
        if (a->unit[to].check == state)
            return to;
        if (state == ENDS_ROOT)
            return state;
        state = a->unit[state].fail;
    }
}

/* Texts by the numbers of their characters, number[begin[i] .. end[i]), i < n, none of them empty.
 * Their arrays have room for as many more as there are lanes. */
struct ends_texts {
    size_t n;
    uint32_t begin[ENDS_TEXTS + ENDS_LANES], end[ENDS_TEXTS + ENDS_LANES],
        to[ENDS_TEXTS + ENDS_LANES];
};

/* Each text from its beginning: ret[to[i] + k * ENDS_LANES] becomes the piece behind character k.
 * Several are walked side by side, so that one does not wait for memory; the longest ought to come
 * first, so that no lane is at work on one when all others are done. */
void ends_walk(const struct ends *a, const uint32_t *number, const struct ends_texts *texts,
               uint32_t *ret);

/* The same without vectors; for processors without them, and tests. */
void ends_walk_plain(const struct ends *a, const uint32_t *number, const struct ends_texts *texts,
                     uint32_t *ret);

#endif

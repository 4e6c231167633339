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
    AHO_CORASICK_CHARS = 22, /* bits of an id plus 1 */
    AHO_CORASICK_NEXT = (1 << AHO_CORASICK_CHARS) - 1,
    AHO_CORASICK_CHARS_MOST = 1023,
    AHO_CORASICK_LANES = 16, /* texts that are walked side by side */
    AHO_CORASICK_TEXTS = 256 /* and at most in a call */
};

struct aho_corasick_piece {
    float score;
    uint32_t more;   /* the longest piece that it ends with, 0: none; above it the piece's
                        characters, AHO_CORASICK_CHARS_MOST also for more */
    uint32_t length; /* in bytes */
};

struct aho_corasick_unit {
    uint32_t base, check; /* as in trie.h, but by a character's number instead of a byte */
    uint32_t fail;        /* the longest end of this unit's string that is a unit, too */
    uint32_t piece;       /* the longest piece that ends here; 0: none */
};

enum { AHO_CORASICK_ROOT = 0 };

struct aho_corasick {
    struct aho_corasick_unit *unit;
    struct aho_corasick_piece *piece; /* by their ids, plus 1 */
    uint32_t *number;                 /* of characters, by code point; 0: no piece has it */
};

/*
 * Of n strings in the order of their bytes, whose values are ids below AHO_CORASICK_NEXT. Of
 * piece[id + 1] the score and the length (0: the piece is left out) are given; it is on the heap
 * and `a` takes it.
 */
void aho_corasick_init(struct aho_corasick *a, const struct trie_key *key, size_t n,
                       struct aho_corasick_piece *piece);
void aho_corasick_finish(struct aho_corasick *a);

/* The state behind the next character, which has this number; AHO_CORASICK_ROOT begins. */
static inline uint32_t aho_corasick_step(const struct aho_corasick *a, uint32_t state,
                                         uint32_t number)
{
    for (;;) {
        uint32_t to = a->unit[state].base + number;
        if (a->unit[to].check == state)
            return to;
        if (state == AHO_CORASICK_ROOT)
            return state;
        state = a->unit[state].fail;
    }
}

/* Texts by the numbers of their characters, number[begin[i] .. end[i]), i < n, none of them empty.
 * Their arrays have room for as many more as there are lanes. */
struct aho_corasick_texts {
    size_t n;
    uint32_t begin[AHO_CORASICK_TEXTS + AHO_CORASICK_LANES],
        end[AHO_CORASICK_TEXTS + AHO_CORASICK_LANES], to[AHO_CORASICK_TEXTS + AHO_CORASICK_LANES];
};

/* Each text from its beginning: ret[to[i] + k * AHO_CORASICK_LANES] becomes the piece behind
 * character k. Several are walked side by side, so that one does not wait for memory; the longest
 * ought to come first, so that no lane is at work on one when all others are done. */
void aho_corasick_walk(const struct aho_corasick *a, const uint32_t *number,
                       const struct aho_corasick_texts *texts, uint32_t *ret);

/* The same without vectors; for processors without them, and tests. */
void aho_corasick_walk_plain(const struct aho_corasick *a, const uint32_t *number,
                             const struct aho_corasick_texts *texts, uint32_t *ret);

#endif

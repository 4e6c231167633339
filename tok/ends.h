/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_ENDS_H
#define TOK_ENDS_H

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

#include "tok/trie.h"

struct ends_piece {
    float score;
    uint32_t length; /* in bytes */
    uint32_t next;   /* the longest piece that it ends with; 0: none */
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
 * Of n strings in the order of their bytes, whose values are ids. Of piece[id + 1] the score and
 * the length (0: the piece is left out) are given; it is on the heap and `a` takes it.
 */
void ends_init(struct ends *a, const struct trie_key *key, size_t n, struct ends_piece *piece);
void ends_finish(struct ends *a);

/* The state behind the next character; ENDS_ROOT begins. */
static inline uint32_t ends_step(const struct ends *a, uint32_t state, uint32_t c)
{
    for (uint32_t number = a->number[c];;) {
        uint32_t to = a->unit[state].base + number;
        if (a->unit[to].check == state)
            return to;
        if (state == ENDS_ROOT)
            return state;
        state = a->unit[state].fail;
    }
}

/* Texts text[start[i] .. start[i + 1]), i < n, each from the beginning: ret[k] becomes the piece
 * behind text[k], if that is a character's last byte. Several are walked side by side, so that one
 * does not wait for memory. Three bytes behind the last are readable. */
void ends_walk(const struct ends *a, const char *text, const uint32_t *start, size_t n,
               uint32_t *ret);

/* The same without vectors; for processors without them, and tests. */
void ends_walk_plain(const struct ends *a, const char *text, const uint32_t *start, size_t n,
                     uint32_t *ret);

#endif

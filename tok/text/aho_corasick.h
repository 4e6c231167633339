/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_TEXT_AHO_CORASICK_H
#define TOK_TEXT_AHO_CORASICK_H

/*
 * Finds the pieces that end at each position of a text: an automaton of Aho and Corasick (1975)
 * over characters.
 * Its state is the longest suffix of the text so far that is a prefix of a piece. A state has the
 * longest piece that ends there, and each piece the next shorter one. A lattice is thus filled
 * position by position from what precedes it.
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
    AHO_CORASICK_LANES = 16, /* texts that are walked in parallel */
    AHO_CORASICK_TEXTS = 256 /* texts in a call at most */
};

struct aho_corasick_piece {
    float score;
    uint32_t more;   /* the longest piece that is a suffix of it, 0: none; above that its length in
                        characters, at most AHO_CORASICK_CHARS_MOST */
    uint32_t length; /* in bytes */
};

struct aho_corasick_unit {
    uint32_t base, check; /* as in trie.h, but by a character's number instead of a byte */
    uint32_t fail;        /* the longest proper suffix of this unit's string that is a unit */
    uint32_t piece;       /* the longest piece that ends here; 0: none */
};

enum { AHO_CORASICK_ROOT = 0 };

struct aho_corasick {
    struct aho_corasick_unit *unit;
    struct aho_corasick_piece *piece; /* by their ids, plus 1 */
    uint32_t *number;                 /* of characters, by code point; 0: in no piece */
};

/*
 * From n strings sorted by bytes, whose values are ids below AHO_CORASICK_NEXT. piece[id + 1] has
 * score and length (0: leave the piece out); it is on the heap, and `a` takes ownership.
 */
void aho_corasick_init(struct aho_corasick *a, const struct trie_key *key, size_t n,
                       struct aho_corasick_piece *piece);
void aho_corasick_finish(struct aho_corasick *a);

/* The state after the next character, which has this number; start with AHO_CORASICK_ROOT. */
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

/*
 * Texts as the numbers of their characters, number[begin[i] .. end[i]), i < n, none empty. The
 * arrays have room for one more per lane. The `walk` of kernels.h makes ret[to[i] + k *
 * AHO_CORASICK_LANES] the longest piece that ends after character k. It walks several texts in
 * parallel to hide memory latency; put the longest first, so that no lane is left working on it
 * alone.
 */
struct aho_corasick_texts {
    size_t n;
    uint32_t begin[AHO_CORASICK_TEXTS + AHO_CORASICK_LANES],
        end[AHO_CORASICK_TEXTS + AHO_CORASICK_LANES], to[AHO_CORASICK_TEXTS + AHO_CORASICK_LANES];
};

#endif

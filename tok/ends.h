/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_ENDS_H
#define TOK_ENDS_H

/*
 * Which pieces end at each place of a text: an automaton of Aho and Corasick over bytes. Its state
 * is the longest end of the text so far that a piece begins with; all pieces that end there are a
 * list, the longest first. So a lattice is filled place by place, each from what lies before it.
 *
 * Built once, then only read, by any number of threads.
 */

#include <stddef.h>
#include <stdint.h>

#include "tok/trie.h"

/* A piece of a list. The first of each list is its head instead. */
struct ends_item {
    union {
        float score;
        uint32_t ties; /* of the head: those of all, or-ed */
    };
    uint32_t length; /* in bytes; of the head: how many items follow */
    int32_t id;      /* of the head: 1 if the last item is one character */
};

struct ends_unit {
    uint32_t base, check; /* as in trie.h */
    uint32_t fail;        /* the longest end of this unit's string that is a unit, too */
    uint32_t list;
};

struct ends {
    struct ends_unit *unit;
    struct ends_item *item; /* list 0 is empty */
    size_t nitems;
};

/* What is known of a piece. */
struct ends_piece {
    float score;
    uint32_t ties, length; /* length 0: it is left out of all lists */
    bool one;              /* it is one character */
};

/* Of the strings in a trie, whose values say their places in `piece`. */
void ends_init(struct ends *a, const struct trie *t, const struct ends_piece *piece);
void ends_finish(struct ends *a);

/* The state behind the next byte; TRIE_ROOT begins. */
static inline uint32_t ends_step(const struct ends *a, uint32_t state, char c)
{
    for (;;) {
        uint32_t to = a->unit[state].base + (unsigned char)c;
        if (a->unit[to].check == state)
            return to;
        if (state == TRIE_ROOT)
            return state;
        state = a->unit[state].fail;
    }
}

/* Texts text[start[i] .. start[i + 1]), i < n, each from the beginning: ret[k] becomes the list
 * behind text[k]. Several are walked side by side, so that one does not wait for memory. */
void ends_walk(const struct ends *a, const char *text, const uint32_t *start, size_t n,
               uint32_t *ret);

#endif

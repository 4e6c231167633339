/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_TEXT_BYTE_PAIR_SEARCH_H
#define TOK_TEXT_BYTE_PAIR_SEARCH_H

/*
 * Finds the positions in a text where one of a set of byte pairs is: the filter in front of every
 * string search. With AVX2, 32 positions are tested at once: pairs are distributed over eight
 * groups, and a position is a candidate if both nibbles of both its bytes occur in one group.
 * Immutable once filled.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pair_find {
    uint64_t bit[1024]; /* indexed by first | second << 8 */
    /* groups by low and high nibble of the first byte, then of the second */
    unsigned char half[4][16];
    unsigned char group_of[256]; /* of a first byte; 0: none yet */
    unsigned groups;             /* number of groups in use */
};

/* A zeroed struct is empty. */
void pair_find_add(struct pair_find *f, unsigned char first, unsigned char second);
/* The byte with any second byte, or as the last one. */
void pair_find_add_single(struct pair_find *f, unsigned char first);

/* The first position from `at` on where a pair is; the last byte pairs with any. n: none. */
size_t pair_find_next(const struct pair_find *f, const char *text, size_t n, size_t at);

static inline bool pair_find_stands(const struct pair_find *f, const unsigned char *p)
{
    unsigned k = (unsigned)p[0] | (unsigned)p[1] << 8;
    return f->bit[k >> 6] >> (k & 63) & 1;
}

#endif

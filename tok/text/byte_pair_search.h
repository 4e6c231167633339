/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_TEXT_BYTE_PAIR_SEARCH_H
#define TOK_TEXT_BYTE_PAIR_SEARCH_H

/*
 * Where in a text one of a set of byte pairs stands: what every search for strings begins with.
 * With AVX2 32 places are asked at once: the pairs are dealt into eight groups, and a place is
 * looked at only if both halves of both its bytes occur in one group. Immutable once filled.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pair_find {
    uint64_t bit[1024];          /* of first | second << 8 */
    unsigned char half[4][16];   /* groups by low, high half of the first byte, of the second */
    unsigned char group_of[256]; /* of a first byte, 0: none yet */
    unsigned groups;             /* dealt out */
};

/* A zeroed struct is empty. */
void pair_find_add(struct pair_find *f, unsigned char first, unsigned char second);
/* Any second byte, and none. */
void pair_find_add_single(struct pair_find *f, unsigned char first);

/* The first place from `at` on where a pair stands; the last byte counts as one with any. n: none.
 */
size_t pair_find_next(const struct pair_find *f, const char *text, size_t n, size_t at);

static inline bool pair_find_stands(const struct pair_find *f, const unsigned char *p)
{
    unsigned k = (unsigned)p[0] | (unsigned)p[1] << 8;
    return f->bit[k >> 6] >> (k & 63) & 1;
}

#endif

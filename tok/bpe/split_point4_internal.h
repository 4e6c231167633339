/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_BPE_SPLIT_POINT4_INTERNAL_H
#define TOK_BPE_SPLIT_POINT4_INTERNAL_H

/* Shared by split_point4.c and split_point4_avx512.c alone. */

#include "tok/bpe/split_point4.h"

/* A word of 64 bits is a table: its row is by the character before the pair, its column by the one
 * after it. The second word uses other hashes. */

enum {
    WIDE_BYTES = 3,
    LANES = 16,
    FEW = 6,    /* characters that are tested one by one */
    AROUND = 2, /* plain characters that must follow: the second may merge with the first */
    ANY = 8     /* row or column that matches any character */
};

#define MIX_LEFT 0x9E3779B1u
#define MIX_RIGHT 0x85EBCA77u
#define MIX_BOTH 0xC2B2AE3Du
#define MIX_SECOND 0x27D4EB2Fu

/* The second word's is pair_hash * MIX_SECOND. */
static inline uint32_t split_point4_hash(uint32_t left, uint32_t right)
{
    uint32_t x = left * MIX_LEFT ^ right * MIX_RIGHT;
    return (x ^ x >> 15) * MIX_BOTH;
}

static inline uint32_t split_point4_at(const char *p)
{
    return (uint32_t)(unsigned char)p[0] | (uint32_t)(unsigned char)p[1] << 8 |
           (uint32_t)(unsigned char)p[2] << 16;
}

/* Is there a split point at p? */
static inline bool split_point4_is_cut(const struct split_point4 *t, const char *p)
{
    uint32_t a = split_point4_at(p - 2 * WIDE_BYTES), d = split_point4_at(p + WIDE_BYTES);
    uint32_t x = split_point4_hash(split_point4_at(p - WIDE_BYTES), split_point4_at(p)),
             y = x * MIX_SECOND;
    uint64_t first = t->word[x >> t->shift], second = t->word[y >> t->shift];
    first >>= (a * MIX_LEFT >> 29) * 8 + (d * MIX_RIGHT >> 29);
    second >>= (a * MIX_RIGHT >> 29) * 8 + (d * MIX_BOTH >> 29);
    return !(first & second & 1);
}

#endif

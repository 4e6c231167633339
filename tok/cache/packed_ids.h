/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_CACHE_PACKED_IDS_H
#define TOK_CACHE_PACKED_IDS_H

/* Up to four ids of a word in eight bytes, or a reference to where they are. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Bits per id. Ids are packed from the lowest bit up, each plus 2, with 0 after the last. Four,
 * three or two fit.
 */
enum ids_form { IDS_OF_16 = 16, IDS_OF_21 = 21, IDS_OF_32 = 32 };

enum { PACKED = 4 /* ids at most */ };

/* Instead of ids, a reference: a kind, and a position of 28 bits. */
enum {
    IDS_MANY = 1, /* in the table's arena of lists */
    IDS_KINDS,    /* the first kind that the caller may define */
    IDS_PLACES = 1 << 28
};

/* The densest form for ids below `end`. */
static inline enum ids_form ids_form_for(int64_t end)
{
    return end <= (1 << 16) - 2 ? IDS_OF_16 : end <= (1 << 21) - 2 ? IDS_OF_21 : IDS_OF_32;
}

/* 0: they do not fit. A word may have no ids. */
static inline uint64_t ids_pack(const int32_t *id, size_t n, enum ids_form bits)
{
    uint64_t ret = n == 0, all = 0; /* 1: no ids */
    if (n > 64 / bits)
        return 0;
    for (size_t i = 0; i < n; i++) {
        uint64_t x = (uint64_t)(uint32_t)id[i] + 2;
        ret |= x << i * bits;
        all |= x;
    }
    return all >> bits ? 0 : ret;
}

/* Distinct from packed ids: the first would be 0. */
static inline uint64_t ids_at(unsigned kind, size_t place)
{
    return (uint64_t)kind << 60 | (uint64_t)place << 32;
}

/* Packed ids, rather than a reference? */
static inline bool ids_here(uint64_t ids)
{
    return (uint32_t)ids != 0;
}

static inline bool ids_are(uint64_t ids, unsigned kind)
{
    return (ids & ~((uint64_t)(IDS_PLACES - 1) << 32)) == ids_at(kind, 0);
}

static inline size_t ids_place(uint64_t ids)
{
    return ids >> 32 & (IDS_PLACES - 1);
}

/*
 * Writes the ids of n words, none of them a reference, one after another and returns their number.
 * Up to IDS_SLACK ids after them may be overwritten.
 */
enum { IDS_SLACK = 16 };
size_t ids_unpack(const uint64_t *ids, size_t n, enum ids_form bits, int32_t *to);

#endif

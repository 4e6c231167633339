/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_WORD_IDS_H
#define TOK_WORD_IDS_H

/* Up to three ids of a word in eight bytes, or where more of them are. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Ids of twenty bits each, or of thirty for who keeps more in them, from the lowest bit on; how
 * many they are in bits 60 .. 63.
 */
enum ids_form { IDS_OF_20 = 20, IDS_OF_30 = 30 };

enum {
    PACKED = 3,              /* ids at most; two of thirty bits */
    IDS_MANY = 15,               /* a number that says: they are elsewhere, */
    IDS_MOST = (1 << 28) - 1 /* at most so many */
};

static inline unsigned ids_count(uint64_t ids)
{
    return (unsigned)(ids >> 60);
}

/* False: they do not go into it. */
static inline bool ids_pack(const int32_t *id, size_t n, enum ids_form bits, uint64_t *ret)
{
    uint64_t all = 0, most = 60 / bits;
    *ret = (uint64_t)n << 60;
    for (size_t i = 0; i < n && i < most; i++) {
        *ret |= (uint64_t)(uint32_t)id[i] << i * bits;
        all |= (uint32_t)id[i];
    }
    return n <= most && !(all >> bits);
}

/* n ids elsewhere, at a place of 32 bits; `count` is IDS_MANY, or another number above PACKED. */
static inline uint64_t ids_at(unsigned count, size_t place, size_t n)
{
    return (uint64_t)count << 60 | (uint64_t)n << 32 | place;
}

static inline size_t ids_place(uint64_t ids)
{
    return (uint32_t)ids;
}

static inline size_t ids_number(uint64_t ids)
{
    return ids >> 32 & IDS_MOST;
}

/*
 * Writes the ids of n words, each of up to PACKED, one after another; how many. Behind them
 * IDS_SLACK may be overwritten.
 */
enum { IDS_SLACK = 16 };
size_t ids_unpack(const uint64_t *ids, size_t n, enum ids_form bits, int32_t *to);
/* The same without vectors, for tests. */
size_t ids_unpack_plain(const uint64_t *ids, size_t n, enum ids_form bits, int32_t *to);

#endif

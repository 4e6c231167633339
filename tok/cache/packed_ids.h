/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_CACHE_PACKED_IDS_H
#define TOK_CACHE_PACKED_IDS_H

/* Up to four ids of a word in eight bytes, or where more of them are. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Ids of so many bits each, from the lowest bit on, each with two added; behind the last 0. With
 * fewer bits more go in: four, three or two.
 */
enum ids_form { IDS_OF_16 = 16, IDS_OF_21 = 21, IDS_OF_32 = 32 };

enum { PACKED = 4 /* ids at most */ };

/* In place of ids, where they are: a kind of place, and which, of 28 bits. */
enum {
    IDS_MANY = 1, /* with those of other words that have many */
    IDS_KINDS,    /* and further ones, of who keeps them */
    IDS_PLACES = 1 << 28
};

/* The form with most ids for ids below `end`. */
static inline enum ids_form ids_form_for(int64_t end)
{
    return end <= (1 << 16) - 2 ? IDS_OF_16 : end <= (1 << 21) - 2 ? IDS_OF_21 : IDS_OF_32;
}

/* 0: they do not go into it. A word may have none. */
static inline uint64_t ids_pack(const int32_t *id, size_t n, enum ids_form bits)
{
    uint64_t ret = n == 0, all = 0; /* 1 is no id */
    if (n > 64 / bits)
        return 0;
    for (size_t i = 0; i < n; i++) {
        uint64_t x = (uint64_t)(uint32_t)id[i] + 2;
        ret |= x << i * bits;
        all |= x;
    }
    return all >> bits ? 0 : ret;
}

/* No ids are like this: the first would be none. */
static inline uint64_t ids_at(unsigned kind, size_t place)
{
    return (uint64_t)kind << 60 | (uint64_t)place << 32;
}

/* Are these ids? */
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
 * Writes the ids of n words, which are all here, one after another; how many. Behind them IDS_SLACK
 * may be overwritten.
 */
enum { IDS_SLACK = 16 };
size_t ids_unpack(const uint64_t *ids, size_t n, enum ids_form bits, int32_t *to);
/* The same without vectors, for tests. */
size_t ids_unpack_plain(const uint64_t *ids, size_t n, enum ids_form bits, int32_t *to);

#endif

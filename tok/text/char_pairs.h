/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_TEXT_CHAR_PAIRS_H
#define TOK_TEXT_CHAR_PAIRS_H

/*
 * Remembers a small number for pairs of adjacent characters: one entry per hash, which a later pair
 * overwrites. For one thread.
 */

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/core/mem.h"

enum {
    CHAR_PAIRS_LOG = 14,
    CHAR_PAIRS_BITS = 42 /* of two characters; the number is above them */
};

/* Zeroed, the pair of two NULs has the number 0. */
struct char_pairs {
    uint64_t *at;
};

static inline void char_pairs_init(struct char_pairs *s)
{
    s->at = mem_new((size_t)1 << CHAR_PAIRS_LOG, sizeof(*s->at));
}

static inline void char_pairs_finish(struct char_pairs *s)
{
    free(s->at);
    s->at = NULL;
}

static inline uint64_t char_pairs_key(uint32_t a, uint32_t b)
{
    return (uint64_t)a << 21 | b;
}

/* The pair's entry, which may be occupied by another pair. */
static inline uint64_t *char_pairs_entry(const struct char_pairs *s, uint64_t key)
{
    return &s->at[key * 0x9E3779B97F4A7C15u >> (64 - CHAR_PAIRS_LOG)];
}

static inline bool char_pairs_is(const uint64_t *entry, uint64_t key)
{
    return (*entry & (((uint64_t)1 << CHAR_PAIRS_BITS) - 1)) == key;
}

static inline void char_pairs_set(uint64_t *entry, uint64_t key, unsigned number)
{
    *entry = key | (uint64_t)number << CHAR_PAIRS_BITS;
}

static inline unsigned char_pairs_number(const uint64_t *entry)
{
    return (unsigned)(*entry >> CHAR_PAIRS_BITS);
}

#endif

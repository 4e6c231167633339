/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_TEXT_CHAR_PAIRS_H
#define TOK_TEXT_CHAR_PAIRS_H

/*
 * What was found out about two characters that stood side by side, a small number, by their pair:
 * one entry for each hash, which a later pair overwrites. One thread.
 */

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/core/mem.h"

enum {
    CHAR_PAIRS_LOG = 14,
    CHAR_PAIRS_BITS = 42 /* of two characters; the number is above them */
};

/* Zeroed: of two NULs the number is 0. */
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

/* The entry that the pair has, or that of another one. */
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

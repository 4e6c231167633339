/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_BPE_TABLE_H
#define TOK_BPE_TABLE_H

/*
 * The pairs of bpe.c and bpe_lanes.c, which no other file includes: a cuckoo table, each pair in
 * one of two places, so that a look-up is two loads whether it finds something or not. A slot is
 * left << 43 | right << 22 | rank; all ones: free.
 */

#include "tok/bpe.h"

#define NONE UINT32_MAX

enum { RANK_BITS = 22, SYMBOL_BITS = 21, FIRST = 256 };

struct bpe {
    uint64_t *slot;
    int shift; /* 32 - log2 of the number of slots */
    uint32_t seed;
    uint32_t ranks; /* in use, numbered without gaps */
    bool single;    /* all pairs of one rank become one id: `id` is by rank, else by slot */
    uint32_t *id;
    uint32_t base;   /* the lowest symbol; */
    uint32_t *first; /* FIRST x FIRST: ranks of pairs of that and the next ones, bytes mostly */
};

#define HASH_LEFT 0x9E3779B1u
#define HASH_RIGHT 0x85EBCA77u
#define HASH_MIX 0xC2B2AE3Du
#define HASH_SECOND 0x27D4EB2Fu

static inline uint32_t bpe_hash(const struct bpe *m, uint32_t left, uint32_t right)
{
    uint32_t x = (left * HASH_LEFT) ^ ((right + m->seed) * HASH_RIGHT);
    return (x ^ x >> 15) * HASH_MIX;
}

static inline uint32_t bpe_first(const struct bpe *m, uint32_t hash)
{
    return hash >> m->shift;
}

static inline uint32_t bpe_second(const struct bpe *m, uint32_t hash)
{
    return (hash ^ hash >> 16) * HASH_SECOND >> m->shift;
}

static inline uint64_t bpe_key(uint32_t left, uint32_t right)
{
    return (uint64_t)left << (SYMBOL_BITS + RANK_BITS) | (uint64_t)right << RANK_BITS;
}

/* The slot of a pair, NONE if it is none. */
static inline uint32_t bpe_slot(const struct bpe *m, uint32_t left, uint32_t right)
{
    uint32_t hash = bpe_hash(m, left, right);
    uint32_t a = bpe_first(m, hash), b = bpe_second(m, hash);
    uint64_t key = bpe_key(left, right);
    uint32_t at = (m->slot[a] ^ key) >> RANK_BITS ? NONE : a;
    at = (m->slot[b] ^ key) >> RANK_BITS ? at : b;
    return (left | right) >> SYMBOL_BITS ? NONE : at;
}

static inline uint32_t bpe_rank(const struct bpe *m, uint32_t slot)
{
    return (uint32_t)m->slot[slot] & ((1u << RANK_BITS) - 1);
}

static inline uint32_t bpe_id(const struct bpe *m, uint32_t slot)
{
    return m->id[m->single ? bpe_rank(m, slot) : slot];
}

/* bpe_lanes.c, where the processor has AVX-512 and the table is `single`: bpe_merge_short. */
void bpe_lanes_merge(const struct bpe *m, uint32_t sym[][BPE_LANES], uint32_t *n, size_t count);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_BPE_PAIR_TABLE_H
#define TOK_BPE_PAIR_TABLE_H

/*
 * The pairs of bpe.c and merge_avx512.c, which no other file includes. Pairs are numbered by rank,
 * mostly so that the number also determines what the pair becomes. They are in a cuckoo table of
 * 32-bit slots, two buckets of two per pair; a slot has the number and above it as many bits of the
 * hash as fit. So the table of a large vocabulary fits the L2 cache, and a lookup is two loads. It
 * may find a different pair, whose number is then not above that of the pair looked up: `pair`
 * confirms it, once that matters.
 */

#include "tok/bpe/bpe.h"

#define NONE UINT32_MAX

enum { SYMBOL_BITS = 21, FIRST = 256 };

struct bpe {
    uint32_t *slot; /* hash << bits | number; all ones: free */
    int bits;       /* of a number; NONE's are all ones */
    int shift;      /* 32 - log2 of the number of buckets */
    uint32_t seed;
    uint32_t n;     /* numbers */
    uint32_t made;  /* NONE, or pair i becomes symbol made + i; then numbers may have gaps */
    uint64_t *pair; /* by number: left << 42 | right << 21 | result; all ones: a gap */
    uint32_t *rank; /* by number, without gaps; NULL: the number itself */
    uint32_t ranks;
    uint32_t base;   /* the lowest symbol */
    uint32_t *first; /* FIRST x FIRST: numbers of pairs of the lowest symbols, mostly bytes */
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

/* Indices of the two buckets' first slots. */
static inline uint32_t bpe_first(const struct bpe *m, uint32_t hash)
{
    return hash >> m->shift << 1;
}

static inline uint32_t bpe_second(const struct bpe *m, uint32_t hash)
{
    return (hash ^ hash >> 16) * HASH_SECOND >> m->shift << 1;
}

static inline uint64_t bpe_key(uint32_t left, uint32_t right)
{
    return (uint64_t)left << SYMBOL_BITS | right;
}

static inline uint32_t bpe_id(const struct bpe *m, uint32_t number)
{
    if (m->made != NONE)
        return m->made + number;
    return (uint32_t)m->pair[number] & ((1u << SYMBOL_BITS) - 1);
}

/* The slot of a pair, NULL if there is none. */
static inline uint32_t *bpe_slot(const struct bpe *m, uint32_t left, uint32_t right)
{
    uint32_t hash = bpe_hash(m, left, right), tag = hash << m->bits;
    uint32_t *a = m->slot + bpe_first(m, hash), *b = m->slot + bpe_second(m, hash);
    uint32_t in_a = (a[0] ^ tag) < (a[1] ^ tag) ? a[0] ^ tag : a[1] ^ tag;
    uint32_t in_b = (b[0] ^ tag) < (b[1] ^ tag) ? b[0] ^ tag : b[1] ^ tag;
    if ((in_a < in_b ? in_a : in_b) >= m->n || (left | right) >> SYMBOL_BITS)
        return NULL;
    uint32_t *slot[4] = {a, a + 1, b, b + 1};
    for (int i = 0; i < 4; i++) {
        uint32_t number = *slot[i] ^ tag;
        if (number < m->n && m->pair[number] >> SYMBOL_BITS == bpe_key(left, right))
            return slot[i];
    }
    return NULL;
}

static inline uint32_t bpe_number_in(const struct bpe *m, uint32_t slot)
{
    return slot & ((1u << m->bits) - 1);
}

/* The number of a pair, NONE if there is none. */
static inline uint32_t bpe_number(const struct bpe *m, uint32_t left, uint32_t right)
{
    const uint32_t *slot = bpe_slot(m, left, right);
    return slot ? bpe_number_in(m, *slot) : NONE;
}

/* merge_avx512.c, on processors with AVX-512, if ranks are numbers: bpe_merge_short, except that
 * words in which a different pair was found stay unchanged; returns a bit for each of these. */
uint32_t bpe_lanes_merge(const struct bpe *m, uint32_t sym[][BPE_LANES], uint32_t *n, size_t count);
/* bpe_put_bytes, on processors with AVX-512. */
void bpe_lanes_put(const uint32_t of[256], const char *text, const uint32_t *at, const uint32_t *n,
                   size_t count, uint32_t sym[][BPE_LANES]);

#endif

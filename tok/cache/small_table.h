/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_CACHE_SMALL_TABLE_H
#define TOK_CACHE_SMALL_TABLE_H

/*
 * Words of up to 9 bytes and their ids, for table.c: 16 bytes each, four to a cache line, in the
 * bucket that their hash selects or in the adjacent one. The hash is invertible, so the bits
 * that the bucket's index implies need not be in the entry.
 *
 * Threads find and insert concurrently: the thread whose compare-exchange puts its ids into a free
 * entry owns it, and then publishes the key. Only a thread that holds the table exclusively
 * (rwlock.h) moves or clears entries; the calls that need this say so.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tok/cache/key.h"

enum {
    SMALL = 9,        /* bytes of a small word */
    SMALL_FIXED = 10, /* bits of the hash that the index implies in a table of any size */
    SMALL_LEAST = 64 << SMALL_FIXED /* bytes of a table */
};

struct small {
    uint64_t key; /* see small_key; 0: free */
    uint64_t ids; /* see ids_pack */
};

struct small_entry {           /* the same in the table */
    _Atomic uint64_t key, ids; /* ids are 0 in a free entry */
};

struct small_bucket {
    _Alignas(64) struct small_entry at[4];
};

struct small_table {
    struct small_bucket *bucket;
    int bits, most; /* log2 of the number of buckets, now and at most */
};

static inline bool small_is(struct key key)
{
    return key.high - 1 < ((uint64_t)(SMALL + 1) << 56) - 1; /* and is not empty */
}

/* What identifies a word together with its bucket: the hash without its highest bits, and below it
 * the length, or a flag and the ninth byte. One bit is unused. */
enum { SMALL_NINTH = 1 << 8, SMALL_BESIDE = 1 << 9 };

static inline uint64_t small_key(struct key key, uint64_t hash)
{
    uint64_t length = key.high >> 56, ninth = SMALL_NINTH | (key.high & 0xff);
    return hash << SMALL_FIXED | (length < SMALL ? length : ninth);
}

static inline struct small_bucket *small_bucket(const struct small_table *t, uint64_t hash)
{
    return &t->bucket[hash >> (64 - t->bits)];
}

/* An entry's key, with acquire: if it is the one looked for, the ids can be read. */
static inline uint64_t small_entry_key(const struct small_entry *x)
{
    return atomic_load_explicit(&x->key, memory_order_acquire);
}

static inline uint64_t small_entry_ids(const struct small_entry *x)
{
    return atomic_load_explicit(&x->ids, memory_order_relaxed);
}

/* Claims an entry that was seen free; false: another thread was faster. */
static inline bool entry_claim(_Atomic uint64_t *at, uint64_t ids, bool alone)
{
    uint64_t none = 0;
    if (!alone)
        return atomic_compare_exchange_strong_explicit(at, &none, ids, memory_order_relaxed,
                                                       memory_order_relaxed);
    atomic_store_explicit(at, ids, memory_order_relaxed);
    return true;
}

/* At most `bytes`, at least SMALL_LEAST. */
void small_init(struct small_table *t, size_t bytes);
void small_finish(struct small_table *t);
size_t small_bytes(const struct small_table *t);

/* The ids of the word with this key and hash; 0: not in the table. */
uint64_t small_find(const struct small_table *t, uint64_t key, uint64_t hash);
/* Whether both buckets of this hash are full, so that its words may be in the larger table. */
static inline bool small_full(const struct small_table *t, uint64_t hash)
{
    const struct small_bucket *home = small_bucket(t, hash);
    const struct small_bucket *beside = &t->bucket[(size_t)(home - t->bucket) ^ 1];
    bool here = small_entry_key(&home->at[3]) != 0, there = small_entry_key(&beside->at[3]) != 0;
    return here & there;
}

/* Inserts a word; ids is not 0. False: no free entry. `alone`: the caller has exclusive access. */
bool small_keep(struct small_table *t, uint64_t key, uint64_t hash, uint64_t ids, bool alone);

/* The number of words from which the table should grow, or evict if it cannot. */
size_t small_limit(const struct small_table *t);
/* The bytes that growing adds; 0: it cannot grow. */
size_t small_growth(const struct small_table *t);

/* With exclusive access: adds buckets; evicts half of the entries; evicts those with references of
 * this kind. Each returns the number of words that remain. */
size_t small_grow(struct small_table *t);
size_t small_thin(struct small_table *t);
size_t small_drop(struct small_table *t, unsigned kind);

#endif

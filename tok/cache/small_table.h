/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_CACHE_SMALL_TABLE_H
#define TOK_CACHE_SMALL_TABLE_H

/*
 * Words of up to nine bytes and their ids, for table.c: sixteen bytes each, four in a line of
 * memory, in the bucket that their hash names or in the one beside it. The hash loses nothing of a
 * word, so that what the bucket's place tells of it need not be in the entry.
 *
 * Threads find and keep words at the same time: who has put its ids into a free entry has it, and
 * then lets the others see the key. No entry is moved or emptied but by a thread that is alone
 * (rwlock.h); what calls do so is said with each.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tok/cache/key.h"

enum {
    SMALL = 9,                      /* bytes of a word */
    SMALL_FIXED = 10,               /* bits of the hash that the place in any table tells */
    SMALL_LEAST = 64 << SMALL_FIXED /* bytes of a table */
};

struct small {
    uint64_t key; /* see small_key; 0: free */
    uint64_t ids; /* see ids_pack */
};

struct small_entry {           /* the same in a table */
    _Atomic uint64_t key, ids; /* ids are 0 where it is free */
};

struct small_bucket {
    _Alignas(64) struct small_entry at[4];
};

struct small_table {
    struct small_bucket *bucket;
    int bits, most; /* of the number of buckets */
};

static inline bool small_is(struct key key)
{
    return key.high - 1 < ((uint64_t)(SMALL + 1) << 56) - 1; /* and has bytes */
}

/*
 * The hash but for its highest bits, and below it what tells the word together with it: its length,
 * or that it has a ninth byte, and which. One bit is left.
 */
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

/* What readers see of an entry's key; its ids are there when the key is. */
static inline uint64_t small_entry_key(const struct small_entry *x)
{
    return atomic_load_explicit(&x->key, memory_order_acquire);
}

static inline uint64_t small_entry_ids(const struct small_entry *x)
{
    return atomic_load_explicit(&x->ids, memory_order_relaxed);
}

/* Gives these ids to an entry that was seen free; false: another thread was faster. */
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

/* The ids of the word of this key and hash; 0: it is not here. */
uint64_t small_find(const struct small_table *t, uint64_t key, uint64_t hash);
/* Whether words of this hash that are not here may be elsewhere, as there is no room for them. */
static inline bool small_full(const struct small_table *t, uint64_t hash)
{
    const struct small_bucket *home = small_bucket(t, hash);
    const struct small_bucket *beside = &t->bucket[(size_t)(home - t->bucket) ^ 1];
    bool here = small_entry_key(&home->at[3]) != 0, there = small_entry_key(&beside->at[3]) != 0;
    return here & there;
}

/* A word of ids that are not 0; false: there is no room. `alone`: no other thread is here. */
bool small_keep(struct small_table *t, uint64_t key, uint64_t hash, uint64_t ids, bool alone);

/* Words that were kept from when on the table is to grow, or can only forget some. */
size_t small_limit(const struct small_table *t);
/* Bytes that growing adds; 0: it cannot. */
size_t small_growth(const struct small_table *t);

/* Alone: more buckets; half of the entries emptied; those emptied whose ids are elsewhere, of this
 * kind. How many words there are then. */
size_t small_grow(struct small_table *t);
size_t small_thin(struct small_table *t);
size_t small_drop(struct small_table *t, unsigned kind);

#endif

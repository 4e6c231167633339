/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_CACHE_TABLE_H
#define TOK_CACHE_TABLE_H

/*
 * The table of words and ids behind the caches of all threads. Words of up to 9 bytes belong to
 * small_table.c. Words of up to 15 bytes, and small ones for which it has no room, are in buckets
 * of two: their own or one of the three next to it. Longer words, and lists of ids too long for an
 * entry, are in arenas. Memory is bounded: words of up to 15 bytes may take three quarters of the
 * bound, longer ones take the rest.
 *
 * The tokenizer owns the table, each thread owns a `struct word_user` of it. Results of a lookup
 * and positions in the arenas are valid from word_table_enter to word_table_leave. Between the two,
 * threads find and insert concurrently: the thread whose compare-exchange on `ids` wins owns the
 * entry, the key is published last (release), and no entry is cleared or moved. When there are
 * too many words, the next thread to enter does so exclusively (rwlock.h) and resizes or evicts;
 * until then words that find no free entry are not cached.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tok/cache/rwlock.h"
#include "tok/cache/packed_ids.h"
#include "tok/cache/key.h"
#include "tok/cache/small_table.h"
#include "tok/text/string_map.h"

enum {
    LONGEST = 1024, /* most bytes of a word that is cached */
    MANY_BLOCK = 4, /* ids; lists of ids are readable up to a multiple of it */
    NEAR = 4        /* buckets in which a word may be: its home and the next ones */
};

/* A word of up to fifteen bytes. */
struct entry {
    _Alignas(32) _Atomic uint64_t low; /* of its key */
    _Atomic uint64_t high;             /* written last, with release */
    _Atomic uint64_t ids;              /* see ids_pack; 0: free */
};

struct bucket {
    _Alignas(64) struct entry at[2];
};

/* A longer word: its bytes, padded to 32-bit words, then its ids. */
struct longer {
    uint32_t length, n;
    uint32_t all[];
};

/* The ids of a short word that has too many for its entry. */
struct many {
    uint32_t n;
    int32_t id[];
};

struct arena32 {
    uint32_t *at;
    size_t most, limit;  /* capacity; the part of it that may be used */
    unsigned round;      /* how often it was cleared */
    _Atomic size_t next; /* first unused position; position 0 means none */
};

/* The range of an arena that a user has reserved. */
struct arena_part {
    size_t at, end;
    unsigned round;
};

struct word_table {
    struct rwlock gate;
    struct small_table small;
    struct bucket *bucket;
    uint32_t mask;          /* buckets - 1 */
    uint32_t most;          /* buckets */
    _Atomic uint64_t *slot; /* of longer words: tag of the hash, below it the position; 0: empty */
    size_t slot_mask;
    struct arena32 longer;
    struct arena32 many;
    size_t bound;
    /* words inserted */
    _Alignas(64) _Atomic size_t nsmall;
    _Atomic size_t nlarger, nlonger;
};

struct word_user {
    struct rwlock_reader guest;
    struct word_table *t;
    struct arena_part longer, many;
    size_t nsmall, nlarger, nlonger; /* words inserted since it entered */
};

/* cache.h creates and destroys tables. */
size_t word_table_bytes(const struct word_table *t);

void word_table_join(struct word_table *t, struct word_user *u);
void word_table_part(struct word_user *u);

void word_table_enter(struct word_user *u);
void word_table_leave(struct word_user *u);

/* Whether an entry has this key; if so, its ids can be read. */
static inline bool entry_is(const struct entry *x, struct key key)
{
    bool high = atomic_load_explicit(&x->high, memory_order_acquire) == key.high;
    return high & (atomic_load_explicit(&x->low, memory_order_relaxed) == key.low);
}

static inline uint64_t entry_ids(const struct entry *x)
{
    return atomic_load_explicit(&x->ids, memory_order_relaxed);
}

/* The home bucket of a word of up to SHORT bytes with this hash. */
static inline struct bucket *word_table_bucket(const struct word_table *t, uint64_t hash)
{
    return &t->bucket[__builtin_bswap64(hash) & t->mask];
}

/* The ids of the word with this key and hash; 0: not in the table. */
uint64_t word_table_find(const struct word_table *t, struct key key, uint64_t hash);
/* Inserts a word that is not in the table; ids is not 0. */
void word_table_keep(struct word_user *u, struct key key, uint64_t hash, uint64_t ids);
/* The same for a small word; false: the small table is full there. */
bool word_table_keep_small(struct word_user *u, uint64_t key, uint64_t hash, uint64_t ids);

/* Stores ids that do not fit an entry and returns a reference for the entry; 0: no space. */
uint64_t word_table_many(struct word_user *u, const int32_t *id, size_t n);
/* The ids behind such a reference. */
static inline const struct many *word_table_many_at(const struct word_table *t, uint64_t ids)
{
    return (const void *)(t->many.at + ids_place(ids));
}

/*
 * Words of more than SHORT bytes; those of more than LONGEST are not cached. A caller that looks up
 * several prefetches all slots, then all words, then all ids, to overlap the cache misses.
 */
uint64_t word_table_hash_longer(const char *p, size_t n);

static inline size_t longer_slot_of(const struct word_table *t, uint64_t hash)
{
    return hash >> 32 & t->slot_mask;
}

static inline void word_table_fetch_slot(const struct word_table *t, uint64_t hash)
{
    __builtin_prefetch((const void *)&t->slot[longer_slot_of(t, hash)]);
}

void word_table_fetch_longer(const struct word_table *t, uint64_t hash);
/* NULL: not in the table. */
const struct longer *word_table_find_longer(const struct word_table *t, uint64_t hash,
                                            const char *p, size_t n);

static inline const uint32_t *longer_ids(const struct longer *x)
{
    return x->all + (x->length + 3) / 4;
}

/* Inserts a word that is not in the table. */
void word_table_keep_longer(struct word_user *u, uint64_t hash, const char *p, size_t length,
                            const int32_t *id, size_t n);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_CACHE_TABLE_H
#define TOK_CACHE_TABLE_H

/*
 * Where the word caches of all threads keep words and their ids. Words of up to nine bytes are
 * small_table.c's. Those of up to fifteen, and small ones that find no room there, lie in buckets
 * of two, in their own or in one of the three next to it; longer words, and the ids that are too
 * many for an entry, in arenas. All stays below a bound: words of up to fifteen bytes may take
 * three quarters, longer ones what is left.
 *
 * The tokenizer owns the table, each thread a user of it. What is found, and places in the arenas,
 * hold from word_table_enter to word_table_leave. In between threads find and keep at the same
 * time: an entry is had by who puts its ids there first, its key is seen when all else is, and none
 * is emptied or moved. When there are too many words, the next who enters waits till it is alone,
 * and then makes room (rwlock.h); till then words that find no place are not kept.
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
    LONGEST = 1024, /* bytes of a word that is worth keeping */
    MANY_BLOCK = 4, /* ids, of which whole numbers are readable where many are */
    NEAR = 4        /* buckets in which a word may lie: its own and those next to it */
};

/* A word of up to fifteen bytes. */
struct entry {
    _Alignas(32) _Atomic uint64_t low; /* of its key, */
    _Atomic uint64_t high;             /* which is the last that is written */
    _Atomic uint64_t ids;              /* see ids_pack; 0: free */
};

struct bucket {
    _Alignas(64) struct entry at[2];
};

/* A longer word: `words` of its bytes, then the ids. */
struct longer {
    uint32_t length, n;
    uint32_t all[];
};

/* Ids of a short word that has many. */
struct many {
    uint32_t n;
    int32_t id[];
};

struct arena32 {
    uint32_t *at;
    size_t most, limit;  /* that there are; that may be taken */
    unsigned round;      /* how often it was emptied */
    _Atomic size_t next; /* the first that nobody has taken; place 0 is none */
};

/* What a user has taken of an arena. */
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
    _Atomic uint64_t *slot; /* of longer words: tag of the hash, and below it the place, not 0 */
    size_t slot_mask;
    struct arena32 longer;
    struct arena32 many;
    size_t bound;
    /* words that users have kept */
    _Alignas(64) _Atomic size_t nsmall;
    _Atomic size_t nlarger, nlonger;
};

struct word_user {
    struct rwlock_reader guest;
    struct word_table *t;
    struct arena_part longer, many;
    size_t nsmall, nlarger, nlonger; /* words kept since it entered */
};

/* cache.h makes them and destroys them. */
size_t word_table_bytes(const struct word_table *t);

void word_table_join(struct word_table *t, struct word_user *u);
void word_table_part(struct word_user *u);

void word_table_enter(struct word_user *u);
void word_table_leave(struct word_user *u);

/* What readers see of an entry; its ids are there when the key is. */
static inline bool entry_is(const struct entry *x, struct key key)
{
    bool high = atomic_load_explicit(&x->high, memory_order_acquire) == key.high;
    return high & (atomic_load_explicit(&x->low, memory_order_relaxed) == key.low);
}

static inline uint64_t entry_ids(const struct entry *x)
{
    return atomic_load_explicit(&x->ids, memory_order_relaxed);
}

/* Where a larger word of this hash lies unless that is full. */
static inline struct bucket *word_table_bucket(const struct word_table *t, uint64_t hash)
{
    return &t->bucket[__builtin_bswap64(hash) & t->mask];
}

/* The ids of the word of this key and hash; 0: it is not here. */
uint64_t word_table_find(const struct word_table *t, struct key key, uint64_t hash);
/* A word that is not here, of these ids, not 0. */
void word_table_keep(struct word_user *u, struct key key, uint64_t hash, uint64_t ids);
/* The same of a small word; false: there was no room with the others. */
bool word_table_keep_small(struct word_user *u, uint64_t key, uint64_t hash, uint64_t ids);

/* Ids that do not go into eight bytes, for one of these; 0: there is no room. */
uint64_t word_table_many(struct word_user *u, const int32_t *id, size_t n);
/* Where they are. */
static inline const struct many *word_table_many_at(const struct word_table *t, uint64_t ids)
{
    return (const void *)(t->many.at + ids_place(ids));
}

/*
 * Words of more than SHORT bytes; of more than LONGEST none is kept. Who looks up several asks for
 * the slots, then for the words, and then for the ids, so that none of these is waited for.
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
/* NULL: it is not here. */
const struct longer *word_table_find_longer(const struct word_table *t, uint64_t hash,
                                            const char *p, size_t n);

static inline const uint32_t *longer_ids(const struct longer *x)
{
    return x->all + (x->length + 3) / 4;
}

/* A word that is not here. */
void word_table_keep_longer(struct word_user *u, uint64_t hash, const char *p, size_t length,
                            const int32_t *id, size_t n);

#endif

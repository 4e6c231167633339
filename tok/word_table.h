/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_WORD_TABLE_H
#define TOK_WORD_TABLE_H

/*
 * Where word_cache.c keeps words and their ids. Words of up to nine bytes are word_small.c's. Those
 * of up to fifteen lie in buckets of two, in their own or in one of the three next to it; longer
 * words, and the ids that are too many for an entry, in arenas. All stays below a bound: words of
 * up to fifteen bytes may take three quarters, longer ones what is left. What a call returns is
 * valid till the next that keeps something.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "tok/word_ids.h"
#include "tok/word_key.h"
#include "tok/word_small.h"
#include "tok/words.h"

enum {
    LONGEST = 1024, /* bytes of a word that is worth keeping */
    MANY_SLACK = 8, /* ids that are readable behind any of many */
    NEAR = 4        /* buckets in which a word may lie: its own and those next to it */
};

/* A word of ten to fifteen bytes. */
struct entry {
    _Alignas(32) struct key key;
    uint64_t ids; /* see ids_pack; 0: free */
};

struct bucket {
    _Alignas(64) struct entry at[2];
};

/* Where a longer word may lie. */
struct longer_slot {
    uint32_t tag; /* of its hash */
    uint32_t at;  /* its place in `longer`, not 0; 0: free */
};

/* A longer word there: `words` of its bytes, then the ids. */
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
    size_t n, most;
};

struct word_table {
    struct small_table small;
    struct bucket *bucket;
    uint32_t mask; /* buckets - 1 */
    uint32_t most; /* buckets */
    size_t used;   /* entries */
    struct longer_slot *slot;
    size_t slot_mask, nlonger;
    struct arena32 longer;
    struct arena32 many;
    size_t bound;
};

void word_table_init(struct word_table *t, size_t bytes);
void word_table_finish(struct word_table *t);
size_t word_table_bytes(const struct word_table *t);

/* Where a larger word of this hash lies unless that is full. */
static inline struct bucket *word_table_bucket(const struct word_table *t, uint64_t hash)
{
    return &t->bucket[__builtin_bswap64(hash) & t->mask];
}

/* The ids of the word of this key and hash; 0: it is not here. One that lies next to its bucket
 * changes places with the second of it. */
uint64_t word_table_find(struct word_table *t, struct key key, uint64_t hash);
/* A word that is not here, of these ids, not 0. Another may give way. */
void word_table_keep(struct word_table *t, struct key key, uint64_t hash, uint64_t ids);
/* The same of a small word. */
void word_table_keep_small(struct word_table *t, uint64_t key, uint64_t hash, uint64_t ids);

/* Ids that do not go into eight bytes, for one of these; 0: there is no room. */
uint64_t word_table_many(struct word_table *t, const int32_t *id, size_t n);
/* Where they are. */
static inline const struct many *word_table_many_at(const struct word_table *t, uint64_t ids)
{
    return (const void *)(t->many.at + ids_place(ids));
}

/* Makes room for many ids; no other call moves or forgets any. */
void word_table_tidy(struct word_table *t);

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
    __builtin_prefetch(&t->slot[longer_slot_of(t, hash)]);
}

/* The slot from which on to look for a word. */
size_t word_table_fetch_longer(const struct word_table *t, uint64_t hash);
/* NULL: it is not here. */
const struct longer *word_table_find_longer(const struct word_table *t, size_t slot, uint64_t hash,
                                            const char *p, size_t n);

static inline const uint32_t *longer_ids(const struct longer *x)
{
    return x->all + (x->length + 3) / 4;
}

void word_table_keep_longer(struct word_table *t, uint64_t hash, const char *p, size_t length,
                            const int32_t *id, size_t n);

#endif

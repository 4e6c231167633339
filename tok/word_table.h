/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_WORD_TABLE_H
#define TOK_WORD_TABLE_H

/*
 * Where word_cache.c keeps words and their ids; word_front.c has the same entries. Short words lie
 * in buckets of two, in their own or in one of the three next to it; longer words, and the ids that
 * are too many for an entry, in arenas. All stays below a bound: short words may take three
 * quarters, longer ones what is left. What a call returns is valid till the next that keeps
 * something.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "tok/words.h"

enum {
    SHORT = 15,     /* bytes of a word that lies in its entry */
    INLINE = 4,     /* ids that do */
    LONGEST = 1024, /* bytes of a word that is worth keeping */
    NEAR = 4,       /* buckets in which a word may lie: its own and those next to it */
    MANY = 15       /* number of ids of an entry whose ids are in the arena */
};

/*
 * key[1] holds the word's last bytes, its length in bits 56 .. 59 and the number of ids in bits 60
 * .. 63. Ids in the arena: id[0] is their place, id[1] their number. Length 0: free.
 */
struct entry {
    uint64_t key[2];
    uint32_t id[INLINE];
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

struct arena32 {
    uint32_t *at;
    size_t n, most;
};

struct word_table {
    struct bucket *bucket;
    uint32_t mask; /* buckets - 1 */
    uint32_t most; /* buckets */
    size_t used;   /* entries */
    struct longer_slot *slot;
    size_t slot_mask, nlonger;
    struct arena32 longer; /* longer words and their ids */
    struct arena32 many;   /* ids of short words that have many */
    size_t bound;
    bool crc; /* the processor has the instruction */
};

#define KEY_MASK (((uint64_t)1 << 60) - 1)

void word_table_init(struct word_table *t, size_t bytes);
void word_table_finish(struct word_table *t);
size_t word_table_bytes(const struct word_table *t);

static inline uint64_t crc_step(uint64_t h, uint64_t v)
{
#ifdef __x86_64__
    __asm__("crc32q %1, %0" : "+r"(h) : "rm"(v));
    return h;
#else
    return words_mix(h ^ v, 0x9E3779B97F4A7C15u);
#endif
}

static inline uint32_t hash_of(uint64_t low, uint64_t high, bool crc)
{
    if (crc)
        return (uint32_t)crc_step(crc_step(0, low), high);
    return (uint32_t)words_mix(words_mix(low, 0xD1B54A32D192ED03u) ^ high, 0x9E3779B97F4A7C15u);
}

/* The bytes of a word of each length within two loads of eight. */
static const uint64_t low_mask[16] = {0x0,          0xff,         0xffff,         0xffffff,
                                      0xffffffff,   0xffffffffff, 0xffffffffffff, 0xffffffffffffff,
                                      ~(uint64_t)0, ~(uint64_t)0, ~(uint64_t)0,   ~(uint64_t)0,
                                      ~(uint64_t)0, ~(uint64_t)0, ~(uint64_t)0,   ~(uint64_t)0};
static const uint64_t high_mask[16] = {0,
                                       0,
                                       0,
                                       0,
                                       0,
                                       0,
                                       0,
                                       0,
                                       0,
                                       0xff,
                                       0xffff,
                                       0xffffff,
                                       0xffffffff,
                                       0xffffffffff,
                                       0xffffffffffff,
                                       0xffffffffffffff};

struct key {
    uint64_t low, high; /* high without a length: no short word */
};

static inline struct key key_of(const char *text, const uint32_t *start)
{
    size_t length = start[1] - start[0], k = length & 15;
    const char *p = text + start[0];
    uint64_t high = (load_u64(p + 8) & high_mask[k]) | (uint64_t)k << 56;
    return (struct key){load_u64(p) & low_mask[k], length <= SHORT ? high : 0};
}

static inline bool same_key(struct key a, struct key b)
{
    return a.low == b.low && a.high == b.high;
}

static inline uint32_t word_table_hash(const struct word_table *t, struct key key)
{
    return hash_of(key.low, key.high, t->crc);
}

static inline bool word_table_free(const struct entry *x)
{
    return x->key[1] == 0;
}

/* Words of this hash may lie in the buckets next to theirs. */
static inline bool word_table_crowded(const struct word_table *t, uint32_t hash)
{
    const struct bucket *b = &t->bucket[hash & t->mask];
    return !word_table_free(&b->at[0]) && !word_table_free(&b->at[1]);
}

/* Has these brought here, for a word that is not in its own. */
static inline void word_table_fetch_near(const struct word_table *t, uint32_t hash)
{
    if (word_table_crowded(t, hash))
        for (uint32_t near = 1; near < NEAR; near++)
            __builtin_prefetch(&t->bucket[(hash & t->mask) ^ near]);
}

/* The word of this key and its hash; NULL: it is not here. One that lies next to its bucket changes
 * places with the second of it. */
struct entry *word_table_find(struct word_table *t, struct key key, uint32_t hash);
/* A word that is not here. Another may give way. Behind id, INLINE ids are readable. */
void word_table_keep(struct word_table *t, struct key key, uint32_t hash, const int32_t *id,
                     size_t n);

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

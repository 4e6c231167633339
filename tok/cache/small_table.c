/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/cache/small_table.h"

#include <string.h>
#include <sys/mman.h>

#include "base/core/mem.h"
#include "tok/cache/packed_ids.h"

enum {
    START_BYTES = 1 << 20,  /* initial size; grows fourfold */
    LARGE_BYTES = 16 << 20, /* up to this size, then twofold, */
    FILL = 5,               /* when there are more words than this for each pair of buckets */
    MOST_MORE = 2,          /* log2 of the largest growth */
    IN = 4                  /* words per bucket */
};

static int bits_of(size_t bytes)
{
    int bits = 0;
    while ((sizeof(struct small_bucket) << (bits + 1)) <= bytes)
        bits++;
    return bits;
}

void small_init(struct small_table *t, size_t bytes)
{
    *t = (struct small_table){.most = bits_of(bytes < SMALL_LEAST ? SMALL_LEAST : bytes)};
    t->bits = t->most < bits_of(START_BYTES) ? t->most : bits_of(START_BYTES);
    t->bucket =
        mem_pages(sizeof(*t->bucket) << t->most); /* few of these pages are touched at first */
}

void small_finish(struct small_table *t)
{
    munmap(t->bucket, sizeof(*t->bucket) << t->most);
}

size_t small_bytes(const struct small_table *t)
{
    return sizeof(*t->bucket) << t->bits;
}

/* log2 of the buckets after growing */
static int larger(const struct small_table *t)
{
    int more = small_bytes(t) < LARGE_BYTES ? MOST_MORE : 1;
    return t->bits + more < t->most ? t->bits + more : t->most;
}

size_t small_limit(const struct small_table *t)
{
    return (size_t)(t->bits < t->most ? FILL : 2 * IN) << t->bits >> 1;
}

size_t small_growth(const struct small_table *t)
{
    return t->bits < t->most ? (sizeof(*t->bucket) << larger(t)) - small_bytes(t) : 0;
}

uint64_t small_find(const struct small_table *t, uint64_t key, uint64_t hash)
{
    uint64_t place = hash >> (64 - t->bits);
    const struct small_entry *home = t->bucket[place].at, *beside = t->bucket[place ^ 1].at;
    for (int i = 0; i < IN; i++)
        if (small_entry_key(&home[i]) == key)
            return small_entry_ids(&home[i]);
    for (int i = 0; i < IN && small_entry_key(&home[IN - 1]); i++)
        if (small_entry_key(&beside[i]) == (key | SMALL_BESIDE))
            return small_entry_ids(&beside[i]);
    return 0;
}

/* A bit for each free entry. */
static inline unsigned free_in(const struct small_bucket *b)
{
    const struct small_entry *x = b->at;
    return (unsigned)(small_entry_ids(x) == 0) | (unsigned)(small_entry_ids(x + 1) == 0) << 1 |
           (unsigned)(small_entry_ids(x + 2) == 0) << 2 |
           (unsigned)(small_entry_ids(x + 3) == 0) << 3;
}

static bool is_in(const struct small_bucket *b, uint64_t key)
{
    bool is = false;
    for (int i = 0; i < IN; i++)
        is |= small_entry_key(&b->at[i]) == key;
    return is;
}

/* Inserts into the first free entry, in the home or the adjacent bucket; false if there is none. */
static inline bool small_table_put(struct small_table *t, struct small word, uint64_t hash,
                                   bool alone)
{
    uint64_t place = hash >> (64 - t->bits);
    for (int side = 0; side < 2; side++, word.key |= SMALL_BESIDE) {
        struct small_bucket *b = &t->bucket[place ^ (uint64_t)side];
        if (!alone && is_in(b, word.key)) /* inserted meanwhile */
            return true;
        for (unsigned some = free_in(b); some; some &= some - 1) {
            struct small_entry *x = &b->at[__builtin_ctz(some)];
            if (!entry_claim(&x->ids, word.ids, alone))
                continue;
            atomic_store_explicit(&x->key, word.key, memory_order_release);
            return true;
        }
    }
    return false;
}

bool small_keep(struct small_table *t, uint64_t key, uint64_t hash, uint64_t ids, bool alone)
{
    return small_table_put(t, (struct small){key, ids}, hash, alone);
}

/* ---- with exclusive access ------------------------------------------------------------------- */

static inline struct small get(const struct small_entry *x)
{
    return (struct small){atomic_load_explicit(&x->key, memory_order_relaxed), small_entry_ids(x)};
}

static inline void set(struct small_entry *x, struct small word)
{
    atomic_store_explicit(&x->key, word.key, memory_order_relaxed);
    atomic_store_explicit(&x->ids, word.ids, memory_order_relaxed);
}

/*
 * Grows in place: only new pages are touched. From the last on, each pair of buckets becomes
 * several pairs, whose memory is free by then; words that fit their home bucket go first.
 */
size_t small_grow(struct small_table *t)
{
    size_t used = 0;
    const int bits = t->bits;
    t->bits = larger(t);
    const size_t times = (size_t)1 << (t->bits - bits);
    for (uint64_t end = (uint64_t)1 << bits; end; end -= 2) {
        struct small word[2 * IN];
        uint64_t hash[2 * IN], first = end - 2;
        uint8_t count[2 << MOST_MORE] = {0};
        size_t n = 0, away = 0;
        for (uint64_t i = 0; i < 2 * IN; i++) {
            struct small x = get(&t->bucket[first + i / IN].at[i % IN]);
            uint64_t home = (first + i / IN) ^ (x.key & SMALL_BESIDE ? 1 : 0);
            x.key &= ~(uint64_t)SMALL_BESIDE;
            hash[n] = home >> (bits - SMALL_FIXED) << (64 - SMALL_FIXED) | x.key >> SMALL_FIXED;
            word[n] = x;
            n += x.key != 0;
        }
        memset((void *)&t->bucket[first * times], 0, 2 * times * sizeof(*t->bucket));
        for (size_t i = 0; i < n; i++) {
            struct small_bucket *home = small_bucket(t, hash[i]);
            uint8_t *k = &count[(size_t)(home - t->bucket) % (2 << MOST_MORE)];
            word[away] = word[i];
            hash[away] = hash[i];
            if (*k < IN)
                set(&home->at[(*k)++], word[i]);
            else
                away++;
        }
        used += n - away;
        for (size_t i = 0; i < away; i++)
            used += small_table_put(t, word[i], hash[i], true);
    }
    return used;
}

/*
 * Clears half of the entries, or those with references of this kind; returns the words that remain.
 */
static size_t small_table_empty(struct small_table *t, bool half, unsigned kind)
{
    size_t used = 0;
    for (uint64_t i = 0; i < (uint64_t)IN << t->bits; i++) {
        struct small_entry *x = &t->bucket[i / IN].at[i % IN];
        uint64_t key = small_entry_key(x);
        if (!key)
            continue;
        if (half ? i % IN >= IN / 2 || key & SMALL_BESIDE : ids_are(small_entry_ids(x), kind))
            set(x, (struct small){0});
        else
            used++;
    }
    return used;
}

/* Evicts the newer words of each bucket, and words beside their own, found only past a full one. */
size_t small_thin(struct small_table *t)
{
    return small_table_empty(t, true, 0);
}

size_t small_drop(struct small_table *t, unsigned kind)
{
    return small_table_empty(t, false, kind);
}

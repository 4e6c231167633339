/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/word_small.h"

#include <sys/mman.h>

#include "base/mem.h"
#include "tok/word_ids.h"

enum {
    START_BYTES = 1 << 20,  /* at first; it becomes four times as */
    LARGE_BYTES = 16 << 20, /* large up to this, and twice from then on, */
    FILL = 2,               /* when it has more words than these for each bucket */
    IN = 4                  /* words of a bucket */
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
    t->bucket = mem_pages(sizeof(*t->bucket) << t->most); /* of which little is touched at first */
}

void small_finish(struct small_table *t)
{
    munmap(t->bucket, sizeof(*t->bucket) << t->most);
}

size_t small_bytes(const struct small_table *t)
{
    return sizeof(*t->bucket) << t->bits;
}

/* Bits of the next table. */
static int larger(const struct small_table *t)
{
    int more = small_bytes(t) < LARGE_BYTES ? 2 : 1;
    return t->bits + more < t->most ? t->bits + more : t->most;
}

size_t small_growth(const struct small_table *t)
{
    if (t->used <= (size_t)FILL << t->bits || t->bits == t->most)
        return 0;
    return (sizeof(*t->bucket) << larger(t)) - small_bytes(t);
}

uint64_t small_find(const struct small_table *t, uint64_t key, uint64_t hash)
{
    uint64_t place = hash >> (64 - t->bits);
    const struct small *home = t->bucket[place].at, *beside = t->bucket[place ^ 1].at;
    for (int i = 0; i < IN; i++)
        if (home[i].key == key)
            return home[i].ids;
    for (int i = 0; i < IN && home[IN - 1].key; i++)
        if (beside[i].key == (key | SMALL_BESIDE))
            return beside[i].ids;
    return 0;
}

/* A bit for each free entry. */
static inline unsigned free_in(const struct small_bucket *b)
{
    const struct small *x = b->at;
    return (unsigned)(x[0].key == 0) | (unsigned)(x[1].key == 0) << 1 |
           (unsigned)(x[2].key == 0) << 2 | (unsigned)(x[3].key == 0) << 3;
}

/* Into the first free entry, at home or beside it, else the last of these. */
static inline void put(struct small_table *t, struct small word, uint64_t hash)
{
    uint64_t place = hash >> (64 - t->bits);
    struct small_bucket *b = &t->bucket[place];
    unsigned some = free_in(b);
    t->used++;
    if (__builtin_expect(!some, 0)) {
        word.key |= SMALL_BESIDE;
        b = &t->bucket[place ^ 1];
        some = free_in(b);
        t->used -= !some;
        some |= 1 << (IN - 1);
    }
    b->at[__builtin_ctz(some)] = word;
}

/*
 * More buckets, where they lie: no page is touched that is not new. From the last on, each pair of
 * buckets becomes some pairs, which begin at a place that is free by then.
 */
static void grow(struct small_table *t)
{
    int bits = t->bits;
    t->bits = larger(t);
    t->used = 0;
    for (uint64_t first = (uint64_t)1 << bits; first; first -= 2) {
        struct small_bucket was[2];
        for (uint64_t i = 0; i < 2; i++) {
            was[i] = t->bucket[first - 2 + i];
            t->bucket[first - 2 + i] = (struct small_bucket){0};
        }
        for (uint64_t i = 0; i < 2 * IN; i++) {
            struct small x = was[i / IN].at[i % IN];
            uint64_t home = (first - 2 + i / IN) ^ (x.key & SMALL_BESIDE ? 1 : 0);
            uint64_t known = home >> (bits - SMALL_FIXED) << (64 - SMALL_FIXED);
            if (!x.key)
                continue;
            x.key &= ~(uint64_t)SMALL_BESIDE;
            put(t, x, known | x.key >> SMALL_FIXED);
        }
    }
}

void small_keep(struct small_table *t, uint64_t key, uint64_t hash, uint64_t ids)
{
    if (small_growth(t))
        grow(t);
    put(t, (struct small){key, ids}, hash);
}

void small_drop(struct small_table *t, unsigned kind)
{
    for (uint64_t i = 0; i < (uint64_t)1 << t->bits; i++)
        for (int k = 0; k < IN; k++) {
            struct small *x = &t->bucket[i].at[k];
            if (x->key && ids_are(x->ids, kind)) {
                *x = (struct small){0};
                t->used--;
            }
        }
}

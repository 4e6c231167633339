/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/word_table.h"

#include <string.h>
#include <sys/mman.h>

#include "base/mem.h"

enum {
    START_BYTES = 512 << 10, /* of the table of entries, at first; it becomes four times as */
    LARGE_BYTES = 8 << 20,   /* large up to this, and twice from then on, */
    FILL = 1,                /* when it has no more buckets than these for each word */
    LONGER_SLOTS = 512       /* for longer words, at first */
};

/* ---- memory -------------------------------------------------------------------------------- */

static size_t bucket_bytes(uint32_t mask)
{
    return ((size_t)mask + 1) * sizeof(struct bucket);
}

/* Of the next table. */
static uint32_t larger(const struct word_table *t)
{
    uint32_t n = t->mask + 1;
    return bucket_bytes(t->mask) < LARGE_BYTES && n <= t->most / 4 ? n * 4 - 1 : n * 2 - 1;
}

static size_t slot_bytes(const struct word_table *t)
{
    return (t->slot_mask + 1) * sizeof(*t->slot);
}

static void open_slots(struct word_table *t, size_t n)
{
    t->slot_mask = n - 1;
    t->slot = mem_pages(slot_bytes(t));
}

static void open_longer(struct word_table *t)
{
    open_slots(t, LONGER_SLOTS);
    t->nlonger = 0;
    t->longer.n = 1; /* place 0 is none */
}

static void open_arena(struct arena32 *a, size_t bytes)
{
    *a = (struct arena32){.at = mem_pages(bytes), .most = bytes / sizeof(*a->at)};
}

static void close_arena(struct arena32 *a)
{
    munmap(a->at, a->most * sizeof(*a->at));
}

void word_table_init(struct word_table *t, size_t bytes)
{
    size_t most = bytes / 8 * 3, table = SMALL_LEAST;
    while (table * 2 <= most)
        table *= 2;
    *t = (struct word_table){.most = (uint32_t)(table / sizeof(struct bucket))};
    small_init(&t->small, most);
    size_t start = table < START_BYTES ? table : START_BYTES;
    t->mask = (uint32_t)(start / sizeof(struct bucket)) - 1;
    t->bucket = mem_pages(bucket_bytes(t->most - 1)); /* of which little is touched at first */
    t->bound = bytes;
    open_arena(&t->many, bytes / 8);
    open_arena(&t->longer, bytes); /* of which the bound leaves what the rest does not take */
    open_longer(t);
}

void word_table_finish(struct word_table *t)
{
    small_finish(&t->small);
    munmap(t->bucket, bucket_bytes(t->most - 1));
    munmap(t->slot, slot_bytes(t));
    close_arena(&t->longer);
    close_arena(&t->many);
}

size_t word_table_bytes(const struct word_table *t)
{
    return small_bytes(&t->small) + bucket_bytes(t->mask) + slot_bytes(t) +
           (t->longer.n + t->many.most) * sizeof(*t->many.at);
}

/* Forgets the longer words. */
static void drop_longer(struct word_table *t)
{
    munmap(t->slot, slot_bytes(t));
    madvise(t->longer.at, t->longer.most * sizeof(*t->longer.at), MADV_DONTNEED);
    open_longer(t);
}

static bool fits(const struct word_table *t, size_t more)
{
    return word_table_bytes(t) + more <= t->bound;
}

/* Forgets the short words that have many ids. */
static void drop_many(struct word_table *t)
{
    small_drop(&t->small, IDS_MANY);
    for (size_t i = 0; i <= t->mask; i++)
        for (int k = 0; k < 2; k++) {
            struct entry *x = &t->bucket[i].at[k];
            if (ids_are(x->ids, IDS_MANY)) {
                *x = (struct entry){0};
                t->used--;
            }
        }
    t->many.n = 0;
}

/* ---- words of a key ----------------------------------------------------------------------- */

static bool is_free(const struct entry *x)
{
    return !x->ids;
}

static struct entry *find_in(struct bucket *b, struct key key)
{
    for (int i = 0; i < 2; i++)
        if (same_key(b->at[i].key, key))
            return &b->at[i];
    return NULL;
}

uint64_t word_table_find(struct word_table *t, struct key key, uint64_t hash)
{
    uint32_t place = (uint32_t)(word_table_bucket(t, hash) - t->bucket);
    struct entry *home = &t->bucket[place].at[1], *x = find_in(&t->bucket[place], key);
    for (uint32_t next = 1; !x && next < NEAR && !is_free(home); next++)
        x = find_in(&t->bucket[place ^ next], key);
    if (!x || x == home || x == home - 1)
        return x ? x->ids : 0;
    struct entry was = *home;
    *home = *x;
    *x = was;
    return home->ids;
}

/* A free one, at home or near it, else the last of these. */
static struct entry *free_near(const struct word_table *t, uint64_t hash)
{
    struct entry *x = NULL;
    uint32_t place = (uint32_t)(word_table_bucket(t, hash) - t->bucket);
    for (uint32_t k = 0; k < 2 * NEAR; k++) {
        x = &t->bucket[place ^ k / 2].at[k % 2];
        if (is_free(x))
            break;
    }
    return x;
}

/*
 * More buckets, where they lie: no page is touched that is not new. The words of a group of NEAR
 * buckets go to the groups that have the same place in it, in the old part and in the new ones: at
 * home, or else, where that is full, next to it.
 */
static void grow(struct word_table *t)
{
    uint32_t n = t->mask + 1;
    t->mask = larger(t);
    for (uint32_t first = 0; first < n; first += NEAR) {
        struct entry x[2 * NEAR], *away[2 * NEAR];
        size_t count = 0, naway = 0;
        for (uint32_t i = 0; i < 2 * NEAR; i++) {
            struct entry *from = &t->bucket[first + i / 2].at[i % 2];
            x[count] = *from;
            count += !is_free(from);
            *from = (struct entry){0};
        }
        for (size_t i = 0; i < count; i++) {
            struct entry *home = word_table_bucket(t, hash_of(x[i].key))->at;
            home += !is_free(home);
            if (is_free(home))
                *home = x[i];
            else
                away[naway++] = &x[i];
        }
        for (size_t i = 0; i < naway; i++)
            *free_near(t, hash_of(away[i]->key)) = *away[i];
    }
}

/* Bytes that the next word adds to the table. */
static size_t growth(const struct word_table *t)
{
    bool grows = t->used > (size_t)t->mask / FILL && t->mask + 1 < t->most;
    return grows ? bucket_bytes(larger(t)) - bucket_bytes(t->mask) : 0;
}

void word_table_keep(struct word_table *t, struct key key, uint64_t hash, uint64_t ids)
{
    size_t more = growth(t);
    if (more && !fits(t, more))
        drop_longer(t);
    if (more)
        grow(t);
    struct entry *at = free_near(t, hash);
    t->used += is_free(at);
    *at = (struct entry){key, ids};
}

void word_table_keep_small(struct word_table *t, uint64_t key, uint64_t hash, uint64_t ids)
{
    size_t more = small_growth(&t->small);
    if (more && !fits(t, more))
        drop_longer(t);
    small_keep(&t->small, key, hash, ids);
}

uint64_t word_table_many(struct word_table *t, const int32_t *id, size_t n)
{
    size_t place = t->many.n, need = sizeof(struct many) / 4 + n;
    if (need + MANY_SLACK > t->many.most - place || place >= IDS_PLACES)
        return 0;
    struct many *x = (void *)(t->many.at + place);
    x->n = (uint32_t)n;
    memcpy(x->id, id, n * sizeof(*id));
    t->many.n += need;
    return ids_at(IDS_MANY, place);
}

void word_table_tidy(struct word_table *t)
{
    if (t->many.n > t->many.most / 4 * 3)
        drop_many(t);
}

/* ---- longer words -------------------------------------------------------------------------- */

uint64_t word_table_hash_longer(const char *p, size_t n)
{
    return words_key(p, n).hash | 1;
}

static uint32_t tag_of(uint64_t hash)
{
    return (uint32_t)(hash >> 32);
}

static const struct longer *longer_at(const struct word_table *t, size_t slot)
{
    return (const void *)(t->longer.at + t->slot[slot].at);
}

size_t word_table_fetch_longer(const struct word_table *t, uint64_t hash)
{
    size_t i = longer_slot_of(t, hash);
    while (t->slot[i].at && t->slot[i].tag != tag_of(hash))
        i = (i + 1) & t->slot_mask;
    const char *x = (const char *)longer_at(t, i);
    __builtin_prefetch(x);
    __builtin_prefetch(x + 64);
    return i;
}

/* Two words of a length of eight bytes or more. */
static bool same_bytes(const char *a, const char *b, size_t n)
{
    uint64_t differ = load_u64(a + n - 8) ^ load_u64(b + n - 8);
    for (size_t i = 0; i < n - 8; i += 8)
        differ |= load_u64(a + i) ^ load_u64(b + i);
    return !differ;
}

const struct longer *word_table_find_longer(const struct word_table *t, size_t slot, uint64_t hash,
                                            const char *p, size_t n)
{
    for (size_t i = slot; t->slot[i].at; i = (i + 1) & t->slot_mask) {
        const struct longer *x = longer_at(t, i);
        if (t->slot[i].tag == tag_of(hash) && x->length == n &&
            same_bytes((const char *)x->all, p, n))
            return x;
    }
    return NULL;
}

/* The first free one from there on. */
static size_t free_slot(const struct word_table *t, size_t i)
{
    while (t->slot[i].at)
        i = (i + 1) & t->slot_mask;
    return i;
}

static void grow_slots(struct word_table *t)
{
    struct longer_slot *old = t->slot;
    size_t n = t->slot_mask + 1;
    open_slots(t, n * 2);
    for (size_t i = 0; i < n; i++)
        if (old[i].at)
            t->slot[free_slot(t, old[i].tag & t->slot_mask)] = old[i];
    munmap(old, n * sizeof(*old));
}

void word_table_keep_longer(struct word_table *t, uint64_t hash, const char *p, size_t length,
                            const int32_t *id, size_t n)
{
    size_t words = (length + 3) / 4, need = sizeof(struct longer) / 4 + words + n;
    size_t slot = word_table_fetch_longer(t, hash);
    if (length > LONGEST || need > t->longer.most / 16 ||
        word_table_find_longer(t, slot, hash, p, length))
        return;
    bool full = t->nlonger >= t->slot_mask / 2;
    if (!fits(t, need * sizeof(*t->longer.at) + (full ? slot_bytes(t) : 0)))
        drop_longer(t);
    else if (full)
        grow_slots(t);
    slot = free_slot(t, longer_slot_of(t, hash));
    t->slot[slot] = (struct longer_slot){tag_of(hash), (uint32_t)t->longer.n};
    struct longer *x = (void *)(t->longer.at + t->longer.n);
    *x = (struct longer){(uint32_t)length, (uint32_t)n};
    memcpy(x->all, p, length);
    memcpy(x->all + words, id, n * sizeof(*id));
    t->longer.n += need;
    t->nlonger++;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/cache/table.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/core/bytes.h"
#include "base/core/mem.h"
#include "tok/cache/cache.h"
#include "tok/text/string_map.h"

enum {
    START_BYTES = 512 << 10, /* initial size of the bucket table; grows fourfold */
    LARGE_BYTES = 8 << 20,   /* up to this size, then twofold, */
    FILL = 1,                /* when there are more words than this for each bucket */
    LONGER_SLOTS = 4096,     /* initial slots for longer words */
    PROBES = 64,             /* slots in which a word may be */
    PART = 1024              /* 32-bit units that a user reserves from an arena at a time */
};

/* ---- memory -------------------------------------------------------------------------------- */

static size_t bucket_bytes(uint32_t mask)
{
    return ((size_t)mask + 1) * sizeof(struct bucket);
}

/* Buckets after growing. */
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

static void close_slots(struct word_table *t)
{
    munmap((void *)t->slot, slot_bytes(t));
}

static void open_arena(struct arena32 *a, size_t bytes)
{
    size_t n = bytes / sizeof(*a->at);
    *a = (struct arena32){.at = mem_pages(bytes), .most = n, .limit = n, .next = 1};
}

static void close_arena(struct arena32 *a)
{
    munmap(a->at, a->most * sizeof(*a->at));
}

static void empty_arena(struct arena32 *a)
{
    a->round++;
    atomic_store(&a->next, 1);
}

static size_t arena_used(const struct arena32 *a)
{
    size_t n = atomic_load_explicit(&a->next, memory_order_relaxed);
    return n < a->limit ? n : a->limit;
}

/* Allocates n units; 0: not possible now, but later. */
static size_t arena_take(struct rwlock *g, struct arena32 *a, struct arena_part *p, size_t n)
{
    if (p->round != a->round || n > p->end - p->at) {
        size_t take = n > PART ? n : PART;
        size_t at = atomic_fetch_add_explicit(&a->next, take, memory_order_relaxed);
        if (at + take > a->limit) {
            rwlock_request_exclusive(g);
            return 0;
        }
        *p = (struct arena_part){at, at + take, a->round};
    }
    p->at += n;
    return p->at - n;
}

/* Longer words get what the other words leave of the bound. */
static void set_limit(struct word_table *t)
{
    size_t rest = small_bytes(&t->small) + bucket_bytes(t->mask) + slot_bytes(t) +
                  t->many.most * sizeof(*t->many.at);
    t->longer.limit = (t->bound - rest) / sizeof(*t->longer.at);
}

struct word_table *word_table_create(size_t bytes)
{
    enum { LEAST_BYTES = 512 << 10 };
    struct word_table *t = mem_own(sizeof(*t));
    bytes = bytes < LEAST_BYTES ? LEAST_BYTES : bytes;
    size_t most = bytes / 8 * 3, table = SMALL_LEAST;
    while (table * 2 <= most)
        table *= 2;
    size_t start = table < START_BYTES ? table : START_BYTES;
    rwlock_init(&t->gate);
    t->bound = bytes;
    t->most = (uint32_t)(table / sizeof(struct bucket));
    t->mask = (uint32_t)(start / sizeof(struct bucket)) - 1;
    t->bucket = mem_pages(bucket_bytes(t->most - 1)); /* few of these pages are touched at first */
    small_init(&t->small, most);
    open_slots(t, LONGER_SLOTS);
    open_arena(&t->many, bytes / 8);
    open_arena(&t->longer, bytes); /* the whole bound; set_limit shrinks it */
    set_limit(t);
    return t;
}

void word_table_destroy(struct word_table *t)
{
    if (!t)
        return;
    rwlock_finish(&t->gate);
    small_finish(&t->small);
    munmap(t->bucket, bucket_bytes(t->most - 1));
    close_slots(t);
    close_arena(&t->longer);
    close_arena(&t->many);
    free(t);
}

size_t word_table_bytes(const struct word_table *t)
{
    return small_bytes(&t->small) + bucket_bytes(t->mask) + slot_bytes(t) +
           (arena_used(&t->longer) + t->many.most) * sizeof(*t->many.at);
}

void word_table_join(struct word_table *t, struct word_user *u)
{
    *u = (struct word_user){.t = t};
    rwlock_register(&t->gate, &u->guest);
}

void word_table_part(struct word_user *u)
{
    rwlock_unregister(&u->t->gate, &u->guest);
}

static bool alone(const struct word_user *u)
{
    return u->t->gate.guests == 1;
}

/* ---- words with a key ------------------------------------------------------------------------ */

static bool is_free(const struct entry *x)
{
    return !entry_ids(x);
}

uint64_t word_table_find(const struct word_table *t, struct key key, uint64_t hash)
{
    uint32_t place = (uint32_t)(word_table_bucket(t, hash) - t->bucket);
    const struct entry *home = t->bucket[place].at;
    for (uint32_t k = 0; k < 2 * NEAR && (k < 2 || !is_free(home + 1)); k++) {
        const struct entry *x = &t->bucket[place ^ k / 2].at[k % 2];
        if (entry_is(x, key))
            return entry_ids(x);
    }
    return 0;
}

/* Inserts into the first free entry, in the home or a nearby bucket; false if there is none. */
static bool table_put(struct word_table *t, struct key key, uint64_t hash, uint64_t ids, bool alone)
{
    uint32_t place = (uint32_t)(word_table_bucket(t, hash) - t->bucket);
    for (uint32_t k = 0; k < 2 * NEAR; k++) {
        struct entry *x = &t->bucket[place ^ k / 2].at[k % 2];
        if (is_free(x) && entry_claim(&x->ids, ids, alone)) {
            atomic_store_explicit(&x->low, key.low, memory_order_relaxed);
            atomic_store_explicit(&x->high, key.high, memory_order_release);
            return true;
        }
        if (entry_is(x, key))
            return false;
    }
    return false;
}

void word_table_keep(struct word_user *u, struct key key, uint64_t hash, uint64_t ids)
{
    table_put(u->t, key, hash, ids, alone(u));
    u->nlarger++;
}

bool word_table_keep_small(struct word_user *u, uint64_t key, uint64_t hash, uint64_t ids)
{
    u->nsmall++;
    return small_keep(&u->t->small, key, hash, ids, alone(u));
}

uint64_t word_table_many(struct word_user *u, const int32_t *id, size_t n)
{
    struct arena32 *a = &u->t->many;
    size_t blocks = n ? (n + MANY_BLOCK - 1) / MANY_BLOCK : 1;
    size_t need = sizeof(struct many) / 4 + blocks * MANY_BLOCK;
    size_t place = need < a->most / 16 ? arena_take(&u->t->gate, a, &u->many, need) : 0;
    if (!place || place >= IDS_PLACES)
        return 0;
    struct many *x = (void *)(a->at + place);
    x->n = (uint32_t)n;
    memcpy(x->id, id, n * sizeof(*id));
    return ids_at(IDS_MANY, place);
}

/* ---- longer words -------------------------------------------------------------------------- */

uint64_t word_table_hash_longer(const char *p, size_t n)
{
    return string_key(p, n).hash | 1;
}

/* The position of a longer word, below the tag of its hash; 0: empty. */
static uint64_t slot_at(const struct word_table *t, size_t i)
{
    return atomic_load_explicit(&t->slot[i & t->slot_mask], memory_order_acquire);
}

static bool has_tag(uint64_t slot, uint64_t hash)
{
    return slot >> 32 == hash >> 32;
}

static const struct longer *longer_at(const struct word_table *t, uint64_t slot)
{
    return (const void *)(t->longer.at + (uint32_t)slot);
}

void word_table_fetch_longer(const struct word_table *t, uint64_t hash)
{
    size_t i = longer_slot_of(t, hash), end = i + PROBES;
    uint64_t slot = slot_at(t, i);
    while (slot && !has_tag(slot, hash) && ++i < end)
        slot = slot_at(t, i);
    const char *x = (const char *)longer_at(t, slot);
    __builtin_prefetch(x);
    __builtin_prefetch(x + 64);
}

/* Compares two words of the same length, eight bytes or more. */
static bool same_bytes(const char *a, const char *b, size_t n)
{
    uint64_t differ = load_u64(a + n - 8) ^ load_u64(b + n - 8);
    for (size_t i = 0; i < n - 8; i += 8)
        differ |= load_u64(a + i) ^ load_u64(b + i);
    return !differ;
}

const struct longer *word_table_find_longer(const struct word_table *t, uint64_t hash,
                                            const char *p, size_t n)
{
    for (size_t i = longer_slot_of(t, hash), end = i + PROBES; i < end; i++) {
        uint64_t slot = slot_at(t, i);
        const struct longer *x = longer_at(t, slot);
        if (!slot)
            return NULL;
        if (has_tag(slot, hash) && x->length == n && same_bytes((const char *)x->all, p, n))
            return x;
    }
    return NULL;
}

/* Inserts into the first free slot from its home on; false if there is none within PROBES. */
static bool put_slot(struct word_table *t, uint64_t slot)
{
    for (size_t i = slot >> 32, end = i + PROBES; i < end; i++) {
        _Atomic uint64_t *at = &t->slot[i & t->slot_mask];
        uint64_t none = 0;
        if (!slot_at(t, i) && atomic_compare_exchange_strong(at, &none, slot))
            return true;
    }
    return false;
}

void word_table_keep_longer(struct word_user *u, uint64_t hash, const char *p, size_t length,
                            const int32_t *id, size_t n)
{
    struct word_table *t = u->t;
    size_t words = (length + 3) / 4, need = sizeof(struct longer) / 4 + words + n;
    if (length > LONGEST || need > t->longer.most / 16 ||
        word_table_find_longer(t, hash, p, length))
        return;
    size_t place = arena_take(&t->gate, &t->longer, &u->longer, need);
    if (!place)
        return;
    struct longer *x = (void *)(t->longer.at + place);
    *x = (struct longer){(uint32_t)length, (uint32_t)n};
    memcpy(x->all, p, length);
    memcpy(x->all + words, id, n * sizeof(*id));
    put_slot(t, hash >> 32 << 32 | place);
    u->nlonger++;
}

/* ---- with exclusive access ------------------------------------------------------------------- */

struct word {
    struct key key;
    uint64_t ids;
};

/* Takes the word out of an entry. */
static struct word table_take(struct entry *x)
{
    struct word was = {{x->low, x->high}, x->ids};
    atomic_store_explicit(&x->low, 0, memory_order_relaxed);
    atomic_store_explicit(&x->high, 0, memory_order_relaxed);
    atomic_store_explicit(&x->ids, 0, memory_order_relaxed);
    return was;
}

/*
 * Grows in place: only new pages are touched. The words of a group of NEAR buckets are distributed
 * to the groups with the same index in the old part and in the new ones: into their home bucket or,
 * where that is full, next to it.
 */
static void table_grow(struct word_table *t)
{
    uint32_t n = t->mask + 1;
    size_t used = 0;
    t->mask = larger(t);
    for (uint32_t first = 0; first < n; first += NEAR) {
        struct word x[2 * NEAR], *away[2 * NEAR];
        size_t count = 0, naway = 0;
        for (uint32_t i = 0; i < 2 * NEAR; i++) {
            x[count] = table_take(&t->bucket[first + i / 2].at[i % 2]);
            count += x[count].ids != 0;
        }
        for (size_t i = 0; i < count; i++) {
            uint64_t hash = hash_of(x[i].key);
            if (is_free(&word_table_bucket(t, hash)->at[1]))
                used += table_put(t, x[i].key, hash, x[i].ids, true);
            else
                away[naway++] = &x[i];
        }
        for (size_t i = 0; i < naway; i++)
            used += table_put(t, away[i]->key, hash_of(away[i]->key), away[i]->ids, true);
    }
    t->nlarger = used;
}

/* Evicts half of the entries, or those with many ids. Of half, the first words at home remain. */
static void empty_larger(struct word_table *t, bool half)
{
    size_t used = 0;
    for (uint32_t i = 0; i < 2 * (t->mask + 1); i++) {
        struct entry *x = &t->bucket[i / 2].at[i % 2];
        struct key key = {x->low, x->high};
        bool away = half && word_table_bucket(t, hash_of(key)) != &t->bucket[i / 2];
        if (half ? i % 2 || away : ids_are(entry_ids(x), IDS_MANY))
            table_take(x);
        used += !is_free(x);
    }
    t->nlarger = used;
}

/* Evicts short words with many ids. */
static void drop_many(struct word_table *t)
{
    t->nsmall = small_drop(&t->small, IDS_MANY);
    empty_larger(t, false);
    empty_arena(&t->many);
}

/* Evicts all longer words. */
static void drop_longer(struct word_table *t)
{
    close_slots(t);
    open_slots(t, LONGER_SLOTS);
    madvise(t->longer.at, t->longer.most * sizeof(*t->longer.at), MADV_DONTNEED);
    empty_arena(&t->longer);
    t->nlonger = 0;
}

/* Whether so many more bytes are within the bound; if not, longer words are evicted. */
static bool table_make_room(struct word_table *t, size_t more)
{
    bool fits = word_table_bytes(t) + more <= t->bound;
    if (!fits)
        drop_longer(t);
    return fits;
}

static void grow_slots(struct word_table *t)
{
    _Atomic uint64_t *old = t->slot;
    size_t n = t->slot_mask + 1, used = 0;
    open_slots(t, n * 2);
    for (size_t i = 0; i < n; i++)
        if (old[i])
            used += put_slot(t, old[i]);
    munmap((void *)old, n * sizeof(*old));
    t->nlonger = used;
}

static bool many_small(const struct word_table *t)
{
    return atomic_load_explicit(&t->nsmall, memory_order_relaxed) > small_limit(&t->small);
}

static bool many_larger(const struct word_table *t)
{
    size_t each = t->mask + 1 < t->most ? FILL : 2;
    return atomic_load_explicit(&t->nlarger, memory_order_relaxed) > each * (t->mask + 1);
}

static bool many_longer(const struct word_table *t)
{
    return atomic_load_explicit(&t->nlonger, memory_order_relaxed) > t->slot_mask / 2;
}

static bool is_full(const struct arena32 *a)
{
    return atomic_load_explicit(&a->next, memory_order_relaxed) > a->limit;
}

static void tidy(struct word_table *t)
{
    if (is_full(&t->many))
        drop_many(t);
    if (is_full(&t->longer))
        drop_longer(t);
    if (many_longer(t) && table_make_room(t, slot_bytes(t)))
        grow_slots(t);
    if (many_small(t)) {
        size_t more = small_growth(&t->small);
        if (more)
            table_make_room(t, more);
        t->nsmall = more ? small_grow(&t->small) : small_thin(&t->small);
    }
    if (many_larger(t) && t->mask + 1 < t->most) {
        table_make_room(t, bucket_bytes(larger(t)) - bucket_bytes(t->mask));
        table_grow(t);
    } else if (many_larger(t)) {
        empty_larger(t, true);
    }
    set_limit(t);
}

void word_table_enter(struct word_user *u)
{
    struct rwlock *g = &u->t->gate;
    if (__builtin_expect(rwlock_enter(g, &u->guest), 0)) {
        tidy(u->t);
        rwlock_end_exclusive(g, &u->guest);
    }
}

static void table_add(_Atomic size_t *sum, size_t n)
{
    if (n)
        atomic_fetch_add_explicit(sum, n, memory_order_relaxed);
}

void word_table_leave(struct word_user *u)
{
    struct word_table *t = u->t;
    if (u->nsmall | u->nlarger | u->nlonger) {
        table_add(&t->nsmall, u->nsmall);
        table_add(&t->nlarger, u->nlarger);
        table_add(&t->nlonger, u->nlonger);
        u->nsmall = u->nlarger = u->nlonger = 0;
        if (many_small(t) || many_larger(t) || many_longer(t))
            rwlock_request_exclusive(&t->gate);
    }
    rwlock_leave(&u->guest);
}

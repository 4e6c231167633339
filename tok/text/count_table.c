/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/text/count_table.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/bytes.h"
#include "base/core/mem.h"

enum { INLINE = 23, AHEAD = 16, FIRST = 1 << 12 };

#define LONG_MARK ((uint64_t)255 << 56)

static void new_slots(struct learn_table *t, size_t n)
{
    char *p = t->memory = mem_new(n + 2, sizeof(*t->slot));
    mem_large_pages(p, n * sizeof(*t->slot));
    t->slot = (struct learn_slot *)(void *)(p + (-(uintptr_t)p & 63));
    t->mask = n - 1;
    t->shift = 64 - __builtin_ctzll(n);
}

void learn_table_init(struct learn_table *t)
{
    *t = (struct learn_table){0};
    new_slots(t, FIRST);
}

void learn_table_finish(struct learn_table *t)
{
    free(t->memory);
    buf_finish(&t->store);
    *t = (struct learn_table){0};
}

void learn_table_clear(struct learn_table *t)
{
    learn_table_finish(t);
    learn_table_init(t);
}

uint64_t learn_table_bytes(const struct learn_table *t)
{
    return (t->mask + 1) * sizeof(*t->slot) + t->store.cap;
}

static inline uint64_t count_table_mix(const uint64_t key[3])
{
    __uint128_t m = (__uint128_t)(key[0] ^ 0x9e3779b97f4a7c15u) *
                    (key[1] ^ (key[2] << 23 | key[2] >> 41) ^ 0xd6e8feb86659fd93u);
    uint64_t h = (uint64_t)m ^ (uint64_t)(m >> 64);
    return (h ^ h >> 29) * 0xbf58476d1ce4e5b9u;
}

static uint64_t hash_long(const char *p, size_t n)
{
    uint64_t h = n;
    for (size_t i = 0; i + 8 <= n; i += 8)
        h = (h ^ load_u64(p + i)) * 0x9fb21c651e98df25u, h ^= h >> 32;
    uint64_t tail = load_u64(p + n - 8);
    return (h ^ tail) * 0x9fb21c651e98df25u;
}

static void make_key(const char *p, size_t n, uint64_t key[3])
{
    static const unsigned char ones[48] = {255, 255, 255, 255, 255, 255, 255, 255,
                                           255, 255, 255, 255, 255, 255, 255, 255,
                                           255, 255, 255, 255, 255, 255, 255, 255};
    if (n > INLINE) {
        key[0] = hash_long(p, n);
        key[1] = 0;
        key[2] = LONG_MARK | n;
        return;
    }
    for (size_t i = 0; i < 3; i++)
        key[i] = load_u64(p + 8 * i) & load_u64(ones + 24 - n + 8 * i);
    key[2] |= (uint64_t)n << 56;
}

/* The position of a long word is not part of its identity. */
static inline bool count_table_equal(const struct learn_table *t, const struct learn_slot *s,
                                     const uint64_t key[3], const char *p)
{
    if (s->key[0] != key[0] || s->key[2] != key[2])
        return false;
    if (key[2] >> 56 <= INLINE)
        return s->key[1] == key[1];
    return memcmp(t->store.data + s->key[1], p, key[2] & ~LONG_MARK) == 0;
}

static void count_table_put(struct learn_table *t, size_t at, const uint64_t key[3], const char *p,
                            uint64_t count)
{
    for (;; at = (at + 1) & t->mask) {
        struct learn_slot *s = &t->slot[at];
        if (s->count && !count_table_equal(t, s, key, p))
            continue;
        if (!s->count) {
            memcpy(s->key, key, sizeof(s->key));
            t->used++;
            if (key[2] >> 56 > INLINE) {
                s->key[1] = t->store.len;
                buf_add(&t->store, p, key[2] & ~LONG_MARK);
            }
        }
        s->count += count;
        return;
    }
}

static inline uint64_t hash(const uint64_t key[3])
{
    uint64_t k[3] = {key[0], key[2] >> 56 > INLINE ? 0 : key[1], key[2]};
    return count_table_mix(k);
}

static inline size_t count_table_place(const struct learn_table *t, const uint64_t key[3])
{
    return hash(key) >> t->shift;
}

uint64_t learn_slot_hash(const struct learn_slot *s)
{
    return hash(s->key);
}

uint64_t learn_word_hash(const char *p, size_t n)
{
    uint64_t key[3];
    make_key(p, n, key);
    return hash(key);
}

static void count_table_grow(struct learn_table *t)
{
    struct learn_slot *old = t->slot;
    void *memory = t->memory;
    size_t n = t->mask + 1;
    new_slots(t, 2 * n);
    for (size_t i = 0; i < n; i++) {
        if (!old[i].count)
            continue;
        size_t at = count_table_place(t, old[i].key);
        while (t->slot[at].count)
            at = (at + 1) & t->mask;
        t->slot[at] = old[i];
    }
    free(memory);
}

static inline void need_room(struct learn_table *t, size_t n)
{
    while (t->used + n > (t->mask + 1) / 4 * 3)
        count_table_grow(t);
}

void learn_table_add(struct learn_table *t, const char *text, const uint32_t *start, size_t n,
                     uint64_t count)
{
    uint64_t key[AHEAD][3];
    size_t at[AHEAD];
    for (size_t i = 0; i < n; i += AHEAD) {
        size_t some = n - i < AHEAD ? n - i : AHEAD;
        need_room(t, some);
        for (size_t k = 0; k < some; k++) {
            const char *p = text + start[i + k];
            make_key(p, start[i + k + 1] - start[i + k], key[k]);
            at[k] = count_table_place(t, key[k]);
            __builtin_prefetch(&t->slot[at[k]], 1);
        }
        for (size_t k = 0; k < some; k++)
            if (key[k][2])
                count_table_put(t, at[k], key[k], text + start[i + k], count);
    }
}

const char *learn_slot_text(const struct learn_table *t, const struct learn_slot *s, size_t *ret_n)
{
    if (s->key[2] >> 56 > INLINE) {
        *ret_n = s->key[2] & ~LONG_MARK;
        return t->store.data + s->key[1];
    }
    *ret_n = s->key[2] >> 56;
    return (const char *)s->key;
}

void learn_table_join(struct learn_table *t, const struct learn_table *from)
{
    for (size_t i = 0; i <= from->mask; i++) {
        const struct learn_slot *s = &from->slot[i];
        size_t n;
        if (!s->count)
            continue;
        need_room(t, 1);
        count_table_put(t, count_table_place(t, s->key), s->key, learn_slot_text(from, s, &n),
                        s->count);
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_WORDS_H
#define TOK_WORDS_H

/*
 * A map from byte strings to ids, built once and then only read (so by any number of threads).
 * Open addressing; a slot holds the first and the last eight bytes of its word, which is all of a
 * word of up to sixteen, so that a look-up of a usual word touches one line of memory. The words
 * themselves are the caller's and must outlive the map.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct words_slot {
    uint64_t head, tail; /* see words_key */
    const char *text;    /* NULL: free */
    uint32_t length;
    int32_t id;
};

struct words {
    struct words_slot *slot;
    size_t mask; /* slots - 1 */
    size_t n;
};

struct words_key {
    uint64_t head, tail, hash;
};

/* Room for n words at most. */
void words_init(struct words *w, size_t n);

/* False, and nothing changes, when the word is there already. Words are shorter than 2^32 bytes. */
bool words_add(struct words *w, const char *text, size_t n, int32_t id);
bool words_add_key(struct words *w, struct words_key k, const char *text, size_t n, int32_t id);
void words_finish(struct words *w);

static inline uint64_t words_load(const char *p, size_t n)
{
    uint64_t v = 0;
    uint32_t a, b;
    if (n >= 8) {
        memcpy(&v, p, 8);
    } else if (n >= 4) {
        memcpy(&a, p, 4);
        memcpy(&b, p + n - 4, 4);
        v = a | (uint64_t)b << 32;
    } else if (n) {
        const unsigned char *s = (const unsigned char *)p;
        v = s[0] | (uint64_t)s[n / 2] << 8 | (uint64_t)s[n - 1] << 16;
    }
    return v;
}

static inline uint64_t words_mix(uint64_t a, uint64_t b)
{
    __uint128_t m = (__uint128_t)a * b;
    return (uint64_t)m ^ (uint64_t)(m >> 64);
}

/* head and tail, with the length, tell all words of up to 16 bytes apart; hash covers
 * every byte. */
static inline struct words_key words_key(const char *p, size_t n)
{
    struct words_key k;
    k.head = words_load(p, n);
    k.tail = n > 8 ? words_load(p + n - 8, 8) : 0;
    k.hash = words_mix(k.head ^ 0x9E3779B97F4A7C15u, k.tail ^ 0xD1B54A32D192ED03u ^ (n << 56));
    for (size_t i = 8; n > 16 && i < n - 8; i += 8)
        k.hash = words_mix(k.hash ^ words_load(p + i, n - i), 0x9E3779B97F4A7C15u);
    return k;
}

/* The slot of the word of key k, or the free one where it would be. */
static inline struct words_slot *words_slot(const struct words *w, struct words_key k,
                                            const char *p, size_t n)
{
    for (size_t i = k.hash & w->mask;; i = (i + 1) & w->mask) {
        struct words_slot *s = &w->slot[i];
        if (!s->text || (s->head == k.head && s->tail == k.tail && s->length == n &&
                         (n <= 16 || memcmp(s->text, p, n) == 0)))
            return s;
    }
}

/* For who looks up many: the key first, and the words themselves a few words later. */
static inline void words_prefetch(const struct words *w, struct words_key k)
{
    __builtin_prefetch(&w->slot[k.hash & w->mask]);
}

static inline int32_t words_find_key(const struct words *w, struct words_key k, const char *p,
                                     size_t n)
{
    const struct words_slot *s = words_slot(w, k, p, n);
    return s->text ? s->id : -1;
}

/* The id, or -1. */
static inline int32_t words_find(const struct words *w, const char *p, size_t n)
{
    return words_find_key(w, words_key(p, n), p, n);
}

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_TEXT_STRING_MAP_H
#define TOK_TEXT_STRING_MAP_H

/*
 * A map from byte strings to ids, built once and then only read (so by any number of threads).
 * Open addressing. A slot holds a key of up to seven bytes itself, so that its lookup touches one
 * cache line, or the hash of a longer one. The caller owns the strings, which must outlive the map.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct string_map_slot {
    uint64_t key; /* see string_key */
    uint32_t at;  /* 1 + its index in `text`; 0: free */
    int32_t id;
};

/* A run of bytes, often without a NUL after it. */
struct string_ref {
    const char *p;
    size_t n;
};

struct string_map {
    struct string_map_slot *slot;
    size_t mask;             /* slots - 1 */
    struct string_ref *text; /* in the order in which they were added */
    size_t n, room;
};

struct string_key {
    uint64_t key, hash;
};

/* Expects n strings. */
void string_map_init(struct string_map *w, size_t n);

/* False, and nothing changes, if the string is in the map already. */
bool string_map_add(struct string_map *w, const char *text, size_t n, int32_t id);
bool string_map_add_key(struct string_map *w, struct string_key k, const char *text, size_t n,
                        int32_t id);
void string_map_finish(struct string_map *w);

/* Up to eight bytes of the text, padded with zeros. */
static inline uint64_t string_load(const char *p, size_t n)
{
    uint64_t v = 0;
    uint32_t a, b;
    if (n >= 8) {
        memcpy(&v, p, 8);
    } else if (n >= 4) {
        memcpy(&a, p, 4);
        memcpy(&b, p + n - 4, 4);
        v = a | (uint64_t)b >> (8 * (8 - n)) << 32;
    } else if (n) {
        const unsigned char *s = (const unsigned char *)p;
        v = s[0] | (uint64_t)s[n / 2] << (n / 2 * 8) | (uint64_t)s[n - 1] << (n - 1) * 8;
    }
    return v;
}

/* b is a constant: if it came from the text as well, an input could cancel the other factor. */
static inline uint64_t string_mix(uint64_t a, uint64_t b)
{
    __uint128_t m = (__uint128_t)a * b;
    return (uint64_t)m ^ (uint64_t)(m >> 64);
}

/* Up to STRING_SHORT bytes the key is the string: its bytes, and its length above them. The key of
 * a longer one is above all of these and depends on every byte, as the hash does. */
enum { STRING_SHORT = 7 };

static inline struct string_key string_key_of(uint64_t head, const char *p, size_t n)
{
    uint64_t tail = n > 8 ? string_load(p + n - 8, 8) : 0;
    uint64_t hash = string_mix(head ^ (n << 56), 0xD1B54A32D192ED03u);
    hash = string_mix(hash ^ tail, 0x9E3779B97F4A7C15u);
    for (size_t i = 8; n > 16 && i < n - 8; i += 8)
        hash = string_mix(hash ^ string_load(p + i, n - i), 0x9E3779B97F4A7C15u);
    return (struct string_key){n <= STRING_SHORT ? head | n << 56 : hash | (uint64_t)1 << 63, hash};
}

static inline struct string_key string_key(const char *p, size_t n)
{
    return string_key_of(string_load(p, n), p, n);
}

/* The same without a branch on the length; eight bytes at p must be readable. */
static inline struct string_key string_key_wide(const char *p, size_t n)
{
    uint64_t all = string_load(p, 8);
    return string_key_of(n < 8 ? all & ~(UINT64_MAX << 8 * n) : all, p, n);
}

static inline bool string_is(struct string_ref t, const char *p, size_t n)
{
    return t.n == n && memcmp(t.p, p, n) == 0;
}

/* The slot of the string with key k, or the free slot where it belongs. */
static inline struct string_map_slot *string_map_slot(const struct string_map *w,
                                                      struct string_key k, const char *p, size_t n)
{
    for (size_t i = k.hash & w->mask;; i = (i + 1) & w->mask) {
        struct string_map_slot *s = &w->slot[i];
        if (!s->at ||
            (s->key == k.key && (n <= STRING_SHORT || string_is(w->text[s->at - 1], p, n))))
            return s;
    }
}

/* For many lookups: prefetch by key now, look up a few strings later. */
static inline void string_map_prefetch(const struct string_map *w, struct string_key k)
{
    __builtin_prefetch(&w->slot[k.hash & w->mask]);
}

static inline int32_t string_map_find_key(const struct string_map *w, struct string_key k,
                                          const char *p, size_t n)
{
    const struct string_map_slot *s = string_map_slot(w, k, p, n);
    return s->at ? s->id : -1;
}

/* The id, or -1. */
static inline int32_t string_map_find(const struct string_map *w, const char *p, size_t n)
{
    return string_map_find_key(w, string_key(p, n), p, n);
}

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#include "dataset/index/mt19937.h"

enum { WORDS = MT_WORDS, MIDDLE = 397, AHEAD = 128 };

void mt_seed(struct mt19937 *m, uint32_t seed)
{
    uint32_t x = seed;
    for (uint32_t i = 0; i < WORDS; i++) {
        m->key[i] = x;
        x = 1812433253u * (x ^ (x >> 30)) + i + 1;
    }
    m->pos = WORDS;
}

static inline uint32_t twist(uint32_t high, uint32_t low, uint32_t far)
{
    uint32_t y = (high & 0x80000000u) | (low & 0x7fffffffu);
    return far ^ (y >> 1) ^ (-(y & 1) & 0x9908b0dfu);
}

/* The next state, and its tempered words; in loops that compilers vectorize. */
static void refill(struct mt19937 *m)
{
    uint32_t *k = m->key;
    for (int i = 0; i < WORDS - MIDDLE; i++)
        k[i] = twist(k[i], k[i + 1], k[i + MIDDLE]);
    for (int i = WORDS - MIDDLE; i < WORDS - 1; i++)
        k[i] = twist(k[i], k[i + 1], k[i + MIDDLE - WORDS]);
    k[WORDS - 1] = twist(k[WORDS - 1], k[0], k[MIDDLE - 1]);
    for (int i = 0; i < WORDS; i++) {
        uint32_t y = k[i];
        y ^= y >> 11;
        y ^= (y << 7) & 0x9d2c5680u;
        y ^= (y << 15) & 0xefc60000u;
        m->word[i] = y ^ (y >> 18);
    }
    m->pos = 0;
}

uint32_t mt_u32(struct mt19937 *m)
{
    if (m->pos == WORDS)
        refill(m);
    return m->word[m->pos++];
}

uint64_t mt_interval(struct mt19937 *m, uint64_t max)
{
    if (max == 0)
        return 0;
    uint64_t mask = UINT64_MAX >> __builtin_clzll(max), v;
    do {
        v = mt_u32(m);
        if (max > UINT32_MAX)
            v = v << 32 | mt_u32(m);
        v &= mask;
    } while (v > max);
    return v;
}

/*
 * mt_interval(max), mt_interval(max - 1), ... n of them, max >= n. A rejected word is overwritten
 * by the next without a branch, which would be mispredicted: up to half of the words are rejected.
 */
static void intervals(struct mt19937 *m, uint64_t max, uint64_t n, uint64_t *ret)
{
    uint64_t k = 0;
    while (k < n && max - k > UINT32_MAX) {
        ret[k] = mt_interval(m, max - k);
        k++;
    }
    while (k < n) {
        uint32_t top = (uint32_t)(max - k), mask = UINT32_MAX >> __builtin_clz(top);
        uint64_t same = top - (mask >> 1), end = n - k < same ? n : k + same; /* of this mask */
        while (k < end) {
            if (m->pos == WORDS)
                refill(m);
            uint32_t pos = m->pos;
            while (k < end && pos < WORDS) {
                uint32_t v = m->word[pos++] & mask;
                ret[k] = v;
                uint32_t fits = v <= top;
                k += fits;
                top -= fits;
            }
            m->pos = pos;
        }
    }
}

/*
 * How many of the words are drawn for top, top - 1, ... A word that is at most `top` may still
 * exceed the bound when its turn comes: false if one may.
 */
static bool count_drawn(const uint32_t *word, uint32_t top, uint32_t *ret)
{
    uint32_t mask = UINT32_MAX >> __builtin_clz(top), least = 0, most = 0;
    if (top - (mask >> 1) <= WORDS)
        return false; /* not all of this mask */
    for (int i = 0; i < WORDS; i++) {
        uint32_t v = word[i] & mask;
        least += v <= top - WORDS;
        most += v <= top;
    }
    *ret = least;
    return least == most;
}

void mt_skip(struct mt19937 *m, uint64_t n)
{
    uint64_t left = n > 1 ? n - 1 : 0;
    while (left > UINT32_MAX)
        mt_interval(m, left--);
    while (left) {
        uint32_t top = (uint32_t)left, drawn = 0;
        if (m->pos == WORDS)
            refill(m);
        if (m->pos == 0 && count_drawn(m->word, top, &drawn)) {
            left -= drawn;
            m->pos = WORDS;
        } else
            left -= (m->word[m->pos++] & (UINT32_MAX >> __builtin_clz(top))) <= top;
    }
}

static inline uint64_t mt19937_smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/*
 * Fisher-Yates from the top. Draws do not depend on the array, so a block of draws runs ahead of
 * the swaps and prefetches the cache lines that the next block needs: into the second-level cache,
 * which allows more outstanding misses than the first.
 */
#define SHUFFLE(name, type)                                                                        \
    void name(struct mt19937 *m, type *a, uint64_t n)                                              \
    {                                                                                              \
        uint64_t block[2][AHEAD], *now = block[0], *next = block[1];                               \
        uint64_t top = n, k = n > 1 ? mt19937_smaller(n - 1, AHEAD) : 0;                           \
        if (k)                                                                                     \
            intervals(m, top - 1, k, now);                                                         \
        while (k) {                                                                                \
            uint64_t left = top - 1 - k, ahead = mt19937_smaller(left, AHEAD);                     \
            if (ahead)                                                                             \
                intervals(m, left, ahead, next);                                                   \
            for (uint64_t i = 0; i < k; i++) {                                                     \
                if (i < ahead)                                                                     \
                    __builtin_prefetch(&a[next[i]], 1, 2);                                         \
                type t = a[top - 1 - i];                                                           \
                a[top - 1 - i] = a[now[i]];                                                        \
                a[now[i]] = t;                                                                     \
            }                                                                                      \
            top -= k;                                                                              \
            k = ahead;                                                                             \
            uint64_t *was = now;                                                                   \
            now = next;                                                                            \
            next = was;                                                                            \
        }                                                                                          \
    }

SHUFFLE(mt_shuffle32, uint32_t)
SHUFFLE(mt_shuffle64, uint64_t)

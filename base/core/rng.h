/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_CORE_RNG_H
#define BASE_CORE_RNG_H

/*
 * Random numbers as functions of (seed, purpose, index): Philox4x32-10 (Salmon et al., "Parallel
 * random numbers: as easy as 1, 2, 3", SC11; bit-equal to Random123's philox4x32). There is no
 * state, so values do not depend on ranks, threads or restarts. The counter is
 * {index low, index high, sub, purpose}; the key is the 64-bit seed.
 */

#include <stdint.h>

enum rng_purpose {
    RNG_INIT = 1,
    RNG_DROPOUT = 2,
    RNG_SAMPLE = 3,
    RNG_TEST = 4,
    RNG_ORDER = 5,
    RNG_FIM = 6,
    RNG_ROUND = 7,
    RNG_NOISE = 8
};

struct rng4 {
    uint32_t v[4];
};

/*
 * The bare block function. Ten rounds are the authors' choice; seven are the fewest that pass all
 * tests of BigCrush, and are for what draws a number for every element of a tensor.
 */
static inline struct rng4 philox4x32_rounds(const uint32_t ctr[4], const uint32_t key[2],
                                            int rounds)
{
    uint32_t c0 = ctr[0], c1 = ctr[1], c2 = ctr[2], c3 = ctr[3], k0 = key[0], k1 = key[1];
    for (int round = 0; round < rounds; round++) {
        uint64_t p0 = (uint64_t)0xD2511F53u * c0;
        uint64_t p1 = (uint64_t)0xCD9E8D57u * c2;
        c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
        c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c1 = (uint32_t)p1;
        c3 = (uint32_t)p0;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    return (struct rng4){{c0, c1, c2, c3}};
}

static inline struct rng4 philox4x32(const uint32_t ctr[4], const uint32_t key[2])
{
    return philox4x32_rounds(ctr, key, 10);
}

static inline struct rng4 rng_block(uint64_t seed, uint32_t purpose, uint32_t sub, uint64_t index)
{
    const uint32_t ctr[4] = {(uint32_t)index, (uint32_t)(index >> 32), sub, purpose};
    const uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    return philox4x32(ctr, key);
}

/* 24 random bits as a float in [0, 1). */
static inline float rng_unit(uint32_t u)
{
    return (float)(u >> 8) * 0x1p-24f;
}

/* 53 random bits as a double in [0, 1). */
double rng_uniform(uint64_t seed, uint32_t purpose, uint32_t sub, uint64_t index);

/*
 * Standard normal numbers index .. index + n - 1 of the stream (seed, purpose, sub), by Box and
 * Muller in double: element i is made from block i / 2, so any range gives the same numbers.
 */
void rng_normal(uint64_t seed, uint32_t purpose, uint32_t sub, uint64_t index, uint64_t n,
                float *ret);

/* The same by the C library's functions alone: what rng_normal is held against. */
void rng_normal_plain(uint64_t seed, uint32_t purpose, uint32_t sub, uint64_t index, uint64_t n,
                      float *ret);

#endif

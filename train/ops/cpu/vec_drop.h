/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_OPS_CPU_VEC_DROP_H
#define TRAIN_OPS_CPU_VEC_DROP_H

/* The masks of struct dropout, 8 VL elements at a time. */

#include "train/ops/dropout.h"
#include "train/ops/cpu/vec.h"

enum { DROP_STEP = DROP_BLOCK * VL };

/*
 * Word w of VL blocks, block + offset of each lane, for w = 0 .. 3. The offsets are such that
 * turning the 4x4 blocks of lanes about puts the words into the order of the elements.
 */
static inline void drop_words(struct dropout d, uint64_t block, vi word[4])
{
    uint32_t low[VL];
    for (uint32_t l = 0; l < VL; l++)
        low[l] = (uint32_t)block + l % 4 * (VL / 4) + l / 4;
    vi c0 = vi_load(low), c1 = vi_set1((uint32_t)(block >> 32));
    vi c2 = vi_set1(d.sub), c3 = vi_set1(RNG_DROPOUT);
    uint64_t seed = drop_seed(d);
    uint32_t k0 = (uint32_t)seed, k1 = (uint32_t)(seed >> 32);
    for (int round = 0; round < DROP_ROUNDS; round++) {
        vi high0, low0, high1, low1;
        vi_mul(c0, vi_set1(0xD2511F53u), &high0, &low0);
        vi_mul(c2, vi_set1(0xCD9E8D57u), &high1, &low1);
        c0 = vi_xor(vi_xor(high1, c1), vi_set1(k0));
        c2 = vi_xor(vi_xor(high0, c3), vi_set1(k1));
        c1 = low1;
        c3 = low0;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    word[0] = c0;
    word[1] = c1;
    word[2] = c2;
    word[3] = c3;
}

/* Factors of the DROP_STEP elements of VL blocks. */
static inline void drop_step(struct dropout d, uint64_t block, float *ret)
{
    const uint32_t threshold = drop_threshold(d), most = (1 << DROP_BITS) - 1;
    const float scale = (float)drop_scale(d);
    if ((uint32_t)block > UINT32_MAX - VL) { /* the low counter word would run over */
        for (int b = 0; b < VL; b++) {
            struct rng4 random = drop_random(d, block + (uint64_t)b);
            for (int i = 0; i < DROP_BLOCK; i++)
                *ret++ = drop_bits(random, i) >= threshold ? scale : 0;
        }
        return;
    }
    vi word[4];
    vf f[4];
    float half[4 * VL];
    drop_words(d, block, word);
    for (int h = 0; h < 2; h++) { /* elements 0 .. 3 of all blocks, and 4 .. 7 */
        for (int w = 0; w < 4; w++)
            f[w] = vi_where_not_below(vi_and(word[w], vi_set1(most << 16 * h)),
                                      vi_set1(threshold << 16 * h), v_set1(scale));
        v_transpose4(f);
        for (int w = 0; w < 4; w++)
            v_store(half + w * VL, f[w]);
        for (int b = 0; b < VL; b++)
            memcpy(ret + b * DROP_BLOCK + h * 4, half + b * 4, 4 * sizeof(*ret));
    }
}

/*
 * What columns col .. col + n - 1 of a row of `width` are multiplied by: 0 or 1 / (1 - p). Only for
 * p > 0; `row` is global.
 */
static inline void drop_factors(struct dropout d, uint64_t row, int64_t width, int64_t col,
                                int64_t n, float *ret)
{
    float step[DROP_STEP];
    int64_t skip = col % DROP_BLOCK;
    for (uint64_t block = drop_block(row, col, width); n > 0; block += VL) {
        int64_t have = DROP_STEP - skip < n ? DROP_STEP - skip : n;
        if (have == DROP_STEP) {
            drop_step(d, block, ret);
        } else {
            drop_step(d, block, step);
            memcpy(ret, step + skip, (size_t)have * sizeof(*ret));
        }
        ret += have;
        n -= have;
        skip = 0;
    }
}

#endif

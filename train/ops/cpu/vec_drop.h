/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_OPS_CPU_VEC_DROP_H
#define TRAIN_OPS_CPU_VEC_DROP_H

/* The masks of struct dropout, 4 VL elements at a time. */

#include "train/ops/dropout.h"
#include "train/ops/cpu/vec.h"

enum { DROP_STEP = 4 * VL };

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
    for (int round = 0; round < 10; round++) {
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

/* Factors of elements 4 block .. 4 block + DROP_STEP - 1. */
static inline void drop_step(struct dropout d, uint64_t block, float *ret)
{
    if ((uint32_t)block > UINT32_MAX - VL) { /* the low counter word would run over */
        for (int i = 0; i < DROP_STEP; i++)
            ret[i] = (float)drop_factor_at(d, 4 * block + (uint64_t)i);
        return;
    }
    vi word[4];
    vf f[4];
    drop_words(d, block, word);
    for (int w = 0; w < 4; w++)
        f[w] =
            vi_where_not_below(word[w], vi_set1(drop_threshold(d)), v_set1((float)drop_scale(d)));
    v_transpose4(f);
    for (int w = 0; w < 4; w++)
        v_store(ret + w * VL, f[w]);
}

/* What elements e .. e + n - 1 are multiplied by: 0 or 1 / (1 - p). Only for p > 0. */
static inline void drop_factors(struct dropout d, uint64_t e, int64_t n, float *ret)
{
    float step[DROP_STEP];
    int64_t skip = (int64_t)(e % 4);
    for (uint64_t block = e / 4; n > 0; block += DROP_STEP / 4) {
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

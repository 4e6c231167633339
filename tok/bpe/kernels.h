/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_BPE_KERNELS_H
#define TOK_BPE_KERNELS_H

/*
 * The loops of this module that work on a block of text and are written for several processors, as
 * in tok/text/kernels.h: twins may stop at different positions, but find the same up to there.
 * tests/tok/test_kernels.c runs each entry against its twin. (split_point.c and merge_avx512.c
 * query the processor themselves: they are inlined into the loop over pre-tokens.)
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/core/simd.h"
#include "tok/bpe/split_point4.h"

/* split_point4_find. */
typedef size_t split_point4_fn(const struct split_point4 *t, const uint64_t *plain,
                               const char *text, size_t at, size_t n, uint32_t *start, size_t *k);

/* cut_ascii, after a byte of ASCII. */
typedef size_t split_ascii_fn(const unsigned char cut[128][16], const bool plain[128],
                              const char *text, size_t at, size_t n, uint32_t *start, size_t *k);

struct bpe_kernels {
    split_point4_fn *split_point4;
    split_ascii_fn *split_ascii;
};

extern const struct bpe_kernels bpe_kernels[SIMD_LEVELS];

split_point4_fn split_point4_find_plain, split_point4_find_avx512;
split_ascii_fn split_ascii_plain, split_ascii_avx512;

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/bpe/kernels.h"

const struct bpe_kernels bpe_kernels[SIMD_LEVELS] = {
    [SIMD_PLAIN] = {split_point4_find_plain, split_ascii_plain},
#ifdef __x86_64__
    [SIMD_AVX2] = {split_point4_find_plain, split_ascii_plain},
    [SIMD_AVX512] = {split_point4_find_avx512, split_ascii_plain},
    [SIMD_AVX512_BYTES] = {split_point4_find_avx512, split_ascii_avx512},
#endif
};

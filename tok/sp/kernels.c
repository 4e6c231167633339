/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/sp/kernels.h"

const struct sp_kernels sp_kernels[SIMD_LEVELS] = {
    [SIMD_PLAIN] = {unigram_spread_plain, unigram_number_plain, unigram_paths_plain},
#ifdef __x86_64__
    [SIMD_AVX2] = {unigram_spread_plain, unigram_number_plain, unigram_paths_plain},
    [SIMD_AVX512] = {unigram_spread_avx512, unigram_number_avx512, unigram_paths_avx512},
    [SIMD_AVX512_BYTES] = {unigram_spread_avx512, unigram_number_avx512, unigram_paths_avx512},
#endif
};

/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/text/kernels.h"

const struct text_kernels text_kernels[SIMD_LEVELS] = {
    [SIMD_PLAIN] = {aho_corasick_walk_plain, id_bytes_set_plain, id_bytes_put_plain,
                    pair_find_skip_plain},
#ifdef __x86_64__
    [SIMD_AVX2] = {aho_corasick_walk_plain, id_bytes_set_plain, id_bytes_put_plain,
                   pair_find_skip_avx2},
    [SIMD_AVX512] = {aho_corasick_walk_avx512, id_bytes_set_plain, id_bytes_put_plain,
                     pair_find_skip_avx2},
    [SIMD_AVX512_BYTES] = {aho_corasick_walk_avx512, id_bytes_set_avx512, id_bytes_put_avx512,
                           pair_find_skip_avx2},
#endif
};

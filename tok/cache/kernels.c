/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/cache/kernels.h"

const struct cache_kernels cache_kernels[SIMD_LEVELS] = {
    [SIMD_PLAIN] = {local_cache_find_plain, ids_unpack_plain},
#ifdef __x86_64__
    [SIMD_AVX2] = {local_cache_find_plain, ids_unpack_plain},
    [SIMD_AVX512] = {local_cache_find_avx512, ids_unpack_avx512},
    [SIMD_AVX512_BYTES] = {local_cache_find_avx512, ids_unpack_avx512},
#endif
};

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_CORE_SIMD_H
#define BASE_CORE_SIMD_H

/*
 * Attributes for functions that are compiled for certain processors, and the intrinsics. Call such
 * a function only where the test of base/core/cpu.h named above its attribute is true.
 *
 *     AVX512 static void sums(...)     a function
 *     AVX512_INLINE __m512i sum(...)   always inlined into such functions
 */

#include "base/core/cpu.h"

#ifdef __x86_64__
#include <immintrin.h>

/* cpu_avx2 */
#define AVX2 __attribute__((target("avx2")))

/* cpu_avx512 */
#define AVX512 __attribute__((target("avx512f,avx512dq,avx512bw,avx512vl,bmi,bmi2,popcnt")))
#define AVX512_INLINE AVX512 static inline __attribute__((always_inline))

/* cpu_avx512_bytes */
#define AVX512_BYTES                                                                               \
    __attribute__((                                                                                \
        target("avx512f,avx512dq,avx512bw,avx512vl,avx512vbmi,avx512vbmi2,bmi,bmi2,popcnt")))
#define AVX512_BYTES_INLINE AVX512_BYTES static inline __attribute__((always_inline))
#endif

/*
 * Levels of kernels: a module's table of functions has a row for each, from plain C up. Where a
 * level has nothing better, its row repeats the entry of the level below. A caller takes a row that
 * the processor has: up to simd_best().
 */
enum simd_level { SIMD_PLAIN, SIMD_AVX2, SIMD_AVX512, SIMD_AVX512_BYTES, SIMD_LEVELS };

static inline enum simd_level simd_best(void)
{
    return cpu_avx512_bytes() ? SIMD_AVX512_BYTES
           : cpu_avx512()     ? SIMD_AVX512
           : cpu_avx2()       ? SIMD_AVX2
                              : SIMD_PLAIN;
}

#endif

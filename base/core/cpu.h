/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_CORE_CPU_H
#define BASE_CORE_CPU_H

/* Processor features, to be tested before calling code that is compiled for them. */

#include <stdbool.h>

/* The part of AVX-512 that all server processors since 2017 have: F, BW, DQ, VL; and POPCNT, BMI,
 * BMI2. */
static inline bool cpu_avx512(void)
{
#ifdef __x86_64__
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("popcnt") && __builtin_cpu_supports("bmi") &&
           __builtin_cpu_supports("bmi2");
#else
    return false;
#endif
}

/* With byte permutes and compression, VBMI and VBMI2: since Ice Lake and Zen 4. */
static inline bool cpu_avx512_bytes(void)
{
#ifdef __x86_64__
    return cpu_avx512() && __builtin_cpu_supports("avx512vbmi") &&
           __builtin_cpu_supports("avx512vbmi2");
#else
    return false;
#endif
}

static inline bool cpu_avx2(void)
{
#ifdef __x86_64__
    return __builtin_cpu_supports("avx2");
#else
    return false;
#endif
}

/*
 * AVX2 and F16C, conversions between float and half. Processors since Haswell and Zen have both,
 * and FMA, which is tested because Clang 14 cannot test for F16C.
 */
static inline bool cpu_avx2_halves(void)
{
#ifdef __x86_64__
    return cpu_avx2() && __builtin_cpu_supports("fma");
#else
    return false;
#endif
}

#endif

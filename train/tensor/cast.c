/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>
#ifdef __x86_64__
#include <immintrin.h>
#endif

#include "base/core/cpu.h"
#include "base/core/err.h"
#include "train/tensor/box.h"

/*
 * The loops over whole runs have neither branches nor calls, so that compilers vectorize them; GCC
 * only does so at -O3.
 */
#ifndef __clang__
#pragma GCC optimize("O3")
#endif

static inline float bits_float(uint32_t u)
{
    float f;
    memcpy(&f, &u, sizeof(f));
    return f;
}

static inline uint32_t float_bits(float f)
{
    uint32_t u;
    memcpy(&u, &f, sizeof(u));
    return u;
}

/* ---- one element: plain C, by way of double -------------------------------------------------- */

static float from_bf16(uint16_t h)
{
    return bits_float((uint32_t)h << 16);
}

static uint16_t to_bf16(float f)
{
    uint32_t u = float_bits(f);
    if ((u & 0x7fffffff) > 0x7f800000) /* keep a NaN one, and quiet */
        return (uint16_t)(u >> 16 | 0x40);
    return (uint16_t)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}

static float from_f16(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000) << 16, exp = h >> 10 & 31, man = h & 1023;
    if (exp == 31)
        return bits_float(sign | 0x7f800000 | man << 13);
    if (exp == 0) { /* subnormal: man x 2^-24 is exact */
        float f = (float)man * 0x1p-24f;
        return sign ? -f : f;
    }
    return bits_float(sign | (exp + 112) << 23 | man << 13);
}

static uint16_t to_f16(float f)
{
    uint32_t u = float_bits(f), sign = u >> 16 & 0x8000, abs = u & 0x7fffffff;
    if (abs > 0x7f800000) /* as processors do it: quiet, payload truncated */
        return (uint16_t)(sign | 0x7e00 | (u >> 13 & 0x3ff));
    if (abs >= 0x477ff000) /* 65520: half way between the largest number and 2^16 */
        return (uint16_t)(sign | 0x7c00);
    if (abs < 0x38800000) { /* below 2^-14: let the FPU round at the last bit, which is 2^-24 */
        float t = bits_float(abs) + 0.5f;
        return (uint16_t)(sign | (float_bits(t) - 0x3f000000));
    }
    abs += 0xfff + (abs >> 13 & 1);
    return (uint16_t)(sign | ((abs - 0x38000000) >> 13));
}

/*
 * A double becomes a float rounded to odd, so that the next rounding, to 16 bits, sees on which
 * side of a tie it was.
 */
static float odd_float(double d)
{
    float f = (float)d;
    double back = (double)f;
    uint32_t u = float_bits(f);
    if (back == d || d != d || (u & 0x7f800000) == 0x7f800000)
        return f;
    if (u & 1)
        return f;
    bool away = d > 0 ? back > d : back < d;
    return bits_float(away ? u - 1 : u + 1);
}

bool box_can_cast(enum dtype from, enum dtype to)
{
    return from == to || (dtype_is_float((int)from) && dtype_is_float((int)to));
}

static float half_to_float(uint16_t h, enum dtype t)
{
    switch (t) {
    case DTYPE_BF16:
        return from_bf16(h);
    case DTYPE_F16:
        return from_f16(h);
    case DTYPE_F32:
    case DTYPE_F64:
    case DTYPE_I32:
    case DTYPE_COUNT:
        break;
    }
    BUG("a cast from dtype %d", (int)t);
}

static uint16_t half_of_float(float f, enum dtype t)
{
    switch (t) {
    case DTYPE_BF16:
        return to_bf16(f);
    case DTYPE_F16:
        return to_f16(f);
    case DTYPE_F32:
    case DTYPE_F64:
    case DTYPE_I32:
    case DTYPE_COUNT:
        break;
    }
    BUG("a cast to dtype %d", (int)t);
}

static float load_float(const char *p, enum dtype t)
{
    float f;
    uint16_t h;
    if (t == DTYPE_F32) {
        memcpy(&f, p, sizeof(f));
        return f;
    }
    memcpy(&h, p, sizeof(h));
    return half_to_float(h, t);
}

static void store_float(char *p, enum dtype t, float f)
{
    if (t == DTYPE_F32) {
        memcpy(p, &f, sizeof(f));
        return;
    }
    uint16_t h = half_of_float(f, t);
    memcpy(p, &h, sizeof(h));
}

static double load(const char *p, enum dtype t)
{
    double d;
    if (t != DTYPE_F64)
        return (double)load_float(p, t);
    memcpy(&d, p, sizeof(d));
    return d;
}

static void store(char *p, enum dtype t, double d)
{
    if (t == DTYPE_F64)
        memcpy(p, &d, sizeof(d));
    else
        store_float(p, t, t == DTYPE_F32 ? (float)d : odd_float(d));
}

void box_cast_plain(void *to, enum dtype to_type, const void *from, enum dtype from_type, int64_t n)
{
    bool doubles = to_type == DTYPE_F64 || from_type == DTYPE_F64;
    const char *s = from;
    char *d = to;
    for (int64_t i = 0; i < n; i++) {
        if (doubles)
            store(d, to_type, load(s, from_type));
        else
            store_float(d, to_type, load_float(s, from_type));
        s += dtype_size(from_type);
        d += dtype_size(to_type);
    }
}

/* ---- whole runs ------------------------------------------------------------------------------ */

#define ALWAYS __attribute__((always_inline)) inline

/* Where a mask is all ones a, else b. */
static inline uint32_t cast_choose(uint32_t mask, uint32_t a, uint32_t b)
{
    return (a & mask) | (b & ~mask);
}

/* All ones where a is above b; both below 2^31, so that signed comparisons do. */
static inline uint32_t above(uint32_t a, uint32_t b)
{
    return (uint32_t) - (int32_t)((int32_t)a > (int32_t)b);
}

static ALWAYS void bf16_to_f32(char *restrict to, const char *restrict from, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        uint16_t h;
        memcpy(&h, from + 2 * i, 2);
        uint32_t u = (uint32_t)h << 16;
        memcpy(to + 4 * i, &u, 4);
    }
}

static ALWAYS void f32_to_bf16(char *restrict to, const char *restrict from, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        uint32_t u;
        memcpy(&u, from + 4 * i, 4);
        uint32_t nan = above(u & 0x7fffffff, 0x7f800000);
        uint32_t r = cast_choose(nan, u | 0x400000, u + 0x7fff + (u >> 16 & 1));
        uint16_t h = (uint16_t)(r >> 16);
        memcpy(to + 2 * i, &h, 2);
    }
}

static ALWAYS void f16_to_f32(char *restrict to, const char *restrict from, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        uint16_t h;
        memcpy(&h, from + 2 * i, 2);
        uint32_t abs = (uint32_t)(h & 0x7fff), u = (abs << 13) + 0x38000000;
        /* the largest exponent means infinity or NaN; 0 means no leading one, which is taken off */
        u += above(abs, 0x7bff) & 0x38000000;
        uint32_t small = float_bits(bits_float((abs << 13) + 0x38800000) - 0x1p-14f);
        u = cast_choose(above(0x400, abs), small, u);
        u |= (uint32_t)(h & 0x8000) << 16;
        memcpy(to + 4 * i, &u, 4);
    }
}

static ALWAYS void f32_to_f16(char *restrict to, const char *restrict from, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        uint32_t u;
        memcpy(&u, from + 4 * i, 4);
        uint32_t sign = u >> 16 & 0x8000, abs = u & 0x7fffffff;
        uint32_t normal = (abs + 0xfff + (abs >> 13 & 1) - 0x38000000) >> 13;
        uint32_t small = float_bits(bits_float(abs) + 0.5f) - 0x3f000000;
        uint32_t r = cast_choose(above(0x38800000, abs), small, normal);
        r = cast_choose(above(abs, 0x477fefff), 0x7c00, r);
        r = cast_choose(above(abs, 0x7f800000), 0x7e00 | (u >> 13 & 0x3ff), r);
        uint16_t h = (uint16_t)(sign | r);
        memcpy(to + 2 * i, &h, 2);
    }
}

/* All of them for any processor, and for one with AVX2. */
#define RUNS(suffix, target)                                                                       \
    target static void widen##suffix(char *to, const char *from, enum dtype type, int64_t n)       \
    {                                                                                              \
        BUG_ON(type != DTYPE_BF16 && type != DTYPE_F16, "a cast from %s", dtype_name(type));       \
        if (type == DTYPE_BF16)                                                                    \
            bf16_to_f32(to, from, n);                                                              \
        else                                                                                       \
            f16_to_f32(to, from, n);                                                               \
    }                                                                                              \
    target static void narrow##suffix(char *to, enum dtype type, const char *from, int64_t n)      \
    {                                                                                              \
        BUG_ON(type != DTYPE_BF16 && type != DTYPE_F16, "a cast to %s", dtype_name(type));         \
        if (type == DTYPE_BF16)                                                                    \
            f32_to_bf16(to, from, n);                                                              \
        else                                                                                       \
            f32_to_f16(to, from, n);                                                               \
    }

RUNS(_any, )

#ifdef __x86_64__
RUNS(_avx2, __attribute__((target("avx2"))))

__attribute__((target("avx2,f16c"))) static void f32_to_f16_f16c(char *to, const char *from,
                                                                 int64_t n)
{
    int64_t i = 0;
    for (; i + 8 <= n; i += 8)
        _mm_storeu_si128(
            (__m128i_u *)(void *)(to + 2 * i),
            _mm256_cvtps_ph(_mm256_loadu_ps((const float *)(const void *)(from + 4 * i)),
                            _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
    f32_to_f16(to + 2 * i, from + 4 * i, n - i);
}

static void to_f32(char *to, const char *from, enum dtype type, int64_t n)
{
    (__builtin_cpu_supports("avx2") ? widen_avx2 : widen_any)(to, from, type, n);
}

static void from_f32(char *to, enum dtype type, const char *from, int64_t n)
{
    if (type == DTYPE_F16 && cpu_avx2_halves())
        f32_to_f16_f16c(to, from, n);
    else
        (__builtin_cpu_supports("avx2") ? narrow_avx2 : narrow_any)(to, type, from, n);
}
#else
#define to_f32 widen_any
#define from_f32 narrow_any
#endif

/* The two types of 16 bits: every value of one is a float, so that is where it goes by. */
static void by_f32(char *to, enum dtype to_type, const char *from, enum dtype from_type, int64_t n)
{
    enum { RUN = 1024 };
    char part[RUN * 4];
    for (int64_t i = 0; i < n; i += RUN) {
        int64_t k = n - i < RUN ? n - i : RUN;
        to_f32(part, from + 2 * i, from_type, k);
        from_f32(to + 2 * i, to_type, part, k);
    }
}

void box_cast(void *to, enum dtype to_type, const void *from, enum dtype from_type, int64_t n)
{
    BUG_ON(!box_can_cast(from_type, to_type), "a cast from %s to %s", dtype_name(from_type),
           dtype_name(to_type));
    if (from_type == to_type) {
        if (n)
            memcpy(to, from, (size_t)n * dtype_size(to_type));
    } else if (from_type == DTYPE_F64 || to_type == DTYPE_F64) {
        box_cast_plain(to, to_type, from, from_type, n);
    } else if (to_type == DTYPE_F32) {
        to_f32(to, from, from_type, n);
    } else if (from_type == DTYPE_F32) {
        from_f32(to, to_type, from, n);
    } else {
        by_f32(to, to_type, from, from_type, n);
    }
}

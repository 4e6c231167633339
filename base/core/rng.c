/* SPDX-License-Identifier: Apache-2.0 */
#include "base/core/rng.h"

#include <math.h>

#include "base/core/cpu.h"

double rng_uniform(uint64_t seed, uint32_t purpose, uint32_t sub, uint64_t index)
{
    struct rng4 r = rng_block(seed, purpose, sub, index);
    uint64_t bits = ((uint64_t)r.v[0] << 32 | r.v[1]) >> 11;
    return (double)bits * 0x1p-53;
}

static void normal_pair(struct rng4 r, double ret[2])
{
    const double two_pi = 6.283185307179586476925286766559;
    double u = ((double)(((uint64_t)r.v[0] << 32 | r.v[1]) >> 11) + 0.5) * 0x1p-53;
    double w = (double)(((uint64_t)r.v[2] << 32 | r.v[3]) >> 11) * 0x1p-53;
    double radius = sqrt(-2.0 * log(u));
    ret[0] = radius * cos(two_pi * w);
    ret[1] = radius * sin(two_pi * w);
}

void rng_normal_plain(uint64_t seed, uint32_t purpose, uint32_t sub, uint64_t index, uint64_t n,
                      float *ret)
{
    for (uint64_t i = 0; i < n;) {
        double pair[2];
        normal_pair(rng_block(seed, purpose, sub, (index + i) / 2), pair);
        for (uint64_t k = (index + i) % 2; k < 2 && i < n; k++, i++)
            ret[i] = (float)pair[k];
    }
}

/* ---- four blocks at a time ---------------------------------------------------------------------
 */

#ifdef __x86_64__
#include <immintrin.h>

#define AVX2 __attribute__((target("avx2,fma")))

/*
 * The same floats: logarithm, sine and cosine here differ from the C library's by a few of a
 * double's last digits, which decide about a float only where the double lies next to the middle
 * between two floats. Numbers that lie that near, one in a million, are computed the plain way.
 */
enum { BLOCKS = 4 };
static const double nearness = 0x1p-46;

/* a x + b */
AVX2 static inline __m256d fma_of(__m256d a, __m256d x, double b)
{
    return _mm256_fmadd_pd(a, x, _mm256_set1_pd(b));
}

AVX2 static inline __m256i low_bits(__m256i x)
{
    return _mm256_and_si256(x, _mm256_set1_epi64x(0xffffffff));
}

/* Of integers below 2^32. */
AVX2 static inline __m256d doubles_of(__m256i x)
{
    __m256i exponent = _mm256_set1_epi64x(0x4330000000000000); /* of 2^52 */
    return _mm256_sub_pd(_mm256_castsi256_pd(_mm256_or_si256(x, exponent)), _mm256_set1_pd(0x1p52));
}

/* As normal_pair makes 53 bits of two words. */
AVX2 static inline __m256d bits_of(__m256i high, __m256i low)
{
    return fma_of(doubles_of(low_bits(high)), _mm256_set1_pd(0x1p21), 0) +
           doubles_of(_mm256_srli_epi64(low_bits(low), 11));
}

/* rng_block of four indexes; of each word the lower half counts. */
AVX2 static inline void four_blocks(uint64_t seed, uint32_t purpose, uint32_t sub, uint64_t index,
                                    __m256i ret[4])
{
    __m256i at =
        _mm256_add_epi64(_mm256_set1_epi64x((long long)index), _mm256_set_epi64x(3, 2, 1, 0));
    __m256i c0 = at, c1 = _mm256_srli_epi64(at, 32);
    __m256i c2 = _mm256_set1_epi64x(sub), c3 = _mm256_set1_epi64x(purpose);
    uint32_t k0 = (uint32_t)seed, k1 = (uint32_t)(seed >> 32);
    for (int round = 0; round < 10; round++) {
        __m256i p0 = _mm256_mul_epu32(c0, _mm256_set1_epi64x(0xD2511F53));
        __m256i p1 = _mm256_mul_epu32(c2, _mm256_set1_epi64x(0xCD9E8D57));
        c0 = _mm256_xor_si256(_mm256_xor_si256(_mm256_srli_epi64(p1, 32), c1),
                              _mm256_set1_epi64x(k0));
        c2 = _mm256_xor_si256(_mm256_xor_si256(_mm256_srli_epi64(p0, 32), c3),
                              _mm256_set1_epi64x(k1));
        c1 = p1;
        c3 = p0;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    ret[0] = c0;
    ret[1] = c1;
    ret[2] = c2;
    ret[3] = c3;
}

/*
 * log u of a normal u: u = 2^k m with m from sqrt(1/2) to sqrt(2), f = m - 1, s = f / (2 + f), and
 * log m = 2 atanh s = f - (f^2 / 2 - s (f^2 / 2 + r)), r = 2 s^2 (1/3 + s^2 / 5 + s^4 / 7 ...)
 */
AVX2 static inline __m256d log_of(__m256d u)
{
    static const double term[] = {1.0 / 23, 1.0 / 21, 1.0 / 19, 1.0 / 17, 1.0 / 15, 1.0 / 13,
                                  1.0 / 11, 1.0 / 9,  1.0 / 7,  1.0 / 5,  1.0 / 3};
    const __m256i half = _mm256_set1_epi64x(0x3fe6a09e667f3bcd); /* sqrt(1/2) */
    const __m256i mantissa = _mm256_set1_epi64x(0x000fffffffffffff);
    __m256i from = _mm256_sub_epi64(_mm256_castpd_si256(u), half);
    __m256i k = _mm256_srli_epi64(from, 52); /* modulo 2^12 */
    __m256d m = _mm256_castsi256_pd(_mm256_add_epi64(_mm256_and_si256(from, mantissa), half));
    /* k from -54 to 0: 4096 + k, or 0 */
    __m256d n = doubles_of(_mm256_and_si256(_mm256_add_epi64(k, _mm256_set1_epi64x(2048)),
                                            _mm256_set1_epi64x(4095))) -
                _mm256_set1_pd(2048);
    __m256d f = m - _mm256_set1_pd(1), s = f / (f + _mm256_set1_pd(2)), z = s * s;
    __m256d r = _mm256_set1_pd(1.0 / 25);
    for (size_t i = 0; i < sizeof(term) / sizeof(term[0]); i++)
        r = fma_of(r, z, term[i]);
    r *= z + z;
    __m256d square = _mm256_set1_pd(0.5) * f * f;
    __m256d part = fma_of(n, _mm256_set1_pd(0x1.abc9e3b39803fp-56), 0); /* ln 2, its end */
    __m256d near = f - (square - (s * (square + r) + part));
    return _mm256_fmadd_pd(n, _mm256_set1_pd(0x1.62e42fefa39efp-1), near);
}

/* Sine and cosine of t from 0 to 2 pi: t = k pi / 2 + r, Taylor's series of r. */
AVX2 static inline void sine_cosine(__m256d t, __m256d *ret_sine, __m256d *ret_cosine)
{
    static const double term[][2] = {
        {-1.0 / (17 * 16), -1.0 / (16 * 15)}, {-1.0 / (15 * 14), -1.0 / (14 * 13)},
        {-1.0 / (13 * 12), -1.0 / (12 * 11)}, {-1.0 / (11 * 10), -1.0 / (10 * 9)},
        {-1.0 / (9 * 8), -1.0 / (8 * 7)},     {-1.0 / (7 * 6), -1.0 / (6 * 5)},
        {-1.0 / (5 * 4), -1.0 / (4 * 3)},     {-1.0 / (3 * 2), -1.0 / (2 * 1)}};
    __m256d k = _mm256_round_pd(t * _mm256_set1_pd(0x1.45f306dc9c883p-1),
                                _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    __m256d r = _mm256_fnmadd_pd(k, _mm256_set1_pd(0x1.921fb54442d18p+0), t);
    r = _mm256_fnmadd_pd(k, _mm256_set1_pd(0x1.1a62633145c07p-54), r);
    __m256d z = r * r, sine = _mm256_set1_pd(1), cosine = _mm256_set1_pd(1);
    for (size_t i = 0; i < sizeof(term) / sizeof(term[0]); i++) {
        sine = fma_of(sine * z, _mm256_set1_pd(term[i][0]), 1);
        cosine = fma_of(cosine * z, _mm256_set1_pd(term[i][1]), 1);
    }
    sine *= r;
    /* quarter 1: cos r, -sin r; 2: -sin r, -cos r; 3: -cos r, sin r */
    __m256i q = _mm256_castpd_si256(k + _mm256_set1_pd(0x1.8p52));
    __m256d odd = _mm256_castsi256_pd(_mm256_slli_epi64(q, 63));
    __m256d sign = _mm256_castsi256_pd(_mm256_slli_epi64(_mm256_srli_epi64(q, 1), 63));
    __m256d other = _mm256_xor_pd(sign, odd);
    *ret_sine = _mm256_xor_pd(_mm256_blendv_pd(sine, cosine, odd), sign);
    *ret_cosine = _mm256_xor_pd(_mm256_blendv_pd(cosine, sine, odd), other);
}

/* The floats of y; lanes in which a little more or less would be others are set in *ret_near. */
AVX2 static inline __m128 floats_of(__m256d y, int *ret_near)
{
    __m128 less = _mm256_cvtpd_ps(y * _mm256_set1_pd(1 - nearness));
    __m128 more = _mm256_cvtpd_ps(y * _mm256_set1_pd(1 + nearness));
    *ret_near |= _mm_movemask_ps(_mm_cmpneq_ps(less, more));
    return _mm256_cvtpd_ps(y);
}

/* The numbers of four blocks. */
AVX2 static inline void four_pairs(uint64_t seed, uint32_t purpose, uint32_t sub, uint64_t index,
                                   float *ret)
{
    const double two_pi = 6.283185307179586476925286766559;
    __m256i v[4];
    __m256d sine, cosine;
    int near = 0;
    four_blocks(seed, purpose, sub, index, v);
    __m256d u = (bits_of(v[0], v[1]) + _mm256_set1_pd(0.5)) * _mm256_set1_pd(0x1p-53);
    __m256d w = bits_of(v[2], v[3]) * _mm256_set1_pd(0x1p-53);
    __m256d radius = _mm256_sqrt_pd(_mm256_set1_pd(-2) * log_of(u));
    sine_cosine(_mm256_set1_pd(two_pi) * w, &sine, &cosine);
    __m128 first = floats_of(radius * cosine, &near), second = floats_of(radius * sine, &near);
    _mm_storeu_ps(ret, _mm_unpacklo_ps(first, second));
    _mm_storeu_ps(ret + 4, _mm_unpackhi_ps(first, second));
    for (int i = 0; i < BLOCKS && near; i++)
        if (near >> i & 1)
            rng_normal_plain(seed, purpose, sub, (index + (uint64_t)i) * 2, 2, ret + 2 * i);
}

AVX2 static void normal_avx2(uint64_t seed, uint32_t purpose, uint32_t sub, uint64_t index,
                             uint64_t n, float *ret)
{
    uint64_t head = index % 2, i = head;
    rng_normal_plain(seed, purpose, sub, index, head, ret);
    for (; i + 2 * BLOCKS <= n; i += 2 * BLOCKS)
        four_pairs(seed, purpose, sub, (index + i) / 2, ret + i);
    rng_normal_plain(seed, purpose, sub, index + i, n - i, ret + i);
}
#endif

void rng_normal(uint64_t seed, uint32_t purpose, uint32_t sub, uint64_t index, uint64_t n,
                float *ret)
{
#ifdef __x86_64__
    if (n >= 2 * BLOCKS && cpu_avx2_halves()) {
        normal_avx2(seed, purpose, sub, index, n, ret);
        return;
    }
#endif
    rng_normal_plain(seed, purpose, sub, index, n, ret);
}

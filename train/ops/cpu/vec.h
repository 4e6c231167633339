/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_OPS_CPU_VEC_H
#define TRAIN_OPS_CPU_VEC_H

/*
 * Vectors of VL floats, as wide as WEFT_VEC bits. The fast_*.c files are compiled once per width,
 * each time with the compiler's flags for it: 512 (AVX-512), 256 (AVX2 and FMA) and 128 (what every
 * machine has). + - * / and comparisons of the language work on vf; the rest is here.
 *
 * v_fma(a, b, c) is a * b + c, rounded once where the machine can (not with 128). Sums over the
 * lanes have a fixed order.
 */

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#ifndef WEFT_VEC
#define WEFT_VEC 128
#endif

#if WEFT_VEC == 512
#include <immintrin.h>

enum { VL = 16 };
typedef float vf __attribute__((vector_size(64)));
typedef __m512i vi;
typedef double vd __attribute__((vector_size(64))); /* VL / 2 doubles */
#define VEC(name) vec512_##name

static inline vf v_load(const float *p)
{
    return _mm512_loadu_ps(p);
}

static inline void v_store(float *p, vf v)
{
    _mm512_storeu_ps(p, v);
}

static inline __mmask16 v_first(int64_t n)
{
    return n >= VL ? (__mmask16)0xffff : (__mmask16)((1u << n) - 1);
}

static inline vf v_load_n(const float *p, int64_t n)
{
    return _mm512_maskz_loadu_ps(v_first(n), p);
}

static inline void v_store_n(float *p, int64_t n, vf v)
{
    _mm512_mask_storeu_ps(p, v_first(n), v);
}

static inline vf v_set1(float x)
{
    return _mm512_set1_ps(x);
}

static inline vf v_fma(vf a, vf b, vf c)
{
    return _mm512_fmadd_ps(a, b, c);
}

static inline vf v_max(vf a, vf b)
{
    return _mm512_max_ps(a, b);
}

static inline vf v_min(vf a, vf b)
{
    return _mm512_min_ps(a, b);
}

static inline vf v_sqrt(vf a)
{
    return _mm512_sqrt_ps(a);
}

static inline vf v_round(vf a)
{
    return _mm512_roundscale_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

/* a where x < y, else b */
static inline vf v_where_less(vf x, vf y, vf a, vf b)
{
    return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(x, y, _CMP_LT_OQ), b, a);
}

static inline vi vi_set1(uint32_t x)
{
    return _mm512_set1_epi32((int)x);
}

static inline vi vi_load(const uint32_t *p)
{
    return _mm512_loadu_si512(p);
}

static inline vi vi_xor(vi a, vi b)
{
    return _mm512_xor_si512(a, b);
}

static inline vi vi_and(vi a, vi b)
{
    return _mm512_and_si512(a, b);
}

/* High and low halves of the products of unsigned lanes. */
static inline void vi_mul(vi a, vi b, vi *ret_high, vi *ret_low)
{
    vi even = _mm512_mul_epu32(a, b);
    vi odd = _mm512_mul_epu32(_mm512_srli_epi64(a, 32), _mm512_srli_epi64(b, 32));
    *ret_high = _mm512_mask_blend_epi32(0xaaaa, _mm512_srli_epi64(even, 32), odd);
    *ret_low = _mm512_mask_blend_epi32(0xaaaa, even, _mm512_slli_epi64(odd, 32));
}

/* v where a >= b as unsigned numbers, else 0 */
static inline vf vi_where_not_below(vi a, vi b, vf v)
{
    return _mm512_maskz_mov_ps(_mm512_cmpge_epu32_mask(a, b), v);
}

/* a * 2^n for whole n in [-252, 254] */
static inline vf v_scale2(vf a, vf n)
{
    return _mm512_scalef_ps(a, n);
}

static inline vd vd_zero(void)
{
    return _mm512_setzero_pd();
}

static inline vd v_low(vf v)
{
    return _mm512_cvtps_pd(_mm512_castps512_ps256(v));
}

static inline vd v_high(vf v)
{
    return _mm512_cvtps_pd(_mm512_extractf32x8_ps(v, 1));
}

/* Four 4x4 blocks, one in each quarter of the lanes, turned about. */
static inline void v_transpose4(vf r[4])
{
    vf a = _mm512_unpacklo_ps(r[0], r[1]), b = _mm512_unpackhi_ps(r[0], r[1]);
    vf c = _mm512_unpacklo_ps(r[2], r[3]), d = _mm512_unpackhi_ps(r[2], r[3]);
    r[0] = _mm512_shuffle_ps(a, c, 0x44);
    r[1] = _mm512_shuffle_ps(a, c, 0xee);
    r[2] = _mm512_shuffle_ps(b, d, 0x44);
    r[3] = _mm512_shuffle_ps(b, d, 0xee);
}

/* VL x VL numbers transposed: afterwards r[i] holds what were lanes i. */
static inline void v_transpose(vf r[VL])
{
    vf t[VL];
    for (int i = 0; i < VL; i += 4)
        v_transpose4(r + i);
    for (int j = 0; j < 4; j++) {
        vf a = _mm512_shuffle_f32x4(r[j], r[4 + j], 0x44);
        vf b = _mm512_shuffle_f32x4(r[j], r[4 + j], 0xee);
        vf c = _mm512_shuffle_f32x4(r[8 + j], r[12 + j], 0x44);
        vf d = _mm512_shuffle_f32x4(r[8 + j], r[12 + j], 0xee);
        t[j] = _mm512_shuffle_f32x4(a, c, 0x88);
        t[4 + j] = _mm512_shuffle_f32x4(a, c, 0xdd);
        t[8 + j] = _mm512_shuffle_f32x4(b, d, 0x88);
        t[12 + j] = _mm512_shuffle_f32x4(b, d, 0xdd);
    }
    for (int i = 0; i < VL; i++)
        r[i] = t[i];
}

#elif WEFT_VEC == 256
#include <immintrin.h>

enum { VL = 8 };
typedef float vf __attribute__((vector_size(32)));
typedef __m256i vi;
typedef double vd __attribute__((vector_size(32)));
#define VEC(name) vec256_##name

static inline vf v_load(const float *p)
{
    return _mm256_loadu_ps(p);
}

static inline void v_store(float *p, vf v)
{
    _mm256_storeu_ps(p, v);
}

static inline __m256i v_first(int64_t n)
{
    static const int32_t mask[2 * VL] = {-1, -1, -1, -1, -1, -1, -1, -1};
    int64_t at = n >= VL ? 0 : VL - n;
    return _mm256_loadu_si256((const __m256i *)(const void *)(mask + at));
}

static inline vf v_load_n(const float *p, int64_t n)
{
    return _mm256_maskload_ps(p, v_first(n));
}

static inline void v_store_n(float *p, int64_t n, vf v)
{
    _mm256_maskstore_ps(p, v_first(n), v);
}

static inline vf v_set1(float x)
{
    return _mm256_set1_ps(x);
}

static inline vf v_fma(vf a, vf b, vf c)
{
    return _mm256_fmadd_ps(a, b, c);
}

static inline vf v_max(vf a, vf b)
{
    return _mm256_max_ps(a, b);
}

static inline vf v_min(vf a, vf b)
{
    return _mm256_min_ps(a, b);
}

static inline vf v_sqrt(vf a)
{
    return _mm256_sqrt_ps(a);
}

static inline vf v_round(vf a)
{
    return _mm256_round_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

static inline vf v_where_less(vf x, vf y, vf a, vf b)
{
    return _mm256_blendv_ps(b, a, _mm256_cmp_ps(x, y, _CMP_LT_OQ));
}

static inline vi vi_set1(uint32_t x)
{
    return _mm256_set1_epi32((int)x);
}

static inline vi vi_load(const uint32_t *p)
{
    return _mm256_loadu_si256((const __m256i *)(const void *)p);
}

static inline vi vi_xor(vi a, vi b)
{
    return _mm256_xor_si256(a, b);
}

static inline vi vi_and(vi a, vi b)
{
    return _mm256_and_si256(a, b);
}

static inline void vi_mul(vi a, vi b, vi *ret_high, vi *ret_low)
{
    vi even = _mm256_mul_epu32(a, b);
    vi odd = _mm256_mul_epu32(_mm256_srli_epi64(a, 32), _mm256_srli_epi64(b, 32));
    *ret_high = _mm256_blend_epi32(_mm256_srli_epi64(even, 32), odd, 0xaa);
    *ret_low = _mm256_blend_epi32(even, _mm256_slli_epi64(odd, 32), 0xaa);
}

static inline vf vi_where_not_below(vi a, vi b, vf v)
{
    vi keep = _mm256_cmpeq_epi32(_mm256_max_epu32(a, b), a);
    return _mm256_and_ps(_mm256_castsi256_ps(keep), v);
}

/* In two steps, so that a result below the normal numbers comes out right. */
static inline vf v_scale2(vf a, vf n)
{
    vf half = _mm256_floor_ps(n * 0.5f), rest = n - half;
    vi one = _mm256_slli_epi32(_mm256_add_epi32(_mm256_cvtps_epi32(half), vi_set1(127)), 23);
    vi two = _mm256_slli_epi32(_mm256_add_epi32(_mm256_cvtps_epi32(rest), vi_set1(127)), 23);
    return a * _mm256_castsi256_ps(one) * _mm256_castsi256_ps(two);
}

static inline vd vd_zero(void)
{
    return _mm256_setzero_pd();
}

static inline vd v_low(vf v)
{
    return _mm256_cvtps_pd(_mm256_castps256_ps128(v));
}

static inline vd v_high(vf v)
{
    return _mm256_cvtps_pd(_mm256_extractf128_ps(v, 1));
}

static inline void v_transpose4(vf r[4])
{
    vf a = _mm256_unpacklo_ps(r[0], r[1]), b = _mm256_unpackhi_ps(r[0], r[1]);
    vf c = _mm256_unpacklo_ps(r[2], r[3]), d = _mm256_unpackhi_ps(r[2], r[3]);
    r[0] = _mm256_shuffle_ps(a, c, 0x44);
    r[1] = _mm256_shuffle_ps(a, c, 0xee);
    r[2] = _mm256_shuffle_ps(b, d, 0x44);
    r[3] = _mm256_shuffle_ps(b, d, 0xee);
}

static inline void v_transpose(vf r[VL])
{
    v_transpose4(r);
    v_transpose4(r + 4);
    for (int j = 0; j < 4; j++) {
        vf low = _mm256_permute2f128_ps(r[j], r[4 + j], 0x20);
        r[4 + j] = _mm256_permute2f128_ps(r[j], r[4 + j], 0x31);
        r[j] = low;
    }
}

#elif WEFT_VEC == 128
#include <math.h>

enum { VL = 4 };
typedef float vf __attribute__((vector_size(16)));
typedef uint32_t vi __attribute__((vector_size(16)));
typedef double vd __attribute__((vector_size(16)));
#define VEC(name) vec128_##name

static inline vf v_load(const float *p)
{
    vf v;
    memcpy(&v, p, sizeof(v));
    return v;
}

static inline void v_store(float *p, vf v)
{
    memcpy(p, &v, sizeof(v));
}

static inline vf v_load_n(const float *p, int64_t n)
{
    vf v = {0};
    memcpy(&v, p, (size_t)(n < VL ? n : VL) * sizeof(*p));
    return v;
}

static inline void v_store_n(float *p, int64_t n, vf v)
{
    memcpy(p, &v, (size_t)(n < VL ? n : VL) * sizeof(*p));
}

static inline vf v_set1(float x)
{
    return (vf){x, x, x, x};
}

static inline vf v_fma(vf a, vf b, vf c)
{
    return a * b + c;
}

static inline vf v_blend(vi mask, vf a, vf b)
{
    return (vf)((mask & (vi)a) | (~mask & (vi)b));
}

static inline vf v_where_less(vf x, vf y, vf a, vf b)
{
    return v_blend((vi)(x < y), a, b);
}

static inline vf v_max(vf a, vf b)
{
    return v_blend((vi)(a > b), a, b);
}

static inline vf v_min(vf a, vf b)
{
    return v_blend((vi)(a < b), a, b);
}

static inline vf v_sqrt(vf a)
{
    return (vf){sqrtf(a[0]), sqrtf(a[1]), sqrtf(a[2]), sqrtf(a[3])};
}

/* For |a| < 2^22: adding and taking off 1.5 * 2^23 leaves no bits behind the point. */
static inline vf v_round(vf a)
{
    const vf big = v_set1(0x1.8p23f);
    return (a + big) - big;
}

static inline vi vi_set1(uint32_t x)
{
    return (vi){x, x, x, x};
}

static inline vi vi_load(const uint32_t *p)
{
    vi v;
    memcpy(&v, p, sizeof(v));
    return v;
}

static inline vi vi_xor(vi a, vi b)
{
    return a ^ b;
}

static inline vi vi_and(vi a, vi b)
{
    return a & b;
}

static inline void vi_mul(vi a, vi b, vi *ret_high, vi *ret_low)
{
    for (int i = 0; i < VL; i++) {
        uint64_t p = (uint64_t)a[i] * b[i];
        (*ret_high)[i] = (uint32_t)(p >> 32);
        (*ret_low)[i] = (uint32_t)p;
    }
}

static inline vf vi_where_not_below(vi a, vi b, vf v)
{
    return (vf)((vi)(a >= b) & (vi)v);
}

static inline vf v_scale2(vf a, vf n)
{
    vi one, two; /* two factors, for 2^n may be no float where a 2^n is */
    for (int i = 0; i < VL; i++) {
        int k = n[i] == n[i] ? (int)n[i] : 0, half = k / 2;
        one[i] = (uint32_t)(half + 127) << 23;
        two[i] = (uint32_t)(k - half + 127) << 23;
    }
    return a * (vf)one * (vf)two;
}

static inline vd vd_zero(void)
{
    return (vd){0, 0};
}

static inline vd v_low(vf v)
{
    return (vd){(double)v[0], (double)v[1]};
}

static inline vd v_high(vf v)
{
    return (vd){(double)v[2], (double)v[3]};
}

static inline void v_transpose4(vf r[4])
{
    vf a = r[0], b = r[1], c = r[2], d = r[3];
    for (int i = 0; i < 4; i++)
        r[i] = (vf){a[i], b[i], c[i], d[i]};
}

static inline void v_transpose(vf r[VL])
{
    v_transpose4(r);
}

#else
#error "WEFT_VEC must be 128, 256 or 512"
#endif

static inline vf v_zero(void)
{
    return v_set1(0);
}

/* Lanes are added in halves: i and i + VL / 2, then quarters, and so on. */
static inline float v_sum(vf v)
{
    float lane[VL];
    v_store(lane, v);
    for (int half = VL / 2; half > 0; half /= 2)
        for (int i = 0; i < half; i++)
            lane[i] += lane[i + half];
    return lane[0];
}

static inline float v_max_lane(vf v)
{
    float lane[VL], max;
    v_store(lane, v);
    max = lane[0];
    for (int i = 1; i < VL; i++)
        max = lane[i] > max ? lane[i] : max;
    return max;
}

static inline double vd_sum(vd v)
{
    double lane[VL / 2], sum = 0;
    memcpy(lane, &v, sizeof(v));
    for (int i = 0; i < VL / 2; i++)
        sum += lane[i];
    return sum;
}

#endif

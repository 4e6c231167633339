/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_PRETOK_SCAN_VEC_H
#define TOK_PRETOK_SCAN_VEC_H

/*
 * 64 bytes as one value and predicates over all of them; bit i of a result is for byte i.
 * For scan_*.c that are compiled with WEFT_SCAN 256 (AVX2, BMI) or 512 (AVX-512 with VBMI2).
 */

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

#if WEFT_SCAN == 512
#define SCAN(name) scan512_##name

struct bytes {
    __m512i v;
};

static inline struct bytes b_load(const void *p)
{
    return (struct bytes){_mm512_loadu_si512(p)};
}

static inline uint64_t b_eq(struct bytes b, uint8_t c)
{
    return _mm512_cmpeq_epi8_mask(b.v, _mm512_set1_epi8((char)c));
}

static inline uint64_t b_range(struct bytes b, uint8_t first, uint8_t last)
{
    __m512i from = _mm512_sub_epi8(b.v, _mm512_set1_epi8((char)first));
    return _mm512_cmple_epu8_mask(from, _mm512_set1_epi8((char)(last - first)));
}

/* 0x80 and above */
static inline uint64_t b_high(struct bytes b)
{
    return _mm512_movepi8_mask(b.v);
}

static inline struct bytes b_or(struct bytes b, uint8_t c)
{
    return (struct bytes){_mm512_or_si512(b.v, _mm512_set1_epi8((char)c))};
}

static inline struct bytes b_and(struct bytes b, uint8_t c)
{
    return (struct bytes){_mm512_and_si512(b.v, _mm512_set1_epi8((char)c))};
}

/* table[byte & 15] */
static inline struct bytes b_pick16(const uint8_t table[16], struct bytes b)
{
    __m512i v = _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)table));
    return (struct bytes){_mm512_shuffle_epi8(v, _mm512_and_si512(b.v, _mm512_set1_epi8(15)))};
}

/* table[byte & 63] */
static inline struct bytes b_pick64(const uint8_t table[64], struct bytes b)
{
    return (struct bytes){_mm512_permutexvar_epi8(b.v, _mm512_loadu_si512(table))};
}

static inline struct bytes b_both(struct bytes x, struct bytes y, struct bytes z)
{
    return (struct bytes){_mm512_ternarylogic_epi64(x.v, y.v, z.v, 0x80)};
}

/* Those of `some` that have any of the bits. */
static inline uint64_t b_test(uint64_t some, struct bytes b, uint8_t bits)
{
    return _mm512_mask_test_epi8_mask(some, b.v, _mm512_set1_epi8((char)bits));
}

/* base + the positions of the bits; may write up to 64 numbers, of which the first ones count. */
static inline size_t b_places(uint64_t bits, uint32_t base, uint32_t *at)
{
    static const uint8_t iota[64] = {
        0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21,
        22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43,
        44, 45, 46, 47, 48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63};
    __m512i place = _mm512_maskz_compress_epi8(bits, _mm512_loadu_si512(iota));
    __m512i add = _mm512_set1_epi32((int)base);
    size_t n = (size_t)_mm_popcnt_u64(bits);
    __m512i wide = _mm512_cvtepu8_epi32(_mm512_castsi512_si128(place));
    _mm512_storeu_si512(at, _mm512_add_epi32(wide, add));
    wide = _mm512_cvtepu8_epi32(_mm512_extracti32x4_epi32(place, 1));
    _mm512_storeu_si512(at + 16, _mm512_add_epi32(wide, add));
    if (__builtin_expect(n > 32, 0)) {
        wide = _mm512_cvtepu8_epi32(_mm512_extracti32x4_epi32(place, 2));
        _mm512_storeu_si512(at + 32, _mm512_add_epi32(wide, add));
        wide = _mm512_cvtepu8_epi32(_mm512_extracti32x4_epi32(place, 3));
        _mm512_storeu_si512(at + 48, _mm512_add_epi32(wide, add));
    }
    return n;
}

#elif WEFT_SCAN == 256
#define SCAN(name) scan256_##name

struct bytes {
    __m256i low, high;
};

static inline struct bytes b_load(const void *p)
{
    const __m256i *v = p;
    return (struct bytes){_mm256_loadu_si256(v), _mm256_loadu_si256(v + 1)};
}

static inline uint64_t b_high(struct bytes b)
{
    return (uint32_t)_mm256_movemask_epi8(b.low) | (uint64_t)(uint32_t)_mm256_movemask_epi8(b.high)
                                                       << 32;
}

static inline uint64_t b_eq(struct bytes b, uint8_t c)
{
    __m256i v = _mm256_set1_epi8((char)c);
    return b_high((struct bytes){_mm256_cmpeq_epi8(b.low, v), _mm256_cmpeq_epi8(b.high, v)});
}

static inline __m256i b_within(__m256i v, uint8_t first, uint8_t last)
{
    __m256i from = _mm256_sub_epi8(v, _mm256_set1_epi8((char)first));
    return _mm256_cmpeq_epi8(_mm256_min_epu8(from, _mm256_set1_epi8((char)(last - first))), from);
}

static inline uint64_t b_range(struct bytes b, uint8_t first, uint8_t last)
{
    return b_high((struct bytes){b_within(b.low, first, last), b_within(b.high, first, last)});
}

static inline struct bytes b_or(struct bytes b, uint8_t c)
{
    __m256i v = _mm256_set1_epi8((char)c);
    return (struct bytes){_mm256_or_si256(b.low, v), _mm256_or_si256(b.high, v)};
}

static inline struct bytes b_and(struct bytes b, uint8_t c)
{
    __m256i v = _mm256_set1_epi8((char)c);
    return (struct bytes){_mm256_and_si256(b.low, v), _mm256_and_si256(b.high, v)};
}

static inline __m256i b_table(const uint8_t table[16])
{
    return _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)table));
}

static inline struct bytes b_pick16(const uint8_t table[16], struct bytes b)
{
    __m256i v = b_table(table), mask = _mm256_set1_epi8(15);
    return (struct bytes){_mm256_shuffle_epi8(v, _mm256_and_si256(b.low, mask)),
                          _mm256_shuffle_epi8(v, _mm256_and_si256(b.high, mask))};
}

static inline __m256i b_pick64_half(const uint8_t table[64], __m256i v)
{
    __m256i two = _mm256_and_si256(v, _mm256_set1_epi8(0x30)), found = _mm256_setzero_si256();
    v = _mm256_and_si256(v, _mm256_set1_epi8(15));
    for (int i = 0; i < 4; i++) {
        __m256i here = _mm256_cmpeq_epi8(two, _mm256_set1_epi8((char)(i << 4)));
        __m256i x = _mm256_shuffle_epi8(b_table(table + 16 * i), v);
        found = _mm256_or_si256(found, _mm256_and_si256(x, here));
    }
    return found;
}

static inline struct bytes b_pick64(const uint8_t table[64], struct bytes b)
{
    return (struct bytes){b_pick64_half(table, b.low), b_pick64_half(table, b.high)};
}

static inline struct bytes b_both(struct bytes x, struct bytes y, struct bytes z)
{
    return (struct bytes){_mm256_and_si256(x.low, _mm256_and_si256(y.low, z.low)),
                          _mm256_and_si256(x.high, _mm256_and_si256(y.high, z.high))};
}

static inline uint64_t b_test(uint64_t some, struct bytes b, uint8_t bits)
{
    __m256i v = _mm256_set1_epi8((char)bits), none = _mm256_setzero_si256();
    struct bytes not = {_mm256_cmpeq_epi8(_mm256_and_si256(b.low, v), none),
                        _mm256_cmpeq_epi8(_mm256_and_si256(b.high, v), none)};
    return some & ~b_high(not );
}

/* Eight at a time: a loop that ends after each would be mispredicted more often. */
static inline size_t b_places(uint64_t bits, uint32_t base, uint32_t *at)
{
    size_t n = (size_t)_mm_popcnt_u64(bits);
    for (size_t i = 0; i < n; i += 8)
        for (size_t k = i; k < i + 8; k++) {
            at[k] = base + (uint32_t)_tzcnt_u64(bits);
            bits = _blsr_u64(bits);
        }
    return n;
}

#else
#error "WEFT_SCAN must be 256 or 512"
#endif
#endif

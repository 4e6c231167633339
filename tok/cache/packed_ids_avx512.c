/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/cache/kernels.h"

/* ids_unpack for eight words at once. */

#ifdef __x86_64__
enum { AHEAD = 256 /* ids whose output is prefetched for writing */ };

/* Writes sixteen unpacked ids, without the empty fields. */
AVX512_INLINE int32_t *put(__m512i id, int32_t *end)
{
    __mmask16 some = _mm512_cmpgt_epu32_mask(id, _mm512_set1_epi32(1));
    id = _mm512_sub_epi32(id, _mm512_set1_epi32(2));
    _mm512_storeu_si512(end, _mm512_maskz_compress_epi32(some, id));
    return end + __builtin_popcount(some);
}

AVX512_INLINE __m512i load(const uint64_t *ids, size_t n)
{
    return _mm512_maskz_loadu_epi64(n < 8 ? (__mmask8)((1u << n) - 1) : 0xff, ids);
}

AVX512 static size_t unpack_16(const uint64_t *ids, size_t n, int32_t *to)
{
    int32_t *end = to;
    for (size_t i = 0; i < n; i += 8) {
        __m512i words = load(ids + i, n - i);
        __builtin_prefetch(end + AHEAD, 1);
        end = put(_mm512_cvtepu16_epi32(_mm512_castsi512_si256(words)), end);
        end = put(_mm512_cvtepu16_epi32(_mm512_extracti64x4_epi64(words, 1)), end);
    }
    return (size_t)(end - to);
}

/* Four words of three ids each, the second of which is split over both halves. */
AVX512_INLINE __m512i spread_21(__m256i words)
{
    const __m512i halves = _mm512_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7);
    const int most = (1 << 21) - 1;
    __m512i half = _mm512_permutexvar_epi32(halves, _mm512_castsi256_si512(words));
    __m512i upper = _mm512_maskz_shuffle_epi32(0x2222, half, 0xff);
    __m512i id = _mm512_srlv_epi32(half, _mm512_setr4_epi32(0, 21, 2 * 21 - 32, 0));
    id = _mm512_or_si512(id, _mm512_slli_epi32(upper, 32 - 21));
    return _mm512_and_si512(id, _mm512_setr4_epi32(most, most, most, 0));
}

AVX512 static size_t unpack_21(const uint64_t *ids, size_t n, int32_t *to)
{
    int32_t *end = to;
    for (size_t i = 0; i < n; i += 8) {
        __m512i words = load(ids + i, n - i);
        __builtin_prefetch(end + AHEAD, 1);
        end = put(spread_21(_mm512_castsi512_si256(words)), end);
        end = put(spread_21(_mm512_extracti64x4_epi64(words, 1)), end);
    }
    return (size_t)(end - to);
}

AVX512 static size_t unpack_32(const uint64_t *ids, size_t n, int32_t *to)
{
    int32_t *end = to;
    for (size_t i = 0; i < n; i += 8) {
        __builtin_prefetch(end + AHEAD, 1);
        end = put(load(ids + i, n - i), end);
    }
    return (size_t)(end - to);
}
AVX512 size_t ids_unpack_avx512(const uint64_t *ids, size_t n, enum ids_form bits, int32_t *to)
{
    return bits == IDS_OF_16   ? unpack_16(ids, n, to)
           : bits == IDS_OF_21 ? unpack_21(ids, n, to)
                               : unpack_32(ids, n, to);
}
#endif

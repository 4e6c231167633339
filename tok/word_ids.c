/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/word_ids.h"

#ifdef __x86_64__
#include <immintrin.h>
#endif

#include "base/cpu.h"

#ifdef __x86_64__
enum { AHEAD = 256 /* ids whose memory is asked for before they are written */ };

#define WIDE __attribute__((target("avx512f,avx512dq,avx512bw,avx512vl,popcnt")))

/* Four words at a time, each as four numbers of 32 bits: its ids and how many they are; of thirty
 * bits the third is never there. */
WIDE static inline __attribute__((always_inline)) size_t
unpack_wide(const uint64_t *ids, size_t n, enum ids_form bits, int32_t *to)
{
    const __m512i place = _mm512_setr4_epi32(0, 1, 2, 3), mask = _mm512_set1_epi32((1 << bits) - 1);
    const __m512i halves = _mm512_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7);
    const __m512i shift = _mm512_setr4_epi32(0, (int)bits, 2 * (int)bits - 32, 60 - 32);
    const __mmask16 second = 0x2222; /* ids that lie in both halves */
    int32_t *end = to;
    for (size_t i = 0; i < n; i += 4) {
        __mmask8 have = n - i < 4 ? (__mmask8)((1u << (n - i)) - 1) : 0xf;
        __m512i words = _mm512_castsi256_si512(_mm256_maskz_loadu_epi64(have, ids + i));
        __m512i half = _mm512_permutexvar_epi32(halves, words);
        __m512i upper = _mm512_maskz_shuffle_epi32(second, half, 0xff);
        __m512i id =
            _mm512_or_si512(_mm512_srlv_epi32(half, shift), _mm512_slli_epi32(upper, 32 - bits));
        id = _mm512_and_si512(id, mask);
        __mmask16 some = _mm512_cmplt_epu32_mask(place, _mm512_shuffle_epi32(id, 0xff));
        int count = __builtin_popcount(some);
        __builtin_prefetch(end + AHEAD, 1);
        id = _mm512_maskz_compress_epi32(some, id);
        _mm256_storeu_si256((__m256i *)end, _mm512_castsi512_si256(id));
        if (count > 8)
            _mm256_storeu_si256((__m256i *)(end + 8), _mm512_extracti64x4_epi64(id, 1));
        end += count;
    }
    return (size_t)(end - to);
}

WIDE static size_t unpack_20(const uint64_t *ids, size_t n, int32_t *to)
{
    return unpack_wide(ids, n, IDS_OF_20, to);
}

WIDE static size_t unpack_30(const uint64_t *ids, size_t n, int32_t *to)
{
    return unpack_wide(ids, n, IDS_OF_30, to);
}
#endif

size_t ids_unpack_plain(const uint64_t *ids, size_t n, enum ids_form bits, int32_t *to)
{
    int32_t *end = to;
    for (size_t i = 0; i < n; i++) {
        for (unsigned k = 0; k < PACKED; k++)
            end[k] = (int32_t)(ids[i] >> k * bits & ((1u << bits) - 1));
        end += ids_count(ids[i]);
    }
    return (size_t)(end - to);
}

size_t ids_unpack(const uint64_t *ids, size_t n, enum ids_form bits, int32_t *to)
{
#ifdef __x86_64__
    if (cpu_avx512())
        return (bits == IDS_OF_20 ? unpack_20 : unpack_30)(ids, n, to);
#endif
    return ids_unpack_plain(ids, n, bits, to);
}

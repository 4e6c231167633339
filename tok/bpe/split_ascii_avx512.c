/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/bpe/kernels.h"

/* cut_ascii for blocks of 64 bytes. */

enum { BLOCK = 64, LANES = 16 };

#ifdef __x86_64__
AVX512_BYTES static inline bool all_plain(const bool plain[128], __m512i bytes)
{
    __m512i low = _mm512_loadu_si512(plain), high = _mm512_loadu_si512(plain + BLOCK);
    return !_mm512_cmpeq_epi8_mask(_mm512_permutex2var_epi8(low, bytes, high),
                                   _mm512_setzero_si512());
}

AVX512_BYTES size_t split_ascii_avx512(const unsigned char cut[128][16], const bool plain[128],
                                       const char *text, size_t at, size_t n, uint32_t *start,
                                       size_t *k)
{
    const __m512i count = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    size_t found = *k;
    for (; n - at >= BLOCK; at += BLOCK) {
        __m512i bytes = _mm512_loadu_si512(text + at);
        if (_mm512_movepi8_mask(bytes) || (plain && !all_plain(plain, bytes)))
            break;
        for (size_t i = at; i < at + BLOCK; i += LANES) {
            const __m128i *p = (const __m128i *)(const void *)(text + i);
            const __m128i *before = (const __m128i *)(const void *)(text + i - 1);
            __m512i left = _mm512_cvtepu8_epi32(_mm_loadu_si128(before));
            __m512i right = _mm512_cvtepu8_epi32(_mm_loadu_si128(p));
            __m512i word = _mm512_or_si512(_mm512_slli_epi32(left, 2), _mm512_srli_epi32(right, 5));
            word = _mm512_i32gather_epi32(word, cut, 4);
            word = _mm512_srlv_epi32(word, _mm512_and_si512(right, _mm512_set1_epi32(31)));
            __mmask16 here = _mm512_test_epi32_mask(word, _mm512_set1_epi32(1));
            __m512i place = _mm512_add_epi32(count, _mm512_set1_epi32((int)i));
            _mm512_storeu_si512(start + found, _mm512_maskz_compress_epi32(here, place));
            found += (unsigned)__builtin_popcount(here);
        }
    }
    *k = found;
    return at;
}
#endif

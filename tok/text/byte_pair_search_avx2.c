/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/text/kernels.h"

/* Thirty-two positions of a text at once. */

#ifdef __x86_64__
AVX2 static __m256i groups_of(const unsigned char *lower, const unsigned char *upper, __m256i b)
{
    __m256i low = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)lower));
    __m256i high = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)upper));
    __m256i mask = _mm256_set1_epi8(15);
    __m256i top = _mm256_and_si256(_mm256_srli_epi16(b, 4), mask);
    return _mm256_and_si256(_mm256_shuffle_epi8(low, _mm256_and_si256(b, mask)),
                            _mm256_shuffle_epi8(high, top));
}

AVX2 size_t pair_find_skip_avx2(const struct pair_find *f, const unsigned char *text, size_t n,
                                size_t at)
{
    for (; at + 33 <= n; at += 32) {
        __m256i a = _mm256_loadu_si256((const __m256i *)(text + at));
        __m256i b = _mm256_loadu_si256((const __m256i *)(text + at + 1));
        __m256i both = _mm256_and_si256(groups_of(f->half[0], f->half[1], a),
                                        groups_of(f->half[2], f->half[3], b));
        unsigned some =
            ~(unsigned)_mm256_movemask_epi8(_mm256_cmpeq_epi8(both, _mm256_setzero_si256()));
        for (; some; some &= some - 1)
            if (pair_find_stands(f, text + at + __builtin_ctz(some)))
                return at + (unsigned)__builtin_ctz(some);
    }
    return at;
}
#endif

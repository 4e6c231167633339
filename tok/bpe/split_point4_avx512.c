/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/bpe/kernels.h"
#include "tok/bpe/split_point4_internal.h"

/* split_point4_find for sixteen characters at once. */

#ifdef __x86_64__
AVX512_INLINE __m512i times(__m512i x, uint32_t by)
{
    return _mm512_mullo_epi32(x, _mm512_set1_epi32((int)by));
}

/* Sixteen characters of three bytes, from p on, each in the lower bytes of its lane. */
AVX512_INLINE __m512i wide_chars(const char *p)
{
    const __m512i words = _mm512_setr_epi32(0, 1, 2, 3, 3, 4, 5, 6, 6, 7, 8, 9, 9, 10, 11, 12);
    const __m512i bytes =
        _mm512_broadcast_i32x4(_mm_setr_epi8(0, 1, 2, -1, 3, 4, 5, -1, 6, 7, 8, -1, 9, 10, 11, -1));
    __m512i v = _mm512_permutexvar_epi32(words, _mm512_loadu_si512(p));
    return _mm512_shuffle_epi8(v, bytes);
}

/* Which of them are plain characters of three bytes. */
AVX512_INLINE __mmask16 wide_plain(const uint64_t *plain, __m512i v)
{
    __mmask16 good = _mm512_cmpeq_epi32_mask(_mm512_and_si512(v, _mm512_set1_epi32(0xc0c0f0)),
                                             _mm512_set1_epi32(0x8080e0));
    __m512i c = _mm512_slli_epi32(_mm512_and_si512(v, _mm512_set1_epi32(0xf)), 12);
    c = _mm512_or_si512(c, _mm512_and_si512(_mm512_srli_epi32(v, 2), _mm512_set1_epi32(0xfc0)));
    c = _mm512_or_si512(c, _mm512_and_si512(_mm512_srli_epi32(v, 16), _mm512_set1_epi32(0x3f)));
    good &= _mm512_cmpge_epu32_mask(c, _mm512_set1_epi32(0x1000));
    good &= _mm512_cmpneq_epi32_mask(_mm512_and_si512(c, _mm512_set1_epi32(0xf800)),
                                     _mm512_set1_epi32(0xd800));
    __m512i bits = _mm512_mask_i32gather_epi32(_mm512_setzero_si512(), good,
                                               _mm512_srli_epi32(c, 5), plain, 4);
    bits = _mm512_srlv_epi32(bits, _mm512_and_si512(c, _mm512_set1_epi32(31)));
    return _mm512_mask_test_epi32_mask(good, bits, _mm512_set1_epi32(1));
}

AVX512_INLINE __m512i wide_bit(__m512i a, uint32_t mix_a, __m512i d, uint32_t mix_d)
{
    __m512i row = _mm512_srli_epi32(times(a, mix_a), 29);
    return _mm512_or_si512(_mm512_slli_epi32(row, 3), _mm512_srli_epi32(times(d, mix_d), 29));
}

/* The words of eight pairs, shifted by the bits. */
AVX512_INLINE __m512i eight(const struct split_point4 *t, __m256i place, __m256i bit)
{
    return _mm512_srlv_epi64(_mm512_i32gather_epi64(place, t->word, 8), _mm512_cvtepu32_epi64(bit));
}

/* Positions before the sixteen characters from p on that a token may span. */
AVX512_INLINE __mmask16 wide_joined(const struct split_point4 *t, const char *p, __m512i c)
{
    __m512i a = wide_chars(p - 2 * WIDE_BYTES), b = wide_chars(p - WIDE_BYTES),
            d = wide_chars(p + WIDE_BYTES);
    __m512i x = _mm512_xor_si512(times(b, MIX_LEFT), times(c, MIX_RIGHT));
    x = times(_mm512_xor_si512(x, _mm512_srli_epi32(x, 15)), MIX_BOTH);
    const __m128i shift = _mm_cvtsi32_si128(t->shift);
    __m512i first = _mm512_srl_epi32(x, shift),
            second = _mm512_srl_epi32(times(x, MIX_SECOND), shift);
    __m512i row = wide_bit(a, MIX_LEFT, d, MIX_RIGHT), other = wide_bit(a, MIX_RIGHT, d, MIX_BOTH);
    __m512i low =
        _mm512_and_si512(eight(t, _mm512_castsi512_si256(first), _mm512_castsi512_si256(row)),
                         eight(t, _mm512_castsi512_si256(second), _mm512_castsi512_si256(other)));
    __m512i high = _mm512_and_si512(
        eight(t, _mm512_extracti64x4_epi64(first, 1), _mm512_extracti64x4_epi64(row, 1)),
        eight(t, _mm512_extracti64x4_epi64(second, 1), _mm512_extracti64x4_epi64(other, 1)));
    const __m512i one = _mm512_set1_epi64(1);
    return (__mmask16)(_mm512_test_epi64_mask(low, one) |
                       (unsigned)_mm512_test_epi64_mask(high, one) << 8);
}

AVX512 size_t split_point4_find_avx512(const struct split_point4 *t, const uint64_t *plain,
                                       const char *text, size_t at, size_t n, uint32_t *start,
                                       size_t *k)
{
    const __m512i threes =
        _mm512_setr_epi32(0, 3, 6, 9, 12, 15, 18, 21, 24, 27, 30, 33, 36, 39, 42, 45);
    size_t found = *k, m = LANES;
    while (m == LANES && at + LANES * WIDE_BYTES < n) {
        __m512i c = wide_chars(text + at);
        unsigned good = wide_plain(plain, c);
        m = (size_t)__builtin_ctz(~good);
        if (m <= FEW)
            break;
        __mmask16 cut = (__mmask16)(~wide_joined(t, text + at, c) & ((1u << (m - AROUND)) - 1));
        __m512i place = _mm512_add_epi32(threes, _mm512_set1_epi32((int)at));
        _mm512_storeu_si512(start + found, _mm512_maskz_compress_epi32(cut, place));
        found += (unsigned)__builtin_popcount(cut);
        at += (m - AROUND) * WIDE_BYTES;
    }
    for (; m > AROUND && m <= FEW; m--, at += WIDE_BYTES) {
        start[found] = (uint32_t)at;
        found += split_point4_is_cut(t, text + at);
    }
    *k = found;
    return at;
}
#endif

/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/cache/kernels.h"

/* local_cache_find for eight words at once. */

#ifdef __x86_64__
enum { AHEAD = 128 /* words whose keys are computed before the first lookup */ };

/* Entry k of a table of sixteen. */
AVX512 static inline __m512i pick(const uint64_t *table, __m512i k)
{
    return _mm512_permutex2var_epi64(_mm512_loadu_si512(table), k, _mm512_loadu_si512(table + 8));
}

/* The first and the second eight bytes at eight positions of a text; faster than a gather. */
AVX512 static inline void load8(const char *text, const uint32_t *at, __m512i *ret_first,
                                __m512i *ret_second)
{
#define LOAD(k) _mm_loadu_si128((const __m128i *)(text + at[k]))
    __m512i a = _mm512_castsi128_si512(LOAD(0)), b = _mm512_castsi128_si512(LOAD(1));
    a = _mm512_mask_broadcast_i64x2(a, 0x0c, LOAD(2));
    b = _mm512_mask_broadcast_i64x2(b, 0x0c, LOAD(3));
    a = _mm512_mask_broadcast_i64x2(a, 0x30, LOAD(4));
    b = _mm512_mask_broadcast_i64x2(b, 0x30, LOAD(5));
    a = _mm512_mask_broadcast_i64x2(a, 0xc0, LOAD(6));
    b = _mm512_mask_broadcast_i64x2(b, 0xc0, LOAD(7));
    *ret_first = _mm512_unpacklo_epi64(a, b);
    *ret_second = _mm512_unpackhi_epi64(a, b);
#undef LOAD
}

/* The hashes and keys of up to eight words. */
AVX512 static inline void want8(const char *text, const uint32_t *start, __mmask8 have,
                                uint64_t *ret_hash, uint64_t *ret_key)
{
    uint32_t at[8];
    __m512i low, high;
    __m256i begin = _mm256_maskz_loadu_epi32(have, start);
    __m256i end = _mm256_maskz_loadu_epi32(have, start + 1);
    __m512i length = _mm512_cvtepu32_epi64(_mm256_sub_epi32(end, begin));
    if (have != 0xff) {
        _mm256_storeu_si256((__m256i *)at, begin);
        start = at;
    }
    load8(text, start, &low, &high);
    low = _mm512_and_si512(low, pick(low_mask, length));
    high = _mm512_and_si512(high, pick(high_mask, length));
    __m512i ninth = _mm512_or_si512(high, _mm512_set1_epi64(SMALL_NINTH));
    high = _mm512_or_si512(high, _mm512_slli_epi64(length, 56));
    __m512i hash = _mm512_add_epi64(_mm512_mullo_epi64(low, _mm512_set1_epi64((int64_t)MIX_LOW)),
                                    _mm512_mullo_epi64(high, _mm512_set1_epi64((int64_t)MIX_HIGH)));
    __mmask8 nine = _mm512_cmpeq_epi64_mask(length, _mm512_set1_epi64(SMALL));
    __mmask8 small = _mm512_cmplt_epu64_mask(_mm512_sub_epi64(length, _mm512_set1_epi64(1)),
                                             _mm512_set1_epi64(SMALL));
    __m512i rest = _mm512_mask_mov_epi64(length, nine, ninth);
    _mm512_store_si512(ret_hash, hash);
    _mm512_store_si512(ret_key,
                       _mm512_maskz_or_epi64(small, _mm512_slli_epi64(hash, SMALL_FIXED), rest));
}

/* Computes all keys first: waiting for one hash would stall the loads of the next eight words. */
AVX512 void local_cache_find_avx512(const struct local_cache *f, const char *text,
                                    const uint32_t *start, size_t n, struct local_words *w)
{
    const __m128i shift = _mm_cvtsi32_si128(64 - f->bits);
    const char *table = (const char *)f->at;
    __m256i index = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    size_t others = 0;
    for (size_t from = 0; from < n; from += AHEAD) {
        size_t to = n - from < AHEAD ? n : from + AHEAD;
        for (size_t i = from; i < to; i += 8) {
            __mmask8 have = n - i < 8 ? (__mmask8)((1u << (n - i)) - 1) : 0xff;
            want8(text, start + i, have, w->hash + i, w->key + i);
        }
        for (size_t i = from; i < to; i += 8) {
            __mmask8 have = n - i < 8 ? (__mmask8)((1u << (n - i)) - 1) : 0xff;
            __m512i hash = _mm512_load_si512(w->hash + i), key = _mm512_load_si512(w->key + i);
            __m512i place = _mm512_slli_epi64(_mm512_srl_epi64(hash, shift), 4);
            _Static_assert(sizeof(struct small) == 16, "indices are scaled by 16");
            __m512i here = _mm512_i64gather_epi64(place, table, 1);
            _mm512_store_si512(w->ids + i, _mm512_i64gather_epi64(place, table + 8, 1));
            __mmask8 missing = _mm512_cmpneq_epi64_mask(here, key);
            missing |= _mm512_testn_epi64_mask(key, key);
            missing &= have;
            _mm256_storeu_si256((__m256i *)(w->other + others),
                                _mm256_maskz_compress_epi32(missing, index));
            others += (unsigned)__builtin_popcount(missing);
            index = _mm256_add_epi32(index, _mm256_set1_epi32(8));
        }
    }
    w->others = others;
}
#endif

/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Merges sixteen words side by side, one per lane of AVX-512, to hide the latency of memory. A step
 * merges the best pair of every word that still has one.
 */

#include "tok/bpe/pair_table.h"

#include "base/core/simd.h"

#ifdef __x86_64__
enum { LANES = 16 };

/* number[i] is that of the pair of symbols i and i + 1, or a lower one. */
struct lanes {
    __m512i sym[BPE_SHORT + 2], number[BPE_SHORT + 1], length;
    unsigned most;   /* symbols of the longest active word, else 0 */
    __mmask16 wrong; /* words in which a different pair was merged than its number says */
    unsigned steps;
    struct joins {
        __m512i number, left, right; /* NONE: nothing was merged */
    } join[BPE_SHORT];               /* of each step, not yet confirmed */
};

/*
 * The numbers of sixteen pairs, NONE where there is no such pair. One in some thousands is the
 * number of a different pair, and then not above that of the pair looked up.
 */
AVX512_INLINE __m512i numbers_of(const struct bpe *m, __m512i left, __m512i right)
{
    const __m512i twice = _mm512_set_epi32(7, 7, 6, 6, 5, 5, 4, 4, 3, 3, 2, 2, 1, 1, 0, 0);
    const __m512i even =
        _mm512_set_epi32(30, 28, 26, 24, 22, 20, 18, 16, 14, 12, 10, 8, 6, 4, 2, 0);
    __m512i high = _mm512_srli_epi32(_mm512_or_si512(left, right), SYMBOL_BITS);
    __mmask16 known = _mm512_testn_epi32_mask(high, high);
    __m128i shift = _mm_cvtsi32_si128(m->shift);
    __m512i x = _mm512_xor_si512(
        _mm512_mullo_epi32(left, _mm512_set1_epi32((int)HASH_LEFT)),
        _mm512_mullo_epi32(_mm512_add_epi32(right, _mm512_set1_epi32((int)m->seed)),
                           _mm512_set1_epi32((int)HASH_RIGHT)));
    x = _mm512_mullo_epi32(_mm512_xor_si512(x, _mm512_srli_epi32(x, 15)),
                           _mm512_set1_epi32((int)HASH_MIX));
    __m512i a = _mm512_srl_epi32(x, shift);
    __m512i b = _mm512_srl_epi32(_mm512_mullo_epi32(_mm512_xor_si512(x, _mm512_srli_epi32(x, 16)),
                                                    _mm512_set1_epi32((int)HASH_SECOND)),
                                 shift);
    __m512i tag = _mm512_sll_epi32(x, _mm_cvtsi32_si128(m->bits));
    __m512i low = _mm512_permutexvar_epi32(twice, tag);
    __m512i top = _mm512_permutexvar_epi32(_mm512_add_epi32(twice, _mm512_set1_epi32(8)), tag);
    const __m512i none = _mm512_set1_epi32(-1);
    __mmask8 low_known = (__mmask8)known, top_known = (__mmask8)(known >> 8);
    __m256i a1 = _mm512_extracti64x4_epi64(a, 1), b1 = _mm512_extracti64x4_epi64(b, 1);
    __m512i low_a =
        _mm512_mask_i32gather_epi64(none, low_known, _mm512_castsi512_si256(a), m->slot, 8);
    __m512i low_b =
        _mm512_mask_i32gather_epi64(none, low_known, _mm512_castsi512_si256(b), m->slot, 8);
    __m512i top_a = _mm512_mask_i32gather_epi64(none, top_known, a1, m->slot, 8);
    __m512i top_b = _mm512_mask_i32gather_epi64(none, top_known, b1, m->slot, 8);
    low = _mm512_min_epu32(_mm512_xor_si512(low_a, low), _mm512_xor_si512(low_b, low));
    top = _mm512_min_epu32(_mm512_xor_si512(top_a, top), _mm512_xor_si512(top_b, top));
    __m512i odd = _mm512_add_epi32(even, _mm512_set1_epi32(1));
    __m512i number = _mm512_min_epu32(_mm512_permutex2var_epi32(low, even, top),
                                      _mm512_permutex2var_epi32(low, odd, top));
    known &= _mm512_cmplt_epu32_mask(number, _mm512_set1_epi32((int)m->n));
    return _mm512_mask_mov_epi32(_mm512_set1_epi32(-1), known, number);
}

/* numbers_of for initial symbols. */
AVX512_INLINE __m512i first_numbers(const struct bpe *m, __m512i left, __m512i right)
{
    const __m512i base = _mm512_set1_epi32((int)m->base), most = _mm512_set1_epi32(FIRST - 1);
    const __m512i none = _mm512_set1_epi32(-1);
    __mmask16 pairs = _mm512_cmpneq_epi32_mask(right, none);
    __m512i row = _mm512_sub_epi32(left, base), column = _mm512_sub_epi32(right, base);
    if (_mm512_mask_cmpgt_epu32_mask(pairs, _mm512_or_si512(row, column), most))
        return numbers_of(m, left, right);
    __m512i at = _mm512_add_epi32(_mm512_slli_epi32(row, 8), column);
    _Static_assert(FIRST == 1 << 8, "a row");
    return _mm512_mask_i32gather_epi32(none, pairs, at, m->first, 4);
}

/* What eight pairs with these numbers become; *ret_wrong: those that are different pairs. */
AVX512_INLINE __m256i eight_ids(const struct bpe *m, __m256i number, __m256i left, __m256i right,
                                __mmask8 *ret_wrong)
{
    __mmask8 some = _mm256_cmpneq_epi32_mask(number, _mm256_set1_epi32(-1));
    __m512i key = _mm512_or_si512(_mm512_slli_epi64(_mm512_cvtepu32_epi64(left), 2 * SYMBOL_BITS),
                                  _mm512_slli_epi64(_mm512_cvtepu32_epi64(right), SYMBOL_BITS));
    __m512i pair = _mm512_mask_i32gather_epi64(key, some, number, m->pair, 8);
    __m512i id = _mm512_xor_si512(pair, key);
    *ret_wrong = _mm512_cmpgt_epu64_mask(id, _mm512_set1_epi64((1 << SYMBOL_BITS) - 1));
    return _mm512_cvtepi64_epi32(id);
}

/* The same for sixteen. */
AVX512_INLINE __m512i ids_of(const struct bpe *m, __m512i number, __m512i left, __m512i right,
                             __mmask16 *ret_wrong)
{
    __mmask8 wrong[2];
    __m256i low = eight_ids(m, _mm512_castsi512_si256(number), _mm512_castsi512_si256(left),
                            _mm512_castsi512_si256(right), &wrong[0]);
    __m256i top =
        eight_ids(m, _mm512_extracti64x4_epi64(number, 1), _mm512_extracti64x4_epi64(left, 1),
                  _mm512_extracti64x4_epi64(right, 1), &wrong[1]);
    *ret_wrong = (__mmask16)(wrong[0] | wrong[1] << 8);
    return _mm512_inserti64x4(_mm512_castsi256_si512(low), top, 1);
}

/* Merges the best pair of each word. */
AVX512_INLINE void step(const struct bpe *m, struct lanes *w)
{
    unsigned most = w->most;
    const __m512i none = _mm512_set1_epi32(-1);
    __m512i best = none, at = none, before = none, left = none, right = none, behind = none;
    for (unsigned i = 0; i + 1 < most; i++)
        best = _mm512_min_epu32(best, w->number[i]);
    __mmask16 some = _mm512_cmpneq_epi32_mask(best, none);
    w->most = 0;
    if (!some)
        return;
    for (unsigned i = most - 1; i-- > 0;) {
        __mmask16 here = _mm512_cmpeq_epi32_mask(w->number[i], best);
        at = _mm512_mask_mov_epi32(at, here, _mm512_set1_epi32((int)i));
        before = _mm512_mask_mov_epi32(before, here, i ? w->sym[i - 1] : none);
        left = _mm512_mask_mov_epi32(left, here, w->sym[i]);
        right = _mm512_mask_mov_epi32(right, here, w->sym[i + 1]);
        behind = _mm512_mask_mov_epi32(behind, here, w->sym[i + 2]);
    }
    __m512i id;
    if (m->made == NONE) {
        __mmask16 wrong;
        id = ids_of(m, best, left, right, &wrong);
        w->wrong |= wrong;
    } else { /* confirmed later, when nothing depends on it */
        id = _mm512_add_epi32(best, _mm512_set1_epi32((int)m->made));
        w->join[w->steps++] = (struct joins){best, left, right};
    }
    id = _mm512_mask_mov_epi32(none, some, id);
    __m512i first = numbers_of(m, before, id), second = numbers_of(m, id, behind);
    __m512i last = _mm512_sub_epi32(at, _mm512_set1_epi32(1));
    for (unsigned i = 0; i < most; i++) {
        __m512i place = _mm512_set1_epi32((int)i);
        __mmask16 past = some & _mm512_cmpgt_epi32_mask(place, at);
        __mmask16 here = some & _mm512_cmpeq_epi32_mask(place, at);
        __mmask16 left_of = some & _mm512_cmpeq_epi32_mask(place, last);
        __m512i sym = _mm512_mask_mov_epi32(w->sym[i], past, w->sym[i + 1]);
        __m512i number = _mm512_mask_mov_epi32(w->number[i], past, w->number[i + 1]);
        w->sym[i] = _mm512_mask_mov_epi32(sym, here, id);
        number = _mm512_mask_mov_epi32(number, here, second);
        w->number[i] = _mm512_mask_mov_epi32(number, left_of, first);
    }
    w->length = _mm512_mask_sub_epi32(w->length, some, w->length, _mm512_set1_epi32(1));
    w->most = (unsigned)_mm512_reduce_max_epi32(w->length);
}

AVX512 static void confirm(const struct bpe *m, struct lanes *w)
{
    for (unsigned i = 0; i < w->steps; i++) {
        const struct joins *x = &w->join[i];
        __mmask16 wrong;
        ids_of(m, x->number, x->left, x->right, &wrong);
        w->wrong |= wrong;
    }
}

/* Words first .. first + LANES of the caller's. */
AVX512 static void merge_avx512_take(const struct bpe *m, struct lanes *w,
                                     uint32_t sym[][BPE_LANES], const uint32_t *n, size_t first,
                                     size_t count)
{
    __mmask16 some = (__mmask16)(count - first < LANES ? (1u << (count - first)) - 1 : 0xffff);
    w->length = _mm512_maskz_loadu_epi32(some, n + first);
    unsigned most = (unsigned)_mm512_reduce_max_epi32(w->length);
    w->most = most;
    w->wrong = 0;
    w->steps = 0;
    for (unsigned i = 0; i < most + 2; i++) {
        __mmask16 has = _mm512_cmpgt_epi32_mask(w->length, _mm512_set1_epi32((int)i));
        w->sym[i] = i < most ? _mm512_mask_loadu_epi32(_mm512_set1_epi32(-1), has, sym[i] + first)
                             : _mm512_set1_epi32(-1);
    }
    for (unsigned i = 0; i + 1 < most; i++)
        w->number[i] = first_numbers(m, w->sym[i], w->sym[i + 1]);
    for (unsigned i = most ? most - 1 : 0; i <= most; i++)
        w->number[i] = _mm512_set1_epi32(-1);
}

/* Writes the words back, except the wrong ones; returns a bit for each of these. */
AVX512 static uint32_t give(const struct lanes *w, uint32_t sym[][BPE_LANES], uint32_t *n,
                            size_t first, size_t count)
{
    __mmask16 some = (__mmask16)(count - first < LANES ? (1u << (count - first)) - 1 : 0xffff);
    unsigned most = (unsigned)_mm512_reduce_max_epi32(w->length);
    some &= (__mmask16)~w->wrong;
    for (unsigned i = 0; i < most; i++)
        _mm512_mask_storeu_epi32(sym[i] + first, some, w->sym[i]);
    _mm512_mask_storeu_epi32(n + first, some, w->length);
    return (uint32_t)w->wrong << first;
}

/* Two groups of sixteen alternate: while one waits for its lookups, the other works. */
AVX512 uint32_t bpe_lanes_merge(const struct bpe *m, uint32_t sym[][BPE_LANES], uint32_t *n,
                                size_t count)
{
    struct lanes w[BPE_LANES / LANES];
    uint32_t wrong = 0;
    w[1].most = 0;
    merge_avx512_take(m, &w[0], sym, n, 0, count);
    if (count > LANES)
        merge_avx512_take(m, &w[1], sym, n, LANES, count);
    while (w[0].most > 1 || w[1].most > 1) {
        for (int k = 0; k < 2; k++)
            if (w[k].most > 1)
                step(m, &w[k]);
    }
    for (size_t k = 0; k * LANES < count; k++) {
        confirm(m, &w[k]);
        wrong |= give(&w[k], sym, n, k * LANES, count);
    }
    return wrong;
}

AVX512 void bpe_lanes_put(const uint32_t of[256], const char *text, const uint32_t *at,
                          const uint32_t *n, size_t count, uint32_t sym[][BPE_LANES])
{
    const __m512i byte = _mm512_set1_epi32(0xff), none = _mm512_setzero_si512();
    for (size_t first = 0; first < count; first += LANES) {
        __mmask16 some = (__mmask16)(count - first < LANES ? (1u << (count - first)) - 1 : 0xffff);
        __m512i length = _mm512_maskz_loadu_epi32(some, n + first);
        __m512i begin = _mm512_maskz_loadu_epi32(some, at + first);
        unsigned most = (unsigned)_mm512_reduce_max_epi32(length);
        for (unsigned i = 0; i < most; i += 4) {
            __mmask16 has = _mm512_cmpgt_epi32_mask(length, _mm512_set1_epi32((int)i));
            __m512i four = _mm512_mask_i32gather_epi32(none, has, begin, text + i, 1);
            for (unsigned k = i; k < i + 4; k++, four = _mm512_srli_epi32(four, 8)) {
                __m512i x = _mm512_i32gather_epi32(_mm512_and_si512(four, byte), of, 4);
                _mm512_storeu_si512(sym[k] + first, x);
            }
        }
    }
}

#else

uint32_t bpe_lanes_merge(const struct bpe *m, uint32_t sym[][BPE_LANES], uint32_t *n, size_t count)
{
    (void)m, (void)sym, (void)n, (void)count;
    return 0;
}

void bpe_lanes_put(const uint32_t of[256], const char *text, const uint32_t *at, const uint32_t *n,
                   size_t count, uint32_t sym[][BPE_LANES])
{
    (void)of, (void)text, (void)at, (void)n, (void)count, (void)sym;
}

#endif

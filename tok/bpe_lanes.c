/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Sixteen words merged side by side, one in each lane of AVX-512: what one word waits for, memory
 * above all, the others hide. A step joins the best pair of every word that still has one.
 */

#include "tok/bpe_table.h"

#ifdef __x86_64__
#include <immintrin.h>

#define WIDE __attribute__((target("avx512f,avx512dq,avx512vl,avx512bw")))
#define INLINE WIDE static inline __attribute__((always_inline))

enum { LANES = 16 };

/* rank[i] is that of symbols i and i + 1. */
struct lanes {
    __m512i sym[BPE_SHORT + 2], rank[BPE_SHORT + 1], length;
    unsigned most; /* of symbols in a word that may go on, else 0 */
};

/* Of eight pairs, as keys: the slot out of two, all ones if neither is theirs. */
INLINE __m512i slots_of(const struct bpe *m, __m512i key, __m256i first, __m256i second)
{
    __m512i a = _mm512_i32gather_epi64(first, m->slot, 8);
    __m512i b = _mm512_i32gather_epi64(second, m->slot, 8);
    __m512i of_a = _mm512_srli_epi64(_mm512_xor_si512(a, key), RANK_BITS);
    __m512i of_b = _mm512_srli_epi64(_mm512_xor_si512(b, key), RANK_BITS);
    __m512i r =
        _mm512_mask_mov_epi64(_mm512_set1_epi64(-1), _mm512_testn_epi64_mask(of_a, of_a), a);
    return _mm512_mask_mov_epi64(r, _mm512_testn_epi64_mask(of_b, of_b), b);
}

INLINE __m512i keys_of(__m256i left, __m256i right)
{
    return _mm512_or_si512(_mm512_slli_epi64(_mm512_cvtepu32_epi64(left), SYMBOL_BITS + RANK_BITS),
                           _mm512_slli_epi64(_mm512_cvtepu32_epi64(right), RANK_BITS));
}

/* The ranks of sixteen pairs, NONE for those that are none. */
INLINE __m512i ranks_of(const struct bpe *m, __m512i left, __m512i right)
{
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
    __m512i low = slots_of(m, keys_of(_mm512_castsi512_si256(left), _mm512_castsi512_si256(right)),
                           _mm512_castsi512_si256(a), _mm512_castsi512_si256(b));
    __m512i top = slots_of(
        m, keys_of(_mm512_extracti64x4_epi64(left, 1), _mm512_extracti64x4_epi64(right, 1)),
        _mm512_extracti64x4_epi64(a, 1), _mm512_extracti64x4_epi64(b, 1));
    __m512i slot = _mm512_inserti64x4(_mm512_castsi256_si512(_mm512_cvtepi64_epi32(low)),
                                      _mm512_cvtepi64_epi32(top), 1);
    __m512i rank = _mm512_and_si512(slot, _mm512_set1_epi32((1 << RANK_BITS) - 1));
    known &= _mm512_cmpneq_epi32_mask(slot, _mm512_set1_epi32(-1));
    return _mm512_mask_mov_epi32(_mm512_set1_epi32(-1), known, rank);
}

/* ranks_of, of symbols that no merging made. */
INLINE __m512i first_ranks(const struct bpe *m, __m512i left, __m512i right)
{
    const __m512i base = _mm512_set1_epi32((int)m->base), most = _mm512_set1_epi32(FIRST - 1);
    const __m512i none = _mm512_set1_epi32(-1);
    __mmask16 pairs = _mm512_cmpneq_epi32_mask(right, none);
    __m512i row = _mm512_sub_epi32(left, base), column = _mm512_sub_epi32(right, base);
    if (_mm512_mask_cmpgt_epu32_mask(pairs, _mm512_or_si512(row, column), most))
        return ranks_of(m, left, right);
    __m512i at = _mm512_add_epi32(_mm512_slli_epi32(row, 8), column);
    _Static_assert(FIRST == 1 << 8, "a row");
    return _mm512_mask_i32gather_epi32(none, pairs, at, m->first, 4);
}

/* Joins the best pair of each word. */
INLINE void step(const struct bpe *m, struct lanes *w)
{
    unsigned most = w->most;
    const __m512i none = _mm512_set1_epi32(-1);
    __m512i best = none, at = none, before = none, behind = none;
    for (unsigned i = 0; i + 1 < most; i++)
        best = _mm512_min_epu32(best, w->rank[i]);
    __mmask16 some = _mm512_cmpneq_epi32_mask(best, none);
    w->most = 0;
    if (!some)
        return;
    for (unsigned i = most - 1; i-- > 0;) {
        __mmask16 here = _mm512_cmpeq_epi32_mask(w->rank[i], best);
        at = _mm512_mask_mov_epi32(at, here, _mm512_set1_epi32((int)i));
        before = _mm512_mask_mov_epi32(before, here, i ? w->sym[i - 1] : none);
        behind = _mm512_mask_mov_epi32(behind, here, w->sym[i + 2]);
    }
    __m512i id = _mm512_mask_i32gather_epi32(none, some, best, m->id, 4);
    __m512i left = ranks_of(m, before, id), right = ranks_of(m, id, behind);
    __m512i last = _mm512_sub_epi32(at, _mm512_set1_epi32(1));
    for (unsigned i = 0; i < most; i++) {
        __m512i place = _mm512_set1_epi32((int)i);
        __mmask16 past = some & _mm512_cmpgt_epi32_mask(place, at);
        __mmask16 here = some & _mm512_cmpeq_epi32_mask(place, at);
        __mmask16 left_of = some & _mm512_cmpeq_epi32_mask(place, last);
        __m512i sym = _mm512_mask_mov_epi32(w->sym[i], past, w->sym[i + 1]);
        __m512i rank = _mm512_mask_mov_epi32(w->rank[i], past, w->rank[i + 1]);
        w->sym[i] = _mm512_mask_mov_epi32(sym, here, id);
        rank = _mm512_mask_mov_epi32(rank, here, right);
        w->rank[i] = _mm512_mask_mov_epi32(rank, left_of, left);
    }
    w->length = _mm512_mask_sub_epi32(w->length, some, w->length, _mm512_set1_epi32(1));
    w->most = (unsigned)_mm512_reduce_max_epi32(w->length);
}

/* Words first .. first + LANES of the caller's. */
WIDE static void take(const struct bpe *m, struct lanes *w, uint32_t sym[][BPE_LANES],
                      const uint32_t *n, size_t first, size_t count)
{
    __mmask16 some = (__mmask16)(count - first < LANES ? (1u << (count - first)) - 1 : 0xffff);
    w->length = _mm512_maskz_loadu_epi32(some, n + first);
    unsigned most = (unsigned)_mm512_reduce_max_epi32(w->length);
    w->most = most;
    for (unsigned i = 0; i < most + 2; i++) {
        __mmask16 has = _mm512_cmpgt_epi32_mask(w->length, _mm512_set1_epi32((int)i));
        w->sym[i] = i < most ? _mm512_mask_loadu_epi32(_mm512_set1_epi32(-1), has, sym[i] + first)
                             : _mm512_set1_epi32(-1);
    }
    for (unsigned i = 0; i + 1 < most; i++)
        w->rank[i] = first_ranks(m, w->sym[i], w->sym[i + 1]);
    for (unsigned i = most ? most - 1 : 0; i <= most; i++)
        w->rank[i] = _mm512_set1_epi32(-1);
}

WIDE static void give(const struct lanes *w, uint32_t sym[][BPE_LANES], uint32_t *n, size_t first,
                      size_t count)
{
    __mmask16 some = (__mmask16)(count - first < LANES ? (1u << (count - first)) - 1 : 0xffff);
    unsigned most = (unsigned)_mm512_reduce_max_epi32(w->length);
    for (unsigned i = 0; i < most; i++)
        _mm512_storeu_si512(sym[i] + first, w->sym[i]);
    _mm512_mask_storeu_epi32(n + first, some, w->length);
}

/* Two times sixteen in turn: while the one waits for its pairs, the other goes on. */
WIDE void bpe_lanes_merge(const struct bpe *m, uint32_t sym[][BPE_LANES], uint32_t *n, size_t count)
{
    struct lanes w[BPE_LANES / LANES];
    w[1].most = 0;
    take(m, &w[0], sym, n, 0, count);
    if (count > LANES)
        take(m, &w[1], sym, n, LANES, count);
    while (w[0].most > 1 || w[1].most > 1) {
        for (int k = 0; k < 2; k++)
            if (w[k].most > 1)
                step(m, &w[k]);
    }
    give(&w[0], sym, n, 0, count);
    if (count > LANES)
        give(&w[1], sym, n, LANES, count);
}

#else

void bpe_lanes_merge(const struct bpe *m, uint32_t sym[][BPE_LANES], uint32_t *n, size_t count)
{
    (void)m, (void)sym, (void)n, (void)count;
}

#endif

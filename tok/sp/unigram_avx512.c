/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/sp/kernels.h"

/* unigram_lanes.c with sixteen characters, and sixteen texts, in the lanes of a register. */

#ifdef __x86_64__
enum { LANES = AHO_CORASICK_LANES, FEW = 3 /* texts that are not worth a register */ };

AVX512_INLINE __m512i all(uint32_t x)
{
    return _mm512_set1_epi32((int)x);
}
AVX512 size_t unigram_spread_avx512(const char *text, size_t n, uint32_t *to)
{
    const __m512i words = _mm512_setr_epi32(0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4);
    const __m512i bytes =
        _mm512_broadcast_i32x4(_mm_setr_epi8(0, 1, 2, 3, 1, 2, 3, 4, 2, 3, 4, 5, 3, 4, 5, 6));
    const uint32_t *from = to;
    for (size_t at = 0; at < n; at += LANES) {
        __m512i v = _mm512_loadu_si512(text + at);
        __mmask16 first = _mm_cmpgt_epi8_mask(_mm512_castsi512_si128(v), _mm_set1_epi8(-65));
        first &= (__mmask16)(n - at < LANES ? (1u << (n - at)) - 1 : 0xffff);
        v = _mm512_shuffle_epi8(_mm512_permutexvar_epi32(words, v), bytes);
        _mm512_storeu_si512(to, _mm512_maskz_compress_epi32(first, v));
        to += __builtin_popcount(first);
    }
    return (size_t)(to - from);
}

/* The code points of characters whose bytes are in the lanes. */
AVX512_INLINE __m512i code_points(__m512i bytes)
{
    const __m512i turned =
        _mm512_broadcast_i32x4(_mm_setr_epi8(3, 2, 1, 0, 7, 6, 5, 4, 11, 10, 9, 8, 15, 14, 13, 12));
    const __m512i bits =
        _mm512_setr_epi32(0, 0x7f, 0x7ff, 0xffff, 0x1fffff, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
    __m512i first = _mm512_and_si512(bytes, all(0xff)), length = all(1);
    for (uint32_t more = 0xc0; more <= 0xf0; more = more >> 1 | 0x80)
        length = _mm512_mask_add_epi32(length, _mm512_cmpge_epu32_mask(first, all(more)), length,
                                       all(1));
    __m512i x = _mm512_shuffle_epi8(bytes, turned);
    __m512i low = _mm512_or_si512(_mm512_and_si512(x, all(0x3f)),
                                  _mm512_and_si512(_mm512_srli_epi32(x, 2), all(0x3f << 6)));
    __m512i high =
        _mm512_or_si512(_mm512_and_si512(_mm512_srli_epi32(x, 4), all(0x3f << 12)),
                        _mm512_and_si512(_mm512_srli_epi32(x, 6), all((uint32_t)0xff << 18)));
    __m512i unused = _mm512_mullo_epi32(_mm512_sub_epi32(all(4), length), all(6));
    x = _mm512_srlv_epi32(_mm512_or_si512(low, high), unused);
    return _mm512_and_si512(x, _mm512_permutexvar_epi32(length, bits));
}

AVX512 bool unigram_number_avx512(const struct unigram *u, uint32_t *number, size_t n, bool raw)
{
    const __m512i ascii = _mm512_broadcast_i32x4(_mm_loadu_si128((const void *)u->stays));
    const __m512i space = all(u->space);
    __mmask16 rough = 0;
    for (size_t i = 0; i < n; i += LANES) {
        size_t left = n - i;
        __mmask16 some = (__mmask16)(left < LANES ? (1u << left) - 1 : 0xffff);
        __m512i x = _mm512_maskz_loadu_epi32(some, number + i);
        __mmask16 mark = _mm512_cmpeq_epi32_mask(_mm512_and_si512(x, all(0xff)), all(UNIGRAM_MARK));
        some &= (__mmask16)~mark;
        __mmask16 high = _mm512_mask_test_epi32_mask(some, x, all(0x80));
        __m512i c = _mm512_and_si512(x, all(0x7f));
        c = high ? _mm512_mask_mov_epi32(c, high, code_points(x)) : c;
        __m512i place = _mm512_srli_epi32(c, 5), bits = _mm512_permutexvar_epi32(place, ascii);
        __m512i to = _mm512_add_epi32(c, all(1));
        if (high) {
            to = _mm512_mask_i32gather_epi32(to, high, c, u->ends.number, 4);
            bits = _mm512_mask_i32gather_epi32(bits, high, place, u->plain.bits, 4);
        }
        bits = _mm512_srlv_epi32(bits, _mm512_and_si512(c, all(31)));
        __mmask16 other = _mm512_mask_testn_epi32_mask(some, bits, all(1));
        other = raw ? other : 0;
        to = _mm512_mask_or_epi32(to, other, to, all(UNIGRAM_ROUGH));
        to = _mm512_mask_mov_epi32(to, mark, space);
        _mm512_storeu_si512(number + i, to);
        rough |= other;
    }
    return rough;
}
/* Sixteen texts side by side, after `at` characters. */
struct group {
    uint32_t *piece, *gap, *sum; /* their first rows */
    __m512i chars;
    __m512 score, far; /* of the best paths; the largest magnitude so far */
};

/* The paths to the next position, while they are compared. */
struct paths {
    __mmask16 live, some; /* lanes in use; those with another path */
    __m512 to, second;    /* the best sums */
    __m512i last;         /* last piece of the best path, and its characters */
    __m512i piece;        /* last piece of the next path */
    __m512i length;       /* of the last piece of the path before */
};

AVX512_INLINE struct paths begin(const struct group *g, uint32_t at)
{
    const __m512 none = _mm512_set1_ps(-INFINITY);
    struct paths w = {
        .to = none, .second = none, .last = all(1 << AHO_CORASICK_CHARS), .length = all(0)};
    w.live = _mm512_cmpgt_epu32_mask(g->chars, all(at));
    w.piece = _mm512_maskz_loadu_epi32(w.live, g->piece + (size_t)at * LANES);
    w.some = _mm512_test_epi32_mask(w.piece, w.piece);
    return w;
}

AVX512_INLINE void offer(struct paths *w, __mmask16 some, __m512 sum, __m512i last)
{
    __mmask16 better = _mm512_mask_cmp_ps_mask(some, sum, w->to, _CMP_GT_OQ);
    __m512 other = _mm512_mask_mov_ps(sum, better, w->to);
    w->second = _mm512_mask_max_ps(w->second, some, w->second, other);
    w->to = _mm512_mask_mov_ps(w->to, better, sum);
    w->last = _mm512_mask_mov_epi32(w->last, better, last);
}

/* Takes the next path in each lane that has one. */
AVX512_INLINE void take_next(const struct aho_corasick_piece *piece, const struct group *g,
                             struct paths *w, uint32_t at)
{
    const __m512i even =
        _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    const __m512i lane = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    _Static_assert(sizeof(*piece) == 12, "indices are scaled by 4");
    __m512i place = _mm512_add_epi32(w->piece, _mm512_slli_epi32(w->piece, 1)), zero = all(0);
    __m512i low = _mm512_mask_i32gather_epi64(zero, (__mmask8)w->some,
                                              _mm512_castsi512_si256(place), piece, 4);
    __m512i high = _mm512_mask_i32gather_epi64(zero, (__mmask8)(w->some >> 8),
                                               _mm512_extracti64x4_epi64(place, 1), piece, 4);
    __m512 score = _mm512_castsi512_ps(_mm512_permutex2var_epi32(low, even, high));
    __m512i more = _mm512_permutex2var_epi32(low, _mm512_or_si512(even, all(1)), high);
    __m512i length = _mm512_srli_epi32(more, AHO_CORASICK_CHARS);
    __m512i from = _mm512_sub_epi32(all(at + 1), length);
    from = _mm512_or_si512(_mm512_slli_epi32(from, 4), lane);
    __mmask16 longer = _mm512_mask_cmpgt_epu32_mask(w->some, length, all(1));
    __m512 before = _mm512_mask_i32gather_ps(g->score, longer, from, g->sum, 4);
    offer(w, w->some, _mm512_add_ps(score, before),
          _mm512_or_si512(w->piece, _mm512_slli_epi32(length, AHO_CORASICK_CHARS)));
    w->length = _mm512_mask_mov_epi32(w->length, w->some, length);
    w->piece = _mm512_and_si512(more, all(AHO_CORASICK_NEXT));
    w->some = _mm512_mask_test_epi32_mask(w->some, w->piece, w->piece);
}

AVX512_INLINE void end(const struct unigram *u, struct group *g, struct paths *w, uint32_t at)
{
    __mmask16 unknown = _mm512_mask_cmpneq_epu32_mask(w->live, w->length, all(1));
    if (unknown)
        offer(w, unknown, _mm512_add_ps(_mm512_set1_ps(u->unk_score), g->score),
              all(1 << AHO_CORASICK_CHARS));
    __mmask16 known = _mm512_test_epi32_mask(w->last, all(AHO_CORASICK_NEXT));
    __m512 gap = _mm512_maskz_sub_round_ps(known, w->to, w->second,
                                           _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
    g->score = w->to;
    g->far = _mm512_mask_max_ps(g->far, w->live, g->far, _mm512_abs_ps(w->to));
    _mm512_mask_storeu_epi32(g->piece + (size_t)at * LANES, w->live, w->last);
    _mm512_mask_storeu_ps(g->gap + (size_t)at * LANES, w->live, gap);
    _mm512_mask_storeu_ps(g->sum + ((size_t)at + 1) * LANES, w->live, w->to);
}

/* Two groups, so that one works while the other waits for memory. */
AVX512_INLINE void forwards(const struct unigram *u, struct group *g, struct group *h,
                            uint32_t rows)
{
    for (uint32_t at = 0; at < rows; at++) {
        struct paths v = begin(g, at), w = begin(h, at);
        do {
            take_next(u->ends.piece, g, &v, at);
            take_next(u->ends.piece, h, &w, at);
        } while (v.some | w.some);
        end(u, g, &v, at);
        end(u, h, &w, at);
    }
}

/* limit_of for eight texts. */
AVX512_INLINE __m256 limits_of(const struct unigram *u, __m256i chars, __m256 margin, __m256 far)
{
    __m512d terms = _mm512_cvtepu32_pd(chars), zero = _mm512_setzero_pd();
    __m512d room = _mm512_mul_pd(terms, _mm512_set1_pd(u->largest));
    __m512d limit = _mm512_mul_pd(_mm512_cvtps_pd(margin), _mm512_set1_pd(0x1p23));
    limit = _mm512_div_pd(limit, _mm512_mul_pd(terms, _mm512_set1_pd(1.02)));
    limit = _mm512_sub_pd(limit, _mm512_mul_pd(room, _mm512_set1_pd(4)));
    __m512d least = _mm512_sub_pd(_mm512_set1_pd((double)UNIGRAM_MOST - 1), _mm512_cvtps_pd(far));
    least = _mm512_sub_pd(least, _mm512_mul_pd(terms, _mm512_set1_pd(0x1p-6)));
    __mmask8 good = _mm512_cmp_pd_mask(room, _mm512_set1_pd(0x1p14), _CMP_LT_OQ);
    return _mm512_cvtpd_ps(_mm512_maskz_max_pd(good, _mm512_min_pd(limit, least), zero));
}

/* The ids, from last to first, and the limits. */
AVX512_INLINE void backwards(const struct unigram *u, struct group *g, uint32_t *ids,
                             float *ret_limit)
{
    const __m512i lane = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    __m512i at = g->chars, count = all(0);
    __m512 margin = _mm512_set1_ps(INFINITY);
    uint32_t *to = g->sum;
    for (__mmask16 live = _mm512_test_epi32_mask(at, at); live; to += LANES) {
        __m512i place = _mm512_or_si512(_mm512_slli_epi32(_mm512_sub_epi32(at, all(1)), 4), lane);
        __m512i last = _mm512_mask_i32gather_epi32(all(0), live, place, g->piece, 4);
        __m512 gap = _mm512_mask_i32gather_ps(margin, live, place, g->gap, 4);
        margin = _mm512_min_ps(margin, gap);
        __m512i id = _mm512_and_si512(last, all(AHO_CORASICK_NEXT));
        __mmask16 known = _mm512_test_epi32_mask(id, id);
        id = _mm512_mask_sub_epi32(all((uint32_t)u->unk), known, id, all(1));
        _mm512_storeu_si512(to, id);
        count = _mm512_mask_add_epi32(count, live, count, all(1));
        at = _mm512_sub_epi32(at, _mm512_srli_epi32(last, AHO_CORASICK_CHARS));
        live = _mm512_test_epi32_mask(at, at);
    }
    _mm512_storeu_si512(ids, count);
    _mm256_storeu_ps(ret_limit,
                     limits_of(u, _mm512_castsi512_si256(g->chars), _mm512_castps512_ps256(margin),
                               _mm512_castps512_ps256(g->far)));
    _mm256_storeu_ps(ret_limit + 8, limits_of(u, _mm512_extracti64x4_epi64(g->chars, 1),
                                              _mm512_extractf32x8_ps(margin, 1),
                                              _mm512_extractf32x8_ps(g->far, 1)));
}

AVX512_INLINE struct group group_of(struct unigram_lanes *w, size_t i)
{
    size_t row = i < w->texts.n ? w->texts.to[i] : 0;
    struct group g = {w->piece + row, w->gap + row, w->sum + row};
    g.chars = i < w->texts.n ? _mm512_loadu_si512(w->chars + i) : all(0);
    g.score = g.far = _mm512_setzero_ps();
    if (i < w->texts.n)
        _mm512_storeu_ps(g.sum, g.score);
    return g;
}

AVX512 size_t unigram_paths_avx512(const struct unigram *u, struct unigram_lanes *w)
{
    size_t i = 0;
    for (; i + FEW < w->texts.n; i += 2 * LANES) {
        struct group g = group_of(w, i), h = group_of(w, i + LANES);
        uint32_t most = (uint32_t)_mm512_reduce_max_epu32(_mm512_max_epu32(g.chars, h.chars));
        forwards(u, &g, &h, most);
        backwards(u, &g, w->ids + i, w->limit + i);
        backwards(u, &h, w->ids + i + LANES, w->limit + i + LANES);
    }
    return i;
}
#endif

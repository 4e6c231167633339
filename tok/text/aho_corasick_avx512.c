/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/text/kernels.h"

/* aho_corasick_walk_fn with sixteen texts in the lanes of a register. */

#ifdef __x86_64__
enum { LANES = AHO_CORASICK_LANES, UNIT_WORDS = sizeof(struct aho_corasick_unit) / 8 };

/* Texts in progress, one per lane. */
struct group {
    __m512i at, end, to, state, base, fail;
    __mmask16 live, over; /* active lanes, and those whose text has ended */
};

AVX512_INLINE __m512i all(uint32_t x)
{
    return _mm512_set1_epi32((int)x);
}

/* Gathers one field of the units of some lanes; `field` is that of the first unit. */
AVX512_INLINE __m512i of_units(__mmask16 some, __m512i state, const uint32_t *field)
{
    __m512i place = _mm512_mullo_epi32(state, all(UNIT_WORDS));
    return _mm512_mask_i32gather_epi32(_mm512_setzero_si512(), some, place, field, 8);
}

/* Starts other texts in the lanes whose text has ended. Branch-free: whether any has ended is known
 * only when memory has answered, and the other group shall work until then. */
AVX512_INLINE void refill(struct group *g, const struct aho_corasick_unit *root,
                          const struct aho_corasick_texts *t, size_t *next)
{
    unsigned left = (unsigned)(t->n - *next < LANES ? t->n - *next : LANES);
    __mmask16 over = (__mmask16)_pdep_u32((1u << left) - 1, g->over);
    g->at = _mm512_mask_expandloadu_epi32(g->at, over, t->begin + *next);
    g->end = _mm512_mask_expandloadu_epi32(g->end, over, t->end + *next);
    g->to = _mm512_mask_expandloadu_epi32(g->to, over, t->to + *next);
    g->state = _mm512_mask_mov_epi32(g->state, over, all(AHO_CORASICK_ROOT));
    g->base = _mm512_mask_mov_epi32(g->base, over, all(root->base));
    g->fail = _mm512_mask_mov_epi32(g->fail, over, all(root->fail));
    g->live |= over;
    *next += (unsigned)__builtin_popcount(over);
}

/* Each lane takes its next character, or follows a failure link. */
AVX512_INLINE void step(struct group *g, const struct aho_corasick *a, const uint32_t *number,
                        uint32_t *ret)
{
    const struct aho_corasick_unit *root = a->unit;
    const __mmask16 live = g->live;
    __m512i to = _mm512_mask_i32gather_epi32(all(0), live, g->at, number, 4);
    to = _mm512_add_epi32(g->base, to);
    __mmask16 good = _mm512_mask_cmpeq_epi32_mask(live, of_units(live, to, &root->check), g->state);
    __mmask16 on = good | _mm512_mask_testn_epi32_mask(live, g->state, g->state);
    g->state = _mm512_mask_mov_epi32(g->fail, good, to); /* else the same character again */
    g->base = of_units(live, g->state, &root->base);
    g->fail = of_units(live, g->state, &root->fail);
    _mm512_mask_i32scatter_epi32(ret, on, g->to, of_units(on, g->state, &root->piece), 4);
    g->to = _mm512_mask_add_epi32(g->to, on, g->to, all(LANES));
    g->at = _mm512_mask_add_epi32(g->at, on, g->at, all(1));
    g->over = _mm512_mask_cmpeq_epi32_mask(on, g->at, g->end);
    g->live &= (__mmask16)~g->over;
}

/* Two groups of lanes, so that one works while the other waits for memory. */
AVX512 void aho_corasick_walk_avx512(const struct aho_corasick *a, const uint32_t *number,
                                     const struct aho_corasick_texts *t, uint32_t *ret)
{
    const __m512i zero = _mm512_setzero_si512();
    struct group g = {zero, zero, zero, zero, zero, zero, 0, 0xffff}, h = g;
    size_t next = 0;
    while (g.live | h.live || next < t->n) {
        refill(&g, a->unit, t, &next);
        step(&g, a, number, ret);
        refill(&h, a->unit, t, &next);
        step(&h, a, number, ret);
    }
}
#endif

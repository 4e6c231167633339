/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/ends.h"

#include <stddef.h>
#include <stdlib.h>
#ifdef __x86_64__
#include <immintrin.h>
#endif

#include "base/cpu.h"
#include "base/mem.h"

enum { LANES = 16 };

/* ---- building ------------------------------------------------------------------------------ */

/* Units by their parents: first[q] .. first[q + 1] are the places of q's children in `child`. */
struct children {
    uint32_t *first, *child;
};

static bool has_parent(const struct trie *t, uint32_t i)
{
    return t->unit[i].check < t->n;
}

static void find_children(struct children *c, const struct trie *t)
{
    c->first = mem_new(t->n + 2, sizeof(*c->first));
    c->child = mem_new(t->n + 1, sizeof(*c->child));
    for (uint32_t i = 0; i < t->n; i++)
        c->first[has_parent(t, i) ? t->unit[i].check + 2 : 0]++;
    c->first[0] = 0; /* those without one */
    for (size_t q = 2; q < t->n + 2; q++)
        c->first[q] += c->first[q - 1];
    for (uint32_t i = 0; i < t->n; i++)
        if (has_parent(t, i))
            c->child[c->first[t->unit[i].check + 1]++] = i;
}

void ends_init(struct ends *a, const struct trie *t, struct ends_piece *piece)
{
    struct children c;
    size_t n = 1;
    uint32_t *queue = mem_new(t->n + 1, sizeof(*queue));
    find_children(&c, t);
    *a = (struct ends){mem_new(t->n + 256, sizeof(*a->unit)), piece};
    mem_large_pages(a->unit, (t->n + 256) * sizeof(*a->unit));
    for (size_t i = 0; i < t->n + 256; i++)
        a->unit[i] = (struct ends_unit){.base = t->unit[i].base, .check = t->unit[i].check};
    for (size_t at = 0; at < n; at++) { /* the root first, then units of one byte, of two, ... */
        uint32_t q = queue[at];
        for (uint32_t k = c.first[q]; k < c.first[q + 1]; k++) {
            uint32_t i = c.child[k], own = (uint32_t)(t->unit[i].value + 1);
            struct ends_unit *u = &a->unit[i];
            char byte = (char)(i - a->unit[q].base);
            u->fail = q == TRIE_ROOT ? TRIE_ROOT : ends_step(a, a->unit[q].fail, byte);
            u->piece = a->unit[u->fail].piece;
            if (own && piece[own].length) {
                piece[own].next = u->piece;
                u->piece = own;
            }
            queue[n++] = i;
        }
    }
    free(queue);
    free(c.first);
    free(c.child);
}

void ends_finish(struct ends *a)
{
    free(a->unit);
    free(a->piece);
    *a = (struct ends){0};
}

/* ---- text ---------------------------------------------------------------------------------- */

struct lane {
    uint32_t at, end, state;
};

/* The next text that is not empty; false if there is none. */
static bool next_text(struct lane *l, const uint32_t *start, size_t *next, size_t n)
{
    while (*next < n && start[*next] == start[*next + 1])
        ++*next;
    if (*next == n)
        return false;
    *l = (struct lane){start[*next], start[*next + 1], TRIE_ROOT};
    ++*next;
    return true;
}

void ends_walk_plain(const struct ends *a, const char *text, const uint32_t *start, size_t n,
                     uint32_t *ret)
{
    const struct ends_unit *unit = a->unit;
    struct lane lane[LANES];
    size_t lanes = 0, next = 0;
    while (lanes < LANES && next_text(&lane[lanes], start, &next, n))
        lanes++;
    while (lanes) {
        for (size_t i = 0; i < lanes; i++) {
            struct lane *l = &lane[i];
            uint32_t state = l->state, to = unit[state].base + (unsigned char)text[l->at];
            uint32_t good = -(uint32_t)(unit[to].check == state);
            to = (to & good) | (unit[state].fail & ~good);
            ret[l->at] = unit[to].piece;
            __builtin_prefetch(&a->piece[unit[to].piece]);
            l->state = to;
            l->at += (good & 1) | (state == TRIE_ROOT); /* else the same byte once more */
            if (l->at == l->end && !next_text(l, start, &next, n))
                *l = lane[--lanes];
        }
    }
}

#ifdef __x86_64__
#define WIDE __attribute__((target("avx512f,avx512dq,avx512bw,avx512vl,bmi2,popcnt")))
#define INLINE WIDE static inline __attribute__((always_inline))

enum { UNIT_WORDS = sizeof(struct ends_unit) / 8 };

/* One field of the units of some lanes; `field` is that of the first unit. */
INLINE __m512i of_units(__mmask16 some, __m512i state, const uint32_t *field)
{
    __m512i place = _mm512_mullo_epi32(state, _mm512_set1_epi32(UNIT_WORDS));
    return _mm512_mask_i32gather_epi32(_mm512_setzero_si512(), some, place, field, 8);
}

/* Texts of at least a byte, each where the one before it ends. */
WIDE static void walk_wide(const struct ends *a, const char *text, const uint32_t *start, size_t n,
                           uint32_t *ret)
{
    const struct ends_unit *root = a->unit;
    const __m512i base0 = _mm512_set1_epi32((int)root->base);
    const __m512i fail0 = _mm512_set1_epi32((int)root->fail);
    __m512i at = _mm512_setzero_si512(), end = at, state = at, base = at, fail = at;
    __mmask16 live = 0, over = 0xffff;
    for (size_t next = 0;;) {
        if (over) { /* other texts begin in these lanes */
            unsigned free = (unsigned)__builtin_popcount(over);
            if (n - next < free)
                over = (__mmask16)_pdep_u32((1u << (n - next)) - 1, over);
            at = _mm512_mask_expandloadu_epi32(at, over, start + next);
            end = _mm512_mask_expandloadu_epi32(end, over, start + next + 1);
            state = _mm512_mask_mov_epi32(state, over, _mm512_set1_epi32(TRIE_ROOT));
            base = _mm512_mask_mov_epi32(base, over, base0);
            fail = _mm512_mask_mov_epi32(fail, over, fail0);
            next += (unsigned)__builtin_popcount(over);
            live |= over;
        }
        if (!live)
            return;
        __m512i byte = _mm512_mask_i32gather_epi32(at, live, at, text, 1);
        byte = _mm512_and_si512(byte, _mm512_set1_epi32(0xff));
        __m512i to = _mm512_add_epi32(base, byte);
        __mmask16 good =
            _mm512_mask_cmpeq_epi32_mask(live, of_units(live, to, &root->check), state);
        __mmask16 on = good | _mm512_mask_testn_epi32_mask(live, state, state);
        state = _mm512_mask_mov_epi32(fail, good, to); /* else the same byte once more */
        base = of_units(live, state, &root->base);
        fail = of_units(live, state, &root->fail);
        _mm512_mask_i32scatter_epi32(ret, on, at, of_units(on, state, &root->piece), 4);
        at = _mm512_mask_add_epi32(at, on, at, _mm512_set1_epi32(1));
        over = _mm512_mask_cmpeq_epi32_mask(on, at, end);
        live &= (__mmask16)~over;
    }
}
#endif

void ends_walk(const struct ends *a, const char *text, const uint32_t *start, size_t n,
               uint32_t *ret)
{
#ifdef __x86_64__
    enum { LIST = 256 };
    uint32_t list[LIST + 1];
    for (size_t i = 0, k = 0; i < n && cpu_avx512() && __builtin_cpu_supports("bmi2"); k = 0) {
        for (; i < n && k < LIST; i++) {
            list[k] = start[i];
            k += start[i] < start[i + 1];
        }
        list[k] = start[i];
        walk_wide(a, text, list, k, ret);
        if (i == n)
            return;
    }
#endif
    ends_walk_plain(a, text, start, n, ret);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/sure.h"

#include <stdlib.h>
#include <string.h>
#ifdef __x86_64__
#include <immintrin.h>
#endif

#include "base/bytes.h"
#include "base/cpu.h"
#include "base/mem.h"

enum {
    WIDE_BYTES = 3,
    CODES = 1 << 16,
    HASHES = 1 << 16, /* of places with parts of characters */
    PAD = 16,
    MOST_BITS = 17,
    ALONE = 7, /* row or column of a side that is one character; the others are by the next one */
    ANY = 8    /* all of these others */
};

#define NO_RANK ((1u << 30) - 1) /* higher than all */
#define CROWDED (1u << 30)
#define GLUES (1u << 31)

#define MIX_LEFT 0x9E3779B1u
#define MIX_RIGHT 0x85EBCA77u
#define MIX_BOTH 0xC2B2AE3Du

/*
 * Of two characters side by side: the lowest rank across the place, and by the characters around it
 * whether there is any. GLUES: these two alone are a pair of the lowest rank, and made before.
 * CROWDED: other two ought to be here as well, of which nothing is known.
 */
struct sure_pair {
    uint32_t key, low;
    uint64_t around;
};

/* What is not needed when all is there. */
struct filling {
    uint32_t *alone;      /* by pair, the rank of the two alone; 0: it does not count */
    uint32_t made[CODES]; /* NO_RANK: not a character that merging makes */
};

struct sure {
    struct sure_pair *pair;
    int shift;
    uint32_t part[HASHES / 32]; /* a bit for places that a part of a character may join across */
    struct filling *filling;
};

static uint32_t pair_hash(uint32_t left, uint32_t right)
{
    uint32_t x = left * MIX_LEFT ^ right * MIX_RIGHT;
    return (x ^ x >> 15) * MIX_BOTH;
}

/* By the last two bytes of the left and the first two of the right character. */
static uint32_t parts_hash(uint32_t left, uint32_t right)
{
    uint32_t x = (left & 0xfff) << 10 | right >> 6;
    return (x ^ x >> 13) * MIX_LEFT >> 16;
}

static uint32_t row_of(uint32_t code)
{
    return (code * MIX_LEFT >> 16) * ALONE >> 16;
}

static uint32_t column_of(uint32_t code)
{
    return (code * MIX_RIGHT >> 16) * ALONE >> 16;
}

/* ---- filling ------------------------------------------------------------------------------- */

struct sure *sure_create(size_t pairs)
{
    struct sure *s = mem_new(1, sizeof(*s));
    int bits = 8;
    while (bits < MOST_BITS && (size_t)1 << bits < pairs * 2)
        bits++;
    s->shift = 32 - bits;
    s->pair = mem_new((size_t)1 << bits, sizeof(*s->pair));
    mem_large_pages(s->pair, sizeof(*s->pair) << bits);
    s->filling = mem_new(1, sizeof(*s->filling));
    s->filling->alone = mem_new((size_t)1 << bits, sizeof(*s->filling->alone));
    for (size_t i = 0; i < CODES; i++)
        s->filling->made[i] = NO_RANK;
    return s;
}

static void finish_filling(struct sure *s)
{
    if (s->filling)
        free(s->filling->alone);
    free(s->filling);
    s->filling = NULL;
}

void sure_destroy(struct sure *s)
{
    if (!s)
        return;
    finish_filling(s);
    free(s->pair);
    free(s);
}

static uint32_t rank_below(uint32_t rank)
{
    return rank < NO_RANK - 2 ? rank + 1 : NO_RANK - 1; /* 0: unknown */
}

void sure_add_char(struct sure *s, uint32_t code, uint32_t made)
{
    s->filling->made[code] = rank_below(made);
}

static bool continues(char c)
{
    return ((unsigned char)c & 0xc0) == 0x80;
}

/* Of three bytes, as far as it goes. */
static bool is_wide(const char *p, size_t n)
{
    return ((unsigned char)p[0] & 0xf0) == 0xe0 && (n < 2 || continues(p[1])) &&
           (n < 3 || continues(p[2]));
}

static uint32_t code_of(const char *p)
{
    return (uint32_t)(p[0] & 0x0f) << 12 | (uint32_t)(p[1] & 0x3f) << 6 | (uint32_t)(p[2] & 0x3f);
}

/* What a pair has on one side of the place. */
struct side {
    uint32_t code; /* of the character there; of a part its bits, the others zero */
    uint32_t many; /* 64 if the middle six bits are not known, else 1 */
    bool part;
    uint32_t line; /* the row or column */
};

static bool left_side(const char *p, size_t n, struct side *ret)
{
    size_t tail = 0;
    if (!n)
        return false;
    while (tail < n && continues(p[n - 1 - tail]))
        tail++;
    *ret = (struct side){.many = 1, .line = ALONE};
    if (tail == n) {
        ret->part = true;
        ret->many = n == 1 ? 64 : 1;
        ret->code = (n > 1 ? (uint32_t)(p[n - 2] & 0x3f) << 6 : 0) | (uint32_t)(p[n - 1] & 0x3f);
        return n < WIDE_BYTES;
    }
    if (tail != WIDE_BYTES - 1 || !is_wide(p + n - WIDE_BYTES, WIDE_BYTES))
        return false;
    ret->code = code_of(p + n - WIDE_BYTES);
    if (n > WIDE_BYTES)
        ret->line = n >= 2 * WIDE_BYTES && is_wide(p + n - 2 * WIDE_BYTES, WIDE_BYTES)
                        ? row_of(code_of(p + n - 2 * WIDE_BYTES))
                        : ANY;
    return true;
}

static bool right_side(const char *p, size_t n, struct side *ret)
{
    *ret = (struct side){.many = 1, .line = ALONE};
    if (!n || !is_wide(p, n))
        return false;
    if (n < WIDE_BYTES) {
        ret->part = true;
        ret->many = n == 1 ? 64 : 1;
        ret->code = (uint32_t)(p[0] & 0x0f) << 12 | (n > 1 ? (uint32_t)(p[1] & 0x3f) << 6 : 0);
        return true;
    }
    ret->code = code_of(p);
    if (n > WIDE_BYTES)
        ret->line = n >= 2 * WIDE_BYTES && is_wide(p + WIDE_BYTES, WIDE_BYTES)
                        ? column_of(code_of(p + WIDE_BYTES))
                        : ANY;
    return true;
}

static void add_part(struct sure *s, const struct side *left, const struct side *right)
{
    for (uint32_t i = 0; i < left->many; i++)
        for (uint32_t k = 0; k < right->many; k++) {
            uint32_t hash = parts_hash(left->code | i << 6, right->code | k << 6);
            s->part[hash / 32] |= 1u << hash % 32;
        }
}

/* A table of a bit for each row and column. */
static uint64_t table(uint32_t row, uint32_t column)
{
    uint64_t line = column == ANY ? (1 << ALONE) - 1 : (uint64_t)1 << column;
    return row == ANY ? line * 0x01010101010101u : line << 8 * row;
}

static void add_whole(struct sure *s, const struct side *left, const struct side *right,
                      uint32_t rank)
{
    size_t at = pair_hash(left->code, right->code) >> s->shift;
    struct sure_pair *x = &s->pair[at];
    uint32_t key = left->code << 16 | right->code, *rank_alone = &s->filling->alone[at];
    if (!x->key)
        *x = (struct sure_pair){key, NO_RANK, 0};
    if (x->key != key) {
        x->low |= CROWDED;
        return;
    }
    uint32_t low = x->low & NO_RANK;
    x->around |= table(left->line, right->line);
    bool alone = left->line == ALONE && right->line == ALONE;
    if (alone && rank < low)
        *rank_alone = rank; /* till another is as low, or these come again with a higher one */
    else if (alone || rank <= *rank_alone)
        *rank_alone = 0;
    x->low = (x->low & CROWDED) | (rank < low ? rank : low);
}

void sure_add(struct sure *s, const char *left, size_t nleft, const char *right, size_t nright,
              uint32_t rank)
{
    struct side l, r;
    if (!right_side(right, nright, &r) || !left_side(left, nleft, &l))
        return;
    if (l.part || r.part)
        add_part(s, &l, &r);
    else
        add_whole(s, &l, &r, rank_below(rank));
}

void sure_close(struct sure *s)
{
    const struct filling *f = s->filling;
    for (size_t i = 0; i < (size_t)1 << (32 - s->shift); i++) {
        struct sure_pair *x = &s->pair[i];
        uint32_t low = x->low & NO_RANK;
        if (x->key && f->alone[i] == low && f->made[x->key >> 16] < low &&
            f->made[x->key & 0xffff] < low)
            x->low |= GLUES;
    }
    finish_filling(s);
}

/* ---- asking -------------------------------------------------------------------------------- */

/* What is known of places, each by its character and the one before; PAD before the first. */
struct places {
    uint32_t code[SURE_PLACES + 2 * PAD]; /* 0: not of three bytes */
    uint32_t low[SURE_PLACES + 2 * PAD];  /* no rank across the place is lower; 0: unknown */
    uint64_t around[SURE_PLACES + PAD];
};

static bool bit_of(const uint64_t *bits, size_t i)
{
    return bits[i / 64] >> i % 64 & 1;
}

/* False: nothing is known. *ret_glues: the two may join before all others. */
static bool look_up(const struct sure *s, struct places *p, size_t i, bool *ret_glues)
{
    uint32_t left = p->code[PAD + i - 1], right = p->code[PAD + i];
    const struct sure_pair *x = &s->pair[pair_hash(left, right) >> s->shift];
    uint32_t hash = parts_hash(left, right);
    bool same = x->key == (left << 16 | right);
    if (!left || !right || (!same && x->low & CROWDED) || s->part[hash / 32] >> hash % 32 & 1)
        return false;
    p->around[i] = same ? x->around : 0;
    p->low[PAD + i] = same ? x->low & NO_RANK : NO_RANK;
    *ret_glues = same && x->low & GLUES;
    return true;
}

/* Whether a pair may join across a place, by whether the characters beside it are joined outwards.
 */
static bool is_joined(const struct places *p, size_t i, bool left, bool right)
{
    const uint32_t *code = p->code + PAD + i;
    uint64_t columns = (uint64_t)1 << column_of(code[1]) | (right ? 0 : 1 << ALONE);
    uint64_t mask = columns << 8 * row_of(code[-2]) | (left ? 0 : columns << 8 * ALONE);
    return mask & p->around[i];
}

void sure_places_plain(const struct sure *s, const uint32_t *bytes, const uint64_t *begins,
                       size_t n, bool ends, uint64_t *cut)
{
    struct places p;
    bool glues[SURE_PLACES + 2] = {0}, known[SURE_PLACES + 2];
    memset(&p, 0, sizeof(p));
    memset(cut, 0, (n + 63) / 64 * sizeof(*cut));
    for (size_t i = 0; i < n; i++) {
        bool begin = bit_of(begins, i);
        p.code[PAD + i] = (bytes[i] & 0xf0) == 0xe0 ? code_of((const char *)&bytes[i]) : 0;
        p.low[PAD + i] = begin ? NO_RANK : 0;
        known[i] = !begin && look_up(s, &p, i, &glues[i + 1]);
    }
    p.low[PAD + n] = ends ? NO_RANK : 0;
    known[n - 1] &= ends;
    known[1] &= bit_of(begins, 0);
    for (size_t i = 0; i < n; i++) {
        const uint32_t *low = p.low + PAD + i;
        glues[i + 1] &= low[0] < low[-1] && low[0] < low[1];
    }
    for (size_t i = 0; i < n; i++)
        if (known[i] && !is_joined(&p, i, glues[i], glues[i + 2]))
            cut[i / 64] |= (uint64_t)1 << i % 64;
}

#ifdef __x86_64__
#define WIDE __attribute__((target("avx512f,avx512dq,avx512bw,avx512vl")))
#define INLINE WIDE static inline __attribute__((always_inline))

enum { LANES = 16, GROUPS = SURE_PLACES / LANES };

/* A bit for each lane of each sixteen; one more before and behind. */
struct lanes {
    uint16_t known[GROUPS + 2], glues[GROUPS + 2];
};

INLINE __m512i all(uint32_t x)
{
    return _mm512_set1_epi32((int)x);
}

INLINE __m512i times(__m512i x, uint32_t by)
{
    return _mm512_mullo_epi32(x, all(by));
}

/* Codes of characters by the bytes from there on; 0: not of three. */
INLINE __m512i wide_codes(__m512i v)
{
    __mmask16 some = _mm512_cmpeq_epi32_mask(_mm512_and_si512(v, all(0xf0)), all(0xe0));
    __m512i c = _mm512_slli_epi32(_mm512_and_si512(v, all(0xf)), 12);
    c = _mm512_or_si512(c, _mm512_and_si512(_mm512_srli_epi32(v, 2), all(0xfc0)));
    c = _mm512_or_si512(c, _mm512_and_si512(_mm512_srli_epi32(v, 16), all(0x3f)));
    return _mm512_maskz_mov_epi32(some, c);
}

INLINE __m512i wide_pair_hash(__m512i left, __m512i right)
{
    __m512i x = _mm512_xor_si512(times(left, MIX_LEFT), times(right, MIX_RIGHT));
    return times(_mm512_xor_si512(x, _mm512_srli_epi32(x, 15)), MIX_BOTH);
}

INLINE __m512i wide_parts_hash(__m512i left, __m512i right)
{
    __m512i x = _mm512_slli_epi32(_mm512_and_si512(left, all(0xfff)), 10);
    x = _mm512_or_si512(x, _mm512_srli_epi32(right, 6));
    x = times(_mm512_xor_si512(x, _mm512_srli_epi32(x, 13)), MIX_LEFT);
    return _mm512_srli_epi32(x, 16);
}

/* Which of sixteen places no part of a character joins across. */
INLINE __mmask16 wide_no_part(const struct sure *s, __mmask16 some, __m512i left, __m512i right)
{
    __m512i hash = wide_parts_hash(left, right), place = _mm512_srli_epi32(hash, 5);
    __m512i word = _mm512_mask_i32gather_epi32(place, some, place, s->part, 4);
    word = _mm512_srlv_epi32(word, _mm512_and_si512(hash, all(31)));
    return _mm512_mask_testn_epi32_mask(some, word, all(1));
}

/* row_of, column_of. */
INLINE __m512i wide_line(__m512i code, uint32_t mix)
{
    return _mm512_srli_epi32(times(_mm512_srli_epi32(times(code, mix), 16), ALONE), 16);
}

/* Of some of sixteen places with characters on both sides; `unknown`: the ranks of the others. */
INLINE void wide_look_up(const struct sure *s, struct places *p, struct lanes *l, size_t i,
                         __mmask16 some, __m512i left, __m512i right, __m512i unknown)
{
    const __m512i even =
        _mm512_set_epi32(30, 28, 26, 24, 22, 20, 18, 16, 14, 12, 10, 8, 6, 4, 2, 0);
    const __m512i zero = _mm512_setzero_si512();
    __m512i at = _mm512_srl_epi32(wide_pair_hash(left, right), _mm_cvtsi32_si128(s->shift));
    at = _mm512_slli_epi32(at, 1);
    __m256i at0 = _mm512_castsi512_si256(at), at1 = _mm512_extracti64x4_epi64(at, 1);
    _Static_assert(sizeof(struct sure_pair) == 16, "places are counted in halves of a pair");
    __m512i x0 = _mm512_mask_i32gather_epi64(zero, (__mmask8)some, at0, s->pair, 8);
    __m512i x1 = _mm512_mask_i32gather_epi64(zero, (__mmask8)(some >> 8), at1, s->pair, 8);
    __m512i key = _mm512_permutex2var_epi32(x0, even, x1);
    __m512i low = _mm512_permutex2var_epi32(x0, _mm512_add_epi32(even, all(1)), x1);
    __m512i own = _mm512_or_si512(_mm512_slli_epi32(left, 16), right);
    __mmask16 same = _mm512_mask_cmpeq_epi32_mask(some, key, own);
    __mmask16 known = same | _mm512_mask_testn_epi32_mask(some, low, all(CROWDED));
    known = wide_no_part(s, known, left, right);
    same &= known;
    __mmask8 some0 = (__mmask8)same, some1 = (__mmask8)(same >> 8);
    const uint64_t *around = &s->pair[0].around;
    _mm512_storeu_si512(p->around + i, _mm512_mask_i32gather_epi64(zero, some0, at0, around, 8));
    _mm512_storeu_si512(p->around + i + 8,
                        _mm512_mask_i32gather_epi64(zero, some1, at1, around, 8));
    l->known[1 + i / LANES] = known;
    l->glues[1 + i / LANES] = same & _mm512_movepi32_mask(low);
    unknown = _mm512_mask_mov_epi32(unknown, known, all(NO_RANK));
    _mm512_storeu_si512(p->low + PAD + i, _mm512_mask_and_epi32(unknown, same, low, all(NO_RANK)));
}

/* Pairs that come before all that lie across the places next to them. */
INLINE __mmask16 wide_glues(const struct places *p, const struct lanes *l, size_t i)
{
    const uint32_t *low = p->low + PAD + i;
    __m512i own = _mm512_loadu_si512(low);
    __mmask16 some = l->glues[1 + i / LANES];
    some = _mm512_mask_cmplt_epu32_mask(some, own, _mm512_loadu_si512(low - 1));
    return _mm512_mask_cmplt_epu32_mask(some, own, _mm512_loadu_si512(low + 1));
}

/* is_joined for eight places; bits of left and right where the character is by itself. */
INLINE __mmask8 wide_around(const uint64_t *around, __m256i row, __m256i column, unsigned left,
                            unsigned right)
{
    const __m512i one = _mm512_set1_epi64(1), alone = _mm512_set1_epi64(1 << ALONE);
    __m512i columns = _mm512_sllv_epi64(one, _mm512_cvtepu32_epi64(column));
    columns = _mm512_mask_or_epi64(columns, (__mmask8)right, columns, alone);
    __m512i mask = _mm512_sllv_epi64(columns, _mm512_cvtepu32_epi64(_mm256_slli_epi32(row, 3)));
    mask = _mm512_mask_or_epi64(mask, (__mmask8)left, mask, _mm512_slli_epi64(columns, 8 * ALONE));
    return _mm512_test_epi64_mask(mask, _mm512_loadu_si512(around));
}

INLINE __mmask16 wide_cut(const struct places *p, const struct lanes *l, size_t i)
{
    const uint16_t *glues = l->glues + 1 + i / LANES;
    unsigned left = ~((unsigned)glues[0] << 1 | (unsigned)glues[-1] >> 15);
    unsigned right = ~((unsigned)glues[0] >> 1 | (unsigned)glues[1] << 15);
    __m512i row = wide_line(_mm512_loadu_si512(p->code + PAD + i - 2), MIX_LEFT);
    __m512i column = wide_line(_mm512_loadu_si512(p->code + PAD + i + 1), MIX_RIGHT);
    __mmask8 low = wide_around(p->around + i, _mm512_castsi512_si256(row),
                               _mm512_castsi512_si256(column), left, right);
    __mmask8 top = wide_around(p->around + i + 8, _mm512_extracti64x4_epi64(row, 1),
                               _mm512_extracti64x4_epi64(column, 1), left >> 8, right >> 8);
    return (__mmask16)(l->known[1 + i / LANES] & ~(low | (unsigned)top << 8));
}

WIDE static void places_wide(const struct sure *s, const uint32_t *bytes, const uint64_t *begins,
                             size_t n, bool ends, uint64_t *cut)
{
    const __m512i zero = _mm512_setzero_si512();
    struct places p;
    struct lanes l;
    __m512i before = zero;
    _mm512_storeu_si512(p.code, zero);
    _mm512_storeu_si512(p.low, zero);
    l.glues[0] = 0;
    for (size_t i = 0; i < n; i += LANES) {
        __mmask16 some = (__mmask16)(n - i < LANES ? (1u << (n - i)) - 1 : 0xffff);
        __mmask16 begin = (__mmask16)(begins[i / 64] >> i % 64);
        __m512i code = wide_codes(_mm512_maskz_loadu_epi32(some, bytes + i));
        __m512i left = _mm512_alignr_epi32(code, before, 15);
        _mm512_storeu_si512(p.code + PAD + i, code);
        some = _mm512_mask_test_epi32_mask((__mmask16)~begin, code, code);
        some = _mm512_mask_test_epi32_mask(some, left, left);
        wide_look_up(s, &p, &l, i, some, left, code, _mm512_maskz_mov_epi32(begin, all(NO_RANK)));
        before = code;
    }
    size_t end = (n + LANES - 1) / LANES * LANES;
    _mm512_storeu_si512(p.code + PAD + end, zero);
    _mm512_storeu_si512(p.low + PAD + end, zero);
    p.low[PAD + n] = ends ? NO_RANK : 0;
    for (size_t i = 0; i < n; i += LANES)
        l.glues[1 + i / LANES] = wide_glues(&p, &l, i);
    l.glues[1 + end / LANES] = 0;
    if (!ends)
        l.known[1 + (n - 1) / LANES] &= (uint16_t) ~(1u << (n - 1) % LANES);
    if (!(begins[0] & 1))
        l.known[1] &= (uint16_t)~2u;
    for (size_t i = 0; i < n; i += 64) {
        uint64_t bits = 0;
        for (size_t k = i; k < n && k < i + 64; k += LANES)
            bits |= (uint64_t)wide_cut(&p, &l, k) << (k - i);
        cut[i / 64] = bits;
    }
}
#endif

void sure_places(const struct sure *s, const uint32_t *bytes, const uint64_t *begins, size_t n,
                 bool ends, uint64_t *cut)
{
#ifdef __x86_64__
    if (cpu_avx512()) {
        places_wide(s, bytes, begins, n, ends, cut);
        return;
    }
#endif
    sure_places_plain(s, bytes, begins, n, ends, cut);
}

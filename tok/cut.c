/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/cut.h"

#include <stdlib.h>
#include <string.h>
#ifdef __x86_64__
#include <immintrin.h>
#endif

#include "base/bytes.h"
#include "base/cpu.h"
#include "base/mem.h"

enum {
    SIDE = 3, /* bytes of a side that count */
    ANY = 31,
    PARTLY = 64 << 9, /* words of `part` */
    GROUP = 16,       /* parts that are looked at together */
    LEAST = 6,        /* bytes of a part in wide characters that is never cut */
    LEADS_LOG = 3,    /* words for one left side */
    LEADS = (1 << LEADS_LOG) - 1
};

#define FORCED (1u << 31)

static bool continues(char c)
{
    return ((unsigned char)c & 0xc0) == 0x80;
}

/* ---- keys: up to three bytes of each side with their number --------------------------------- */

/* Where the character before `at` begins, not more than three bytes back; *ret_whole: it is all
 * there. */
static size_t left_of(const char *p, size_t at, bool *ret_whole)
{
    size_t k = at - 1;
    while (k && at - k < SIDE && continues(p[k]))
        k--;
    *ret_whole = at - k == SIDE || !continues(p[k]);
    return k;
}

/* Bytes that the character at p ought to have, three at most. */
static size_t right_of(char c)
{
    unsigned char u = (unsigned char)c;
    return u < 0xc0 ? 1 : u < 0xe0 ? 2 : SIDE;
}

static uint32_t side(const char *p, size_t n)
{
    uint32_t v = 0;
    for (size_t i = 0; i < n; i++)
        v |= (uint32_t)(unsigned char)p[i] << 8 * i;
    return v;
}

#define HASH_LEFT 0x9E3779B1u
#define HASH_LEAD 0x85EBCA77u
#define HASH_MIX 0xC2B2AE3Du

/* All that a character is the left side of lies in one line of memory. */
static size_t word_of(const struct cut *c, uint32_t left, uint32_t lead)
{
    uint32_t x = left * HASH_LEFT;
    return (size_t)((x ^ x >> 15) * HASH_MIX >> c->shift << LEADS_LOG | (lead & LEADS)) << 1;
}

/* Of a continuation byte and that behind the place. */
static size_t part_of(uint32_t last, uint32_t lead)
{
    return (last & 0x3f) << 9 | lead << 1;
}

/* Of the bytes behind the first, and what word_of leaves of it: which of two words, and the bit in
 * it; bit ANY stands for a token that ends before them. */
struct rest {
    uint32_t word, bit;
};

static struct rest rest_of(uint32_t rest, uint32_t lead)
{
    uint32_t x = (rest | lead >> LEADS_LOG << 16) * HASH_LEFT >> 26;
    return (struct rest){x & 1, x >> 1 < ANY ? x >> 1 : ANY - 1};
}

static bool has(const uint32_t *two, struct rest rest)
{
    uint32_t word = two[rest.word];
    return (word >> rest.bit | word >> ANY) & 1;
}

static bool has_either(const struct cut *c, uint32_t left, uint32_t lead, uint32_t last,
                       struct rest rest)
{
    return has(c->word + word_of(c, left, lead), rest) ||
           (c->left && last >= 0x80 && has(c->part + part_of(last, lead), rest));
}

/* ---- filling ------------------------------------------------------------------------------- */

void cut_init(struct cut *c, size_t bytes)
{
    int bits = 12;
    while (bits < 17 && (size_t)4 << bits < bytes)
        bits++;
    *c = (struct cut){.shift = 32 - bits + LEADS_LOG,
                      .word = mem_own(sizeof(*c->word) * 2 << bits), /* whole lines */
                      .part = mem_new(PARTLY, sizeof(*c->part))};
}

void cut_finish(struct cut *c)
{
    free(c->word);
    free(c->part);
    *c = (struct cut){0};
}

static void add_pair(struct cut *c, const char *p, size_t at, size_t n)
{
    unsigned char a = (unsigned char)p[at - 1], b = (unsigned char)p[at];
    if ((a | b) < 0x80) {
        if (c->ascii[a][b >> 3] >> (b & 7) & 1)
            return;
        c->ascii[a][b >> 3] |= (unsigned char)(1 << (b & 7));
    }
    bool whole;
    size_t from = left_of(p, at, &whole), k = right_of(p[at]);
    uint32_t *two =
        whole ? c->word + word_of(c, side(p + from, at - from), b) : c->part + part_of(a, b);
    struct rest rest = rest_of(side(p + at + 1, n - at < k ? 0 : k - 1), b);
    c->left |= !whole;
    if (n - at < k)
        two[0] |= 1u << ANY;
    if (n - at < k)
        two[1] |= 1u << ANY;
    else
        two[rest.word] |= 1u << rest.bit;
}

void cut_add_at(struct cut *c, const char *token, size_t at, size_t n)
{
    if (!continues(token[at]))
        add_pair(c, token, at, n);
}

void cut_add(struct cut *c, const char *token, size_t n)
{
    for (size_t at = 1; at < n; at++)
        cut_add_at(c, token, at, n);
}

/* A bit of `may_be`, by length, first and last bytes; three bytes behind a word are readable. */
static uint32_t may_be_bit(const char *p, uint32_t n)
{
    uint32_t mask = n < 4 ? (1u << 8 * n) - 1 : UINT32_MAX;
    uint32_t first = load_u32(p) & mask, last = load_u32(n < 4 ? p : p + n - 4) & mask;
    uint32_t x = first * HASH_LEFT ^ last * HASH_LEAD ^ n << 8;
    return (x ^ x >> 15) * HASH_MIX >> 16;
}

bool cut_may_be_whole(const struct cut *c, const char *text, size_t n)
{
    uint32_t bit = may_be_bit(text, (uint32_t)n);
    return c->may_be[bit / 32] >> bit % 32 & 1;
}

void cut_around(struct cut *c, const struct words *whole)
{
    c->whole = whole;
    for (size_t i = 0; i < whole->n; i++) {
        struct words_text t = whole->text[i];
        char few[4] = {0};
        memcpy(few, t.p, t.n < 4 ? t.n : 4);
        uint32_t bit = may_be_bit(t.n < 4 ? few : t.p, (uint32_t)t.n);
        c->may_be[bit / 32] |= 1u << bit % 32;
    }
}

/* ---- asking -------------------------------------------------------------------------------- */

bool cut_between(const struct cut *c, const char *text, size_t at, size_t n)
{
    if (continues(text[at]))
        return false;
    bool whole;
    size_t from = left_of(text, at, &whole), k = right_of(text[at]);
    uint32_t left = side(text + from, at - from), last = (unsigned char)text[at - 1];
    struct rest rest =
        rest_of(n - at < k ? 0 : side(text + at + 1, k - 1), (unsigned char)text[at]);
    if (n - at < k)
        rest.bit = ANY;
    return !has_either(c, left, (unsigned char)text[at], last, rest);
}

bool cut_wide(const struct cut *c, const char *p)
{
    uint32_t left = load_u32(p - 3) & 0xffffff, right = load_u32(p), lead = right & 0xff;
    return !has_either(c, left, lead, (unsigned char)p[-1], rest_of(right >> 8 & 0xffff, lead));
}

/*
 * Places where characters begin; those at which a part begins anyway have the bit FORCED. What
 * stays of them is put in their stead, without the bit. at[n] is where the last character ends.
 */
static size_t decide(const struct cut *c, const char *text, uint32_t *at, size_t n)
{
    size_t k = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t place = at[i] & ~FORCED;
        if (at[i] != place || cut_between(c, text, place, at[i + 1] & ~FORCED))
            at[k++] = place;
    }
    return k;
}

/* Where characters begin in text[from .. to); how many. */
static size_t places(const char *text, uint32_t from, uint32_t to, uint32_t *ret)
{
    size_t k = 0;
    for (uint32_t at = from; at < to; at++) {
        ret[k] = at;
        k += !continues(text[at]);
    }
    return k;
}

/* A part of the length n, > LEAST, whose first or second character has three bytes or four. */
static bool is_dense(const char *p)
{
    uint32_t first = load_u32(p);
    return first & first << 1 & first << 2 & 0x80808080;
}

/* To be cut: longer than that, or dense. */
static bool is_long(const char *text, uint32_t from, uint32_t to, uint32_t longest)
{
    uint32_t n = to - from;
    return n > longest || (n > LEAST && is_dense(text + from));
}

/* Copies parts up to one that is to be cut; how many. */
static size_t copy(const char *text, const uint32_t *start, size_t n, uint32_t longest,
                   uint32_t *ret)
{
    size_t i = 0;
    for (; i < n && !is_long(text, start[i], start[i + 1], longest); i++)
        ret[i] = start[i];
    return i;
}

#ifdef __x86_64__
#define WIDE __attribute__((target("avx512f,avx512dq,avx512bw,avx512vl")))
#define INLINE WIDE static inline __attribute__((always_inline))

/* The first n of four bytes, 0 to 4. */
INLINE __m512i wide_first(__m512i bytes, __m512i n)
{
    __m512i bits = _mm512_sub_epi32(_mm512_set1_epi32(32), _mm512_slli_epi32(n, 3));
    return _mm512_and_si512(bytes, _mm512_srlv_epi32(_mm512_set1_epi32(-1), bits));
}

/* `has` for sixteen pairs of words, which have these numbers. */
INLINE __mmask16 wide_has(const uint32_t *word, __mmask16 some, __m512i two, __m512i x)
{
    const __m512i one = _mm512_set1_epi32(1);
    __m512i bit = _mm512_min_epu32(_mm512_srli_epi32(x, 1), _mm512_set1_epi32(ANY - 1));
    two = _mm512_or_si512(two, _mm512_and_si512(x, one));
    __m512i w = _mm512_mask_i32gather_epi32(two, some, two, word, 4);
    bit = _mm512_or_si512(_mm512_sllv_epi32(one, bit), _mm512_slli_epi32(one, ANY));
    return _mm512_mask_test_epi32_mask(some, w, bit);
}

/* The places of sixteen, with those before and behind and the bytes from there on, that may not be
 * cut. Before each of them stands a character. */
INLINE __mmask16 wide_joined(const struct cut *c, __mmask16 some, __m512i before, __m512i place,
                             __m512i behind, __m512i left, __m512i right)
{
    const __m512i one = _mm512_set1_epi32(1), three = _mm512_set1_epi32(3);
    __m512i nleft = _mm512_sub_epi32(place, before);
    __m512i nright = _mm512_min_epu32(_mm512_sub_epi32(behind, place), three);
    __m512i nlast = _mm512_min_epu32(nleft, three);
    left = _mm512_srlv_epi32(wide_first(left, nleft),
                             _mm512_slli_epi32(_mm512_sub_epi32(nleft, nlast), 3));
    __m512i lead = _mm512_and_si512(right, _mm512_set1_epi32(0xff));
    __m512i rest = wide_first(_mm512_srli_epi32(right, 8), _mm512_sub_epi32(nright, one));
    rest = _mm512_or_si512(rest, _mm512_slli_epi32(_mm512_srli_epi32(lead, LEADS_LOG), 16));
    rest = _mm512_srli_epi32(_mm512_mullo_epi32(rest, _mm512_set1_epi32((int)HASH_LEFT)), 26);
    __m512i x = _mm512_mullo_epi32(left, _mm512_set1_epi32((int)HASH_LEFT));
    x = _mm512_mullo_epi32(_mm512_xor_si512(x, _mm512_srli_epi32(x, 15)),
                           _mm512_set1_epi32((int)HASH_MIX));
    x = _mm512_slli_epi32(_mm512_srl_epi32(x, _mm_cvtsi32_si128(c->shift)), LEADS_LOG);
    x = _mm512_or_si512(x, _mm512_and_si512(lead, _mm512_set1_epi32(LEADS)));
    x = _mm512_slli_epi32(x, 1);
    __mmask16 joined = wide_has(c->word, some, x, rest);
    if (c->left) {
        __m512i last = _mm512_srlv_epi32(left, _mm512_slli_epi32(_mm512_sub_epi32(nlast, one), 3));
        some = _mm512_mask_test_epi32_mask(some, last, _mm512_set1_epi32(0x80));
        last = _mm512_slli_epi32(_mm512_and_si512(last, _mm512_set1_epi32(0x3f)), 9);
        joined |= wide_has(c->part, some, _mm512_or_si512(last, _mm512_slli_epi32(lead, 1)), rest);
    }
    return joined;
}

WIDE static size_t decide_wide(const struct cut *c, const char *text, uint32_t *at, size_t n)
{
    const __m512i bare = _mm512_set1_epi32((int)~FORCED);
    __m512i was = _mm512_setzero_si512(), left = was;
    size_t k = 0;
    for (size_t i = 0; i < n; i += 16) {
        __mmask16 some = (__mmask16)(n - i < 16 ? (1u << (n - i)) - 1 : 0xffff);
        __m512i raw = _mm512_maskz_loadu_epi32(some, at + i), place = _mm512_and_si512(raw, bare);
        __m512i behind = _mm512_and_si512(_mm512_maskz_loadu_epi32(some, at + i + 1), bare);
        __m512i right = _mm512_mask_i32gather_epi32(place, some, place, text, 1);
        __mmask16 free = some & ~_mm512_movepi32_mask(raw);
        if (free)
            free &= wide_joined(c, free, _mm512_alignr_epi32(place, was, 15), place, behind,
                                _mm512_alignr_epi32(right, left, 15), right);
        _mm512_mask_compressstoreu_epi32(at + k, some & ~free, place);
        k += (unsigned)__builtin_popcount(some & ~free);
        was = place;
        left = right;
    }
    return k;
}

WIDE static size_t places_wide(const char *text, uint32_t from, uint32_t to, uint32_t *ret)
{
    const __m512i count = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    size_t k = 0;
    for (uint32_t at = from; at < to; at += 16) {
        __mmask16 some = (__mmask16)(to - at < 16 ? (1u << (to - at)) - 1 : 0xffff);
        __m128i bytes = _mm_maskz_loadu_epi8(some, text + at);
        some = _mm_mask_cmpgt_epi8_mask(some, bytes, _mm_set1_epi8(-65));
        __m512i place = _mm512_add_epi32(_mm512_set1_epi32((int)at), count);
        _mm512_mask_compressstoreu_epi32(ret + k, some, place);
        k += (unsigned)__builtin_popcount(some);
    }
    return k;
}

/* The first place from `at` on that is within 64 bytes of one above ASCII, or is `end`. */
WIDE static uint32_t next_high(const char *text, uint32_t at, uint32_t end)
{
    const __m512i top = _mm512_set1_epi8(-128);
    while (end - at >= 64 && !_mm512_test_epi64_mask(_mm512_loadu_si512(text + at), top))
        at += 64;
    while (end - at < 64 && at < end && (unsigned char)text[at] < 0x80)
        at++;
    return at;
}

/* Which of them are dense. */
INLINE __mmask16 wide_dense(const char *text, __mmask16 some, __m512i from)
{
    __m512i first = _mm512_mask_i32gather_epi32(from, some, from, text, 1);
    __m512i two = _mm512_and_si512(first, _mm512_slli_epi32(first, 1));
    two = _mm512_and_si512(two, _mm512_slli_epi32(first, 2));
    return _mm512_mask_test_epi32_mask(some, two, _mm512_set1_epi32((int)0x80808080));
}

/* Copies groups of GROUP parts up to one that has a part to be cut; how many parts. Up to *high, if
 * that is behind them, there is only ASCII. */
WIDE static size_t copy_wide(const char *text, const uint32_t *start, size_t n, uint32_t longest,
                             uint32_t *high, uint32_t *ret)
{
    size_t i = 0;
    for (; i + GROUP <= n; i += GROUP) {
        __m512i from = _mm512_loadu_si512(start + i), to = _mm512_loadu_si512(start + i + 1);
        __m512i length = _mm512_sub_epi32(to, from);
        if (_mm512_cmpgt_epu32_mask(length, _mm512_set1_epi32((int)longest)))
            break;
        if (start[i + GROUP] > *high) {
            __mmask16 some = _mm512_cmpgt_epu32_mask(length, _mm512_set1_epi32(LEAST));
            *high = next_high(text, start[i], start[n]);
            if (start[i + GROUP] > *high && wide_dense(text, some, from))
                break;
        }
        _mm512_storeu_si512(ret + i, from);
    }
    return i;
}

/* may_be_bit for sixteen. */
INLINE __m512i wide_may_be_bits(const char *text, __mmask16 some, __m512i from, __m512i length)
{
    const __m512i four = _mm512_set1_epi32(4);
    __m512i few = _mm512_min_epu32(length, four);
    __m512i last = _mm512_sub_epi32(_mm512_add_epi32(from, length), four);
    last = _mm512_mask_mov_epi32(last, _mm512_cmplt_epu32_mask(length, four), from);
    __m512i first = wide_first(_mm512_mask_i32gather_epi32(from, some, from, text, 1), few);
    last = wide_first(_mm512_mask_i32gather_epi32(last, some, last, text, 1), few);
    __m512i x = _mm512_xor_si512(_mm512_mullo_epi32(first, _mm512_set1_epi32((int)HASH_LEFT)),
                                 _mm512_mullo_epi32(last, _mm512_set1_epi32((int)HASH_LEAD)));
    x = _mm512_xor_si512(x, _mm512_slli_epi32(length, 8));
    x = _mm512_mullo_epi32(_mm512_xor_si512(x, _mm512_srli_epi32(x, 15)),
                           _mm512_set1_epi32((int)HASH_MIX));
    return _mm512_srli_epi32(x, 16);
}

/* Whether any of n parts is one of the words. */
WIDE static bool any_whole_wide(const struct cut *c, const char *text, const uint32_t *start,
                                size_t n)
{
    for (size_t i = 0; i < n; i += 16) {
        __mmask16 some = (__mmask16)(n - i < 16 ? (1u << (n - i)) - 1 : 0xffff);
        __m512i from = _mm512_maskz_loadu_epi32(some, start + i);
        __m512i length = _mm512_sub_epi32(_mm512_maskz_loadu_epi32(some, start + i + 1), from);
        __m512i x = wide_may_be_bits(text, some, from, length);
        __m512i word =
            _mm512_mask_i32gather_epi32(length, some, _mm512_srli_epi32(x, 5), c->may_be, 4);
        x = _mm512_and_si512(x, _mm512_set1_epi32(31));
        word = _mm512_srlv_epi32(word, x);
        some = _mm512_mask_test_epi32_mask(some, word, _mm512_set1_epi32(1));
        for (unsigned bits = some; bits; bits &= bits - 1) {
            const uint32_t *at = start + i + __builtin_ctz(bits);
            if (words_find(c->whole, text + at[0], at[1] - at[0]) >= 0)
                return true;
        }
    }
    return false;
}
#else
static bool any_whole_wide(const struct cut *c, const char *text, const uint32_t *start, size_t n)
{
    (void)c, (void)text, (void)start, (void)n;
    return true;
}

static size_t copy_wide(const char *text, const uint32_t *start, size_t n, uint32_t longest,
                        uint32_t *high, uint32_t *ret)
{
    (void)high;
    return copy(text, start, n, longest, ret);
}

static size_t decide_wide(const struct cut *c, const char *text, uint32_t *at, size_t n)
{
    return decide(c, text, at, n);
}

static size_t places_wide(const char *text, uint32_t from, uint32_t to, uint32_t *ret)
{
    return places(text, from, to, ret);
}
#endif

/* The starts of n parts, and of all characters of the longer ones. */
static size_t put_places(const char *text, const uint32_t *start, size_t n, uint32_t longest,
                         bool wide, uint32_t *ret)
{
    size_t k = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t from = start[i], to = start[i + 1];
        ret[k++] = from | FORCED;
        if (is_long(text, from, to, longest))
            k += wide ? places_wide(text, from + 1, to, ret + k)
                      : places(text, from + 1, to, ret + k);
    }
    ret[k] = start[n];
    return k;
}

static bool is_whole(const struct cut *c, const char *text, uint32_t from, uint32_t to)
{
    uint32_t n = to - from;
    return cut_may_be_whole(c, text + from, n) && words_find(c->whole, text + from, n) >= 0;
}

/* Takes back the cuts of parts that ought not to be cut; how many there are then. */
static size_t join_around(const struct cut *c, const char *text, const uint32_t *start, size_t n,
                          uint32_t *ret)
{
    size_t kept = 0;
    for (size_t i = 0, from = 0, to; i < n; i++, from = to) {
        bool whole = false;
        for (to = from + 1; ret[to] != start[i + 1]; to++)
            whole |= is_whole(c, text, ret[to - 1], ret[to]);
        if (to - from > 1)
            whole |= is_whole(c, text, ret[to - 1], ret[to]) ||
                     is_whole(c, text, start[i], start[i + 1]);
        for (size_t part = from; part < (whole ? from + 1 : to); part++)
            ret[kept++] = ret[part];
    }
    return kept;
}

size_t cut_parts(const struct cut *c, const char *text, const uint32_t *start, size_t n,
                 uint32_t longest, uint32_t *ret)
{
    bool wide = cpu_avx512();
    uint32_t high = 0;
    size_t k = 0;
    for (size_t i = 0, count; i < n; i += count) {
        count = wide ? copy_wide(text, start + i, n - i, longest, &high, ret + k)
                     : copy(text, start + i, n - i, longest, ret + k);
        k += count;
        i += count;
        count = n - i < GROUP ? n - i : GROUP;
        size_t places = put_places(text, start + i, count, longest, wide, ret + k);
        places = wide ? decide_wide(c, text, ret + k, places) : decide(c, text, ret + k, places);
        ret[k + places] = start[i + count];
        if (c->whole && places > count &&
            (!wide || any_whole_wide(c, text, ret + k, places) ||
             any_whole_wide(c, text, start + i, count)))
            places = join_around(c, text, start + i, count, ret + k);
        k += places;
    }
    ret[k] = start[n];
    return k;
}

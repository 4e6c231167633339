/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/bpe/split_point.h"

#include <stdlib.h>
#include <string.h>
#include "base/core/bytes.h"
#include "base/core/simd.h"
#include "base/core/mem.h"

enum {
    SIDE = 3,             /* bytes of each side that count */
    LINE = 16,            /* words for one left side, one cache line: */
    LEADS = LINE / 2 - 1, /* two by these bits of the byte after the position, */
    SECOND = LINE / 2,    /* one of these by this bit of the hash of the right side, */
    PLACE = 12,           /* and in it the bit that the five bits from here on select */
    LINES_LEAST = 9,      /* log2 of the least number of lines */
    LINES_MOST = 14,
    PARTLY = 64, /* lines of `part` */
    GROUP = 16,  /* pre-tokens that are tested together, */
    REGION = 64, /* and that are split together */
    BLOCK = 48,  /* bytes: sixteen characters of three */
    WINDOW = 64 * BLOCK,
    LEAST = 6 /* most bytes of a pre-token in wide characters that is never split */
};

#define FORCED (1u << 31)

static bool continues(char c)
{
    return ((unsigned char)c & 0xc0) == 0x80;
}

/* ---- keys: up to three bytes of each side, and their number --------------------------------- */

/* Start of the character before `at`, at most three bytes back; *ret_whole: it is complete. */
static size_t left_of(const char *p, size_t at, bool *ret_whole)
{
    size_t k = at - 1;
    while (k && at - k < SIDE && continues(p[k]))
        k--;
    *ret_whole = at - k == SIDE || !continues(p[k]);
    return k;
}

/* Bytes of the character at p by its lead byte, three at most. */
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

/* The n bytes before p, the last one in the third byte. */
static uint32_t left_side(const char *p, size_t n)
{
    return side(p - n, n) << 8 * (SIDE - n);
}

/* Multipliers of both halves of a side, found by search. */
#define MIX_LEFT 0x843FDDA7u
#define MIX_RIGHT 0xC4657159u

/* The same as vpmaddwd. */
static uint32_t split_mix(uint32_t v, uint32_t by)
{
    return (uint32_t)((int16_t)v * (int16_t)by) +
           (uint32_t)((int16_t)(v >> 16) * (int16_t)(by >> 16));
}

/* The words of a left side are one cache line. */
static uint32_t *line_of(const struct cut *c, uint32_t left)
{
    return c->word + (split_mix(left, MIX_LEFT) & c->lines);
}

/* For a token that begins inside the character before the position: by its last byte. */
static uint32_t *part_of(const struct cut *c, uint32_t last)
{
    return c->part + last % PARTLY * LINE;
}

/* May a token span from this line's left side to this right side? */
static bool has(const uint32_t *line, uint32_t right)
{
    uint32_t x = split_mix(right, MIX_RIGHT);
    return line[(right & LEADS) | (x & SECOND)] >> (x >> PLACE & 31) & 1;
}

static bool has_either(const struct cut *c, uint32_t left, uint32_t right)
{
    uint32_t last = left >> 16;
    return has(line_of(c, left), right) ||
           (c->left && last >= 0x80 && has(part_of(c, last), right));
}

/* ---- filling ------------------------------------------------------------------------------- */

void cut_init(struct cut *c, size_t bytes)
{
    int bits = LINES_LEAST;
    while (bits < LINES_MOST && (size_t)LINE * 2 << bits < bytes)
        bits++;
    *c = (struct cut){.lines = ((1u << bits) - 1) * LINE,
                      .word = mem_own(sizeof(*c->word) * LINE << bits),
                      .part = mem_own(sizeof(*c->part) * LINE * PARTLY)};
}

void cut_finish(struct cut *c)
{
    free(c->word);
    free(c->part);
    *c = (struct cut){0};
}

static void split_add_pair(struct cut *c, const char *p, size_t at, size_t n)
{
    unsigned char a = (unsigned char)p[at - 1], b = (unsigned char)p[at];
    if ((a | b) < 0x80) {
        if (c->ascii[a][b >> 3] >> (b & 7) & 1)
            return;
        c->ascii[a][b >> 3] |= (unsigned char)(1 << (b & 7));
    }
    bool whole;
    size_t from = left_of(p, at, &whole), k = right_of(p[at]);
    uint32_t *line = whole ? line_of(c, left_side(p + at, at - from)) : part_of(c, a);
    c->left |= !whole;
    if (n - at < k) { /* matches any that begins so */
        line[b & LEADS] = line[(b & LEADS) | SECOND] = UINT32_MAX;
        return;
    }
    uint32_t right = side(p + at, k), x = split_mix(right, MIX_RIGHT);
    line[(b & LEADS) | (x & SECOND)] |= 1u << (x >> PLACE & 31);
}

void cut_add_at(struct cut *c, const char *token, size_t at, size_t n)
{
    if (!continues(token[at]))
        split_add_pair(c, token, at, n);
}

void cut_add(struct cut *c, const char *token, size_t n)
{
    for (size_t at = 1; at < n; at++)
        cut_add_at(c, token, at, n);
}

#define HASH_FIRST 0x9E3779B1u
#define HASH_LAST 0x85EBCA77u
#define HASH_MIX 0xC2B2AE3Du

/*
 * The bit in `may_be` of a length, first and last bytes; three bytes after a word must be readable.
 */
static uint32_t may_be_bit(const char *p, uint32_t n)
{
    uint32_t mask = n < 4 ? (1u << 8 * n) - 1 : UINT32_MAX;
    uint32_t first = load_u32(p) & mask, last = load_u32(n < 4 ? p : p + n - 4) & mask;
    uint32_t x = first * HASH_FIRST ^ last * HASH_LAST ^ n << 8;
    return (x ^ x >> 15) * HASH_MIX >> 16;
}

bool cut_may_be_whole(const struct cut *c, const char *text, size_t n)
{
    uint32_t bit = may_be_bit(text, (uint32_t)n);
    return c->may_be[bit / 32] >> bit % 32 & 1;
}

void cut_around(struct cut *c, const struct string_map *whole)
{
    c->whole = whole;
    for (size_t i = 0; i < whole->n; i++) {
        struct string_ref t = whole->text[i];
        char few[4] = {0};
        memcpy(few, t.p, t.n < 4 ? t.n : 4);
        uint32_t bit = may_be_bit(t.n < 4 ? few : t.p, (uint32_t)t.n);
        c->may_be[bit / 32] |= 1u << bit % 32;
    }
}

/* ---- lookup -------------------------------------------------------------------------------- */

bool cut_between(const struct cut *c, const char *text, size_t at, size_t n)
{
    bool whole;
    size_t from = left_of(text, at, &whole), k = right_of(text[at]);
    if (continues(text[at]) || n - at < k)
        return false;
    return !has_either(c, left_side(text + at, at - from), side(text + at, k));
}

bool cut_wide(const struct cut *c, const char *p)
{
    return !has_either(c, load_u32(p - 3) & 0xffffff, load_u32(p) & 0xffffff);
}

/*
 * Keeps those of n positions, starts of characters, that are split points or have the bit FORCED
 * (where a pre-token begins anyway), and clears that bit. at[n] is the end of the last character.
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

/* The starts of characters in text[from .. to); returns their number. */
static size_t places(const char *text, uint32_t from, uint32_t to, uint32_t *ret)
{
    size_t k = 0;
    for (uint32_t at = from; at < to; at++) {
        ret[k] = at;
        k += !continues(text[at]);
    }
    return k;
}

/* Whether a pre-token of more than LEAST bytes has a first or second character of three bytes or
 * four. */
static bool is_dense(const char *p)
{
    uint32_t first = load_u32(p);
    return first & first << 1 & first << 2 & 0x80808080;
}

/* Should it be split: longer than that, or dense? */
static bool is_long(const char *text, uint32_t from, uint32_t to, uint32_t longest)
{
    uint32_t n = to - from;
    return n > longest || (n > LEAST && is_dense(text + from));
}

/* Copies starts up to a pre-token that should be split; returns their number. */
static size_t split_copy(const char *text, const uint32_t *start, size_t n, uint32_t longest,
                         uint32_t *ret)
{
    size_t i = 0;
    for (; i < n && !is_long(text, start[i], start[i + 1], longest); i++)
        ret[i] = start[i];
    return i;
}

/* The starts of n pre-tokens, and of all characters of the longer ones. */
static size_t put_places(const char *text, const uint32_t *start, size_t n, uint32_t longest,
                         uint32_t *ret)
{
    size_t k = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t from = start[i], to = start[i + 1];
        ret[k++] = from | FORCED;
        if (is_long(text, from, to, longest))
            k += places(text, from + 1, to, ret + k);
    }
    ret[k] = start[n];
    return k;
}

static size_t cut_plainly(const struct cut *c, const char *text, const uint32_t *start, size_t n,
                          uint32_t longest, uint32_t *ret)
{
    return decide(c, text, ret, put_places(text, start, n, longest, ret));
}

#ifdef __x86_64__
static const uint8_t iota[64] = {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15,
                                 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31,
                                 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47,
                                 48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63};

AVX512_BYTES_INLINE __m512i all(uint32_t x)
{
    return _mm512_set1_epi32((int)x);
}

/* a | (b & c) */
AVX512_BYTES_INLINE __m512i or_and(__m512i a, __m512i b, __m512i c)
{
    return _mm512_ternarylogic_epi32(a, b, c, 0xf0 | (0xcc & 0xaa));
}

/* For sixteen positions, the bytes before that are one character, three at most; *ret_ascii: it is
 * a single byte. */
AVX512_BYTES_INLINE __m512i wide_left(__m512i three, __mmask16 *ret_ascii)
{
    const __m512i first_of_two = all(0xc000);
    *ret_ascii = _mm512_testn_epi32_mask(three, all(0x800000));
    __mmask16 two = _mm512_testn_epi32_mask(_mm512_xor_si512(three, first_of_two), first_of_two);
    three = _mm512_mask_and_epi32(three, two, three, all(0xffff00));
    return _mm512_mask_and_epi32(three, *ret_ascii, three, all(0xff0000));
}

/* The same for the bytes after; the lead byte has the length. */
AVX512_BYTES_INLINE __m512i wide_right(__m512i four)
{
    enum { ONE = 0xff, TWO = 0xffff, THREE = 0xffffff };
    const __m512i bytes = _mm512_setr_epi32(ONE, ONE, ONE, ONE, ONE, ONE, ONE, ONE, ONE, ONE, ONE,
                                            ONE, TWO, TWO, THREE, THREE);
    return _mm512_and_si512(four, _mm512_permutexvar_epi32(_mm512_srli_epi32(four, 4), bytes));
}

/* has_either for sixteen positions. */
AVX512_BYTES_INLINE __mmask16 wide_joined(const struct cut *c, __mmask16 some, __m512i before,
                                          __m512i behind)
{
    __mmask16 ascii;
    __m512i left = wide_left(before, &ascii), right = wide_right(behind);
    __m512i x = _mm512_madd_epi16(right, all(MIX_RIGHT));
    __m512i bit = _mm512_rolv_epi32(all(1), _mm512_srli_epi32(x, PLACE));
    __m512i line = _mm512_and_si512(_mm512_madd_epi16(left, all(MIX_LEFT)), all(c->lines));
    __m512i at = or_and(or_and(line, right, all(LEADS)), x, all(SECOND));
    __m512i word = _mm512_mask_i32gather_epi32(at, some, at, c->word, 4);
    __mmask16 joined = _mm512_mask_test_epi32_mask(some, word, bit);
    if (c->left) {
        _Static_assert(LINE == 1 << 4, "bits 16 to 21 select");
        at = _mm512_and_si512(at, all(LINE - 1));
        at = or_and(at, _mm512_srli_epi32(left, 16 - 4), all((PARTLY - 1) * LINE));
        word = _mm512_mask_i32gather_epi32(at, some & ~ascii, at, c->part, 4);
        joined |= _mm512_mask_test_epi32_mask(some & ~ascii, word, bit);
    }
    return joined;
}

/* Those of the candidates `maybe` in 64 bytes that are split points; `before`: 64 bytes from three
 * before these on. */
AVX512_BYTES_INLINE uint64_t wide_cuts(const struct cut *c, uint64_t maybe, __m512i before,
                                       __m512i bytes)
{
    const __m512i each = _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)iota));
    const __m512i fours = _mm512_mullo_epi32(each, all(0x01010101)), next = all(0x03020100);
    const __mmask64 three = 0x7777777777777777;
    uint64_t cuts = 0;
    while (maybe) {
        __mmask16 some = (__mmask16)_bzhi_u32(0xffff, (unsigned)_mm_popcnt_u64(maybe));
        __m512i at = _mm512_maskz_compress_epi8(maybe, _mm512_loadu_si512(iota));
        at = _mm512_add_epi8(_mm512_permutexvar_epi8(fours, at), next);
        __m512i left = _mm512_maskz_permutexvar_epi8(three, at, before);
        __mmask16 joined = wide_joined(c, some, left, _mm512_permutexvar_epi8(at, bytes));
        cuts |= _pdep_u64(some & ~(unsigned)joined, maybe);
        maybe &= ~_pdep_u64(0xffff, maybe);
    }
    return cuts;
}

AVX512_BYTES_INLINE void put_sixteen(__m512i place, size_t n, uint32_t at, uint32_t *ret)
{
    __m512i wide = _mm512_cvtepu8_epi32(_mm512_castsi512_si128(place));
    wide = _mm512_add_epi32(wide, all(at));
    _mm512_mask_storeu_epi32(ret, (__mmask16)_bzhi_u32(0xffff, (unsigned)n), wide);
}

/* Writes the positions of `bits`, a subset of `maybe`; returns their number. */
AVX512_BYTES_INLINE size_t put_bits(uint64_t bits, uint64_t maybe, uint32_t at, uint32_t *ret)
{
    __m512i place = _mm512_maskz_compress_epi8(bits, _mm512_loadu_si512(iota));
    size_t n = (size_t)_mm_popcnt_u64(bits);
    put_sixteen(place, n, at, ret);
    if (_mm_popcnt_u64(maybe) > 16) /* known long before `bits` */
        for (size_t k = 16; k < n; k += 16) {
            place = _mm512_alignr_epi32(place, place, 4);
            put_sixteen(place, n - k, at, ret + k);
        }
    return n;
}

enum note { BEGINS = 1, NOT_LONG = 2, NEVER_CUT = 4 };

/* Notes which pre-tokens begin in text[from .. from + bytes); returns their number. */
static size_t note_parts(const uint32_t *start, size_t n, uint32_t from, uint32_t bytes,
                         uint32_t longest, uint8_t *note)
{
    size_t i = 0;
    for (; i < n && start[i] - from < bytes; i++) {
        uint32_t length = start[i + 1] - start[i];
        unsigned few = length <= LEAST ? NEVER_CUT : 0;
        note[start[i] - from] = (uint8_t)(BEGINS | few | (length <= longest ? NOT_LONG : 0));
    }
    return i;
}

/* Sixty-four bytes and the pre-tokens that begin there. */
struct block {
    __m512i bytes, before, note;
    uint64_t here; /* bytes that belong to the block */
};

/* Writes a block's positions; *kept: an unsplit pre-token continues into it, and out of it. */
AVX512_BYTES_INLINE size_t cut_block(const struct cut *c, const struct block *b, uint32_t at,
                                     bool *kept, uint32_t *ret)
{
    uint64_t high = _mm512_cmpge_epu8_mask(b->bytes, _mm512_set1_epi8((char)0xe0));
    uint64_t dense = high | high >> 1 | high >> 2 | high >> 3;
    uint64_t begin = b->here & _mm512_test_epi8_mask(b->note, _mm512_set1_epi8(BEGINS));
    uint64_t keep = _mm512_test_epi8_mask(b->note, _mm512_set1_epi8(NOT_LONG)) &
                    (_mm512_test_epi8_mask(b->note, _mm512_set1_epi8(NEVER_CUT)) | ~dense);
    /* of pre-tokens that are kept, all bytes after the first */
    uint64_t behind = (keep << 1 | *kept) & ~begin;
    uint64_t inside = ~begin & (~(~begin + behind) | behind);
    uint64_t maybe = _mm512_cmpgt_epi8_mask(b->bytes, _mm512_set1_epi8(-65));
    maybe &= b->here & ~begin & ~inside;
    uint64_t cuts = maybe ? wide_cuts(c, maybe, b->before, b->bytes) : 0;
    *kept = (inside | keep) >> (BLOCK - 1) & 1;
    return put_bits(begin | cuts, begin | maybe, at, ret);
}

AVX512_BYTES static size_t cut_blocks(const struct cut *c, const char *text, const uint32_t *start,
                                      size_t n, uint32_t longest, uint32_t *ret)
{
    uint8_t note[WINDOW + 64];
    uint32_t end = start[n];
    size_t k = 0;
    bool kept = false;
    for (uint32_t from = start[0], most; from < end; from += most) {
        most = end - from < WINDOW ? end - from : WINDOW;
        memset(note, 0, most + 64);
        size_t noted = note_parts(start, n, from, most, longest, note);
        start += noted;
        n -= noted;
        for (uint32_t at = from; at < from + most; at += BLOCK) {
            uint64_t some = _bzhi_u64(UINT64_MAX, end - at < 64 ? end - at : 64);
            uint64_t back = some << SIDE | ((1u << SIDE) - 1);
            back &= at < SIDE ? UINT64_MAX << (SIDE - at) : UINT64_MAX;
            struct block b = {.bytes = _mm512_maskz_loadu_epi8(some, text + at),
                              .before = _mm512_maskz_loadu_epi8(back, text + at - SIDE),
                              .note = _mm512_loadu_si512(note + (at - from)),
                              .here = _bzhi_u64(some, BLOCK)};
            k += cut_block(c, &b, at, &kept, ret + k);
        }
    }
    return k;
}

/* The first position from `at` on that is within 64 bytes of a byte above ASCII, or `end`. */
AVX512_BYTES static uint32_t next_high(const char *text, uint32_t at, uint32_t end)
{
    const __m512i top = _mm512_set1_epi8(-128);
    while (end - at >= 64 && !_mm512_test_epi64_mask(_mm512_loadu_si512(text + at), top))
        at += 64;
    while (end - at < 64 && at < end && (unsigned char)text[at] < 0x80)
        at++;
    return at;
}

/* Which of them are dense. */
AVX512_BYTES_INLINE __mmask16 wide_dense(const char *text, __mmask16 some, __m512i from)
{
    __m512i first = _mm512_mask_i32gather_epi32(from, some, from, text, 1);
    __m512i two = _mm512_and_si512(first, _mm512_slli_epi32(first, 1));
    two = _mm512_and_si512(two, _mm512_slli_epi32(first, 2));
    return _mm512_mask_test_epi32_mask(some, two, _mm512_set1_epi32((int)0x80808080));
}

/* Copies starts up to a pre-token to be split; up to *high, if after them, all is ASCII. */
AVX512_BYTES static size_t copy_wide(const char *text, const uint32_t *start, size_t n,
                                     uint32_t longest, uint32_t *high, uint32_t *ret)
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

/* The first n of four bytes, 0 to 4. */
AVX512_BYTES_INLINE __m512i wide_first(__m512i bytes, __m512i n)
{
    __m512i bits = _mm512_sub_epi32(_mm512_set1_epi32(32), _mm512_slli_epi32(n, 3));
    return _mm512_and_si512(bytes, _mm512_srlv_epi32(_mm512_set1_epi32(-1), bits));
}

/* may_be_bit for sixteen. */
AVX512_BYTES_INLINE __m512i wide_may_be_bits(const char *text, __mmask16 some, __m512i from,
                                             __m512i length)
{
    const __m512i four = _mm512_set1_epi32(4);
    __m512i few = _mm512_min_epu32(length, four);
    __m512i last = _mm512_sub_epi32(_mm512_add_epi32(from, length), four);
    last = _mm512_mask_mov_epi32(last, _mm512_cmplt_epu32_mask(length, four), from);
    __m512i first = wide_first(_mm512_mask_i32gather_epi32(from, some, from, text, 1), few);
    last = wide_first(_mm512_mask_i32gather_epi32(last, some, last, text, 1), few);
    __m512i x = _mm512_xor_si512(_mm512_mullo_epi32(first, _mm512_set1_epi32((int)HASH_FIRST)),
                                 _mm512_mullo_epi32(last, _mm512_set1_epi32((int)HASH_LAST)));
    x = _mm512_xor_si512(x, _mm512_slli_epi32(length, 8));
    x = _mm512_mullo_epi32(_mm512_xor_si512(x, _mm512_srli_epi32(x, 15)),
                           _mm512_set1_epi32((int)HASH_MIX));
    return _mm512_srli_epi32(x, 16);
}

/* Whether any of n segments is one of the words. */
AVX512_BYTES static bool any_whole_wide(const struct cut *c, const char *text,
                                        const uint32_t *start, size_t n)
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
            if (string_map_find(c->whole, text + at[0], at[1] - at[0]) >= 0)
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
    return split_copy(text, start, n, longest, ret);
}

static size_t cut_blocks(const struct cut *c, const char *text, const uint32_t *start, size_t n,
                         uint32_t longest, uint32_t *ret)
{
    return cut_plainly(c, text, start, n, longest, ret);
}
#endif

static bool is_whole(const struct cut *c, const char *text, uint32_t from, uint32_t to)
{
    uint32_t n = to - from;
    return cut_may_be_whole(c, text + from, n) && string_map_find(c->whole, text + from, n) >= 0;
}

/* Removes split points from pre-tokens that must stay whole; returns the positions left. */
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

size_t cut_segments(const struct cut *c, const char *text, const uint32_t *start, size_t n,
                    uint32_t longest, uint32_t *ret)
{
    bool wide = cpu_avx512_bytes();
    uint32_t high = 0;
    size_t k = 0;
    for (size_t i = 0, count; i < n; i += count) {
        count = wide ? copy_wide(text, start + i, n - i, longest, &high, ret + k)
                     : split_copy(text, start + i, n - i, longest, ret + k);
        k += count;
        i += count;
        count = n - i < REGION ? n - i : REGION;
        size_t places = wide ? cut_blocks(c, text, start + i, count, longest, ret + k)
                             : cut_plainly(c, text, start + i, count, longest, ret + k);
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

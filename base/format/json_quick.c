/* SPDX-License-Identifier: Apache-2.0 */
#include "base/format/json_quick.h"

#include "base/core/simd.h"
#include "base/core/err.h"

#ifdef __x86_64__
#include "base/format/json_escape.h"
#include "base/format/json_walk.h"
#include "base/core/utf8.h"

enum { DEPTH = 32 };

struct quick {
    const char *s, *end; /* the next byte; after the last one */
    const struct key_tree *keys;
    struct jsonl_value *value;
    char *room;    /* where the next string goes */
    uint64_t high; /* not 0: there are bytes of more than seven bits */
};

/* ---- strings -------------------------------------------------------------------------------- */

/* One or more \uXXXX escapes at s; NULL if the first is invalid. */
static const char *take_codes(const char *s, const char *end, char **dst)
{
    const char *why;
    do {
        uint32_t c;
        size_t k = json_escape(s, end, &c, &why);
        if (!k)
            return NULL;
        *dst += utf8_put(*dst, c);
        s += k;
    } while (s[0] == '\\' && s[1] == 'u');
    return s;
}

/* Keeps a mask in a general register: what compilers do in mask registers takes several times as
 * long, on the critical path. */
static inline uint64_t general(uint64_t mask)
{
    __asm__("" : "+r"(mask));
    return mask;
}

/* The backslashes that begin an escape: of a run every other one, without a branch on where it
 * begins. */
static inline uint64_t escape_starts(uint64_t backslash)
{
    const uint64_t even = 0x5555555555555555;
    uint64_t behind = backslash << 1, odd_runs = backslash & ~even & ~behind;
    uint64_t escaped = (even ^ (odd_runs + backslash) << 1) & behind;
    return backslash & ~escaped;
}

/* 64 entries of json_short_escape, with `none` for 0. */
AVX512_BYTES static inline __m512i meanings(const char *p, __m512i none)
{
    __m512i v = _mm512_loadu_si512(p);
    return _mm512_mask_mov_epi8(v, _mm512_testn_epi8_mask(v, v), none);
}

/* Bytes shifted up by n places, down if n < 0. */
AVX512_BYTES static inline __m512i moved(__m512i v, int n)
{
    static const char place[64] = {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15,
                                   16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31,
                                   32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47,
                                   48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63};
    __m512i from = _mm512_sub_epi8(_mm512_loadu_si512(place), _mm512_set1_epi8((char)n));
    return _mm512_permutexvar_epi8(from, v);
}

enum { CODE_LAST = 58 }; /* the last place where all of a code lies in 64 bytes */

/*
 * Codes (\uXXXX) begin at the bits `at` of *v, none after CODE_LAST. Those that are a character of
 * their own (returned) become one to three bytes of UTF-8; the bytes that this frees are cleared in
 * *keep.
 */
AVX512_BYTES static uint64_t put_codes(__m512i *v, uint64_t at, uint64_t *keep)
{
    const __m512i one = _mm512_set1_epi8(1), three = _mm512_set1_epi8(3),
                  eight = _mm512_set1_epi8(8), high = _mm512_set1_epi8(-128);
    const __m512i digit = _mm512_sub_epi8(_mm512_loadu_si512(json_hex_value), one),
                  more = _mm512_sub_epi8(_mm512_loadu_si512(json_hex_value + 64), one);
    /* the high bit: not a digit */
    __m512i d =
        _mm512_or_si512(_mm512_permutex2var_epi8(digit, *v, more), _mm512_and_si512(*v, high));
    __m512i a = moved(d, -2), b = moved(d, -3), c = moved(d, -4);
    d = moved(d, -5);
    uint64_t surrogate =
        _mm512_cmpeq_epi8_mask(a, _mm512_set1_epi8(13)) & _mm512_test_epi8_mask(b, eight);
    uint64_t none =
        _mm512_movepi8_mask(_mm512_or_si512(_mm512_or_si512(a, b), _mm512_or_si512(c, d)));
    at &= ~(surrogate | none);
    uint64_t long3 = _mm512_test_epi8_mask(a, a) | _mm512_test_epi8_mask(b, eight);
    uint64_t short1 = ~long3 & _mm512_testn_epi8_mask(b, b) & _mm512_testn_epi8_mask(c, eight);
    __m512i middle =
        _mm512_or_si512(_mm512_slli_epi16(b, 2), _mm512_and_si512(_mm512_srli_epi16(c, 2), three));
    __m512i last =
        _mm512_or_si512(_mm512_or_si512(_mm512_slli_epi16(_mm512_and_si512(c, three), 4), d), high);
    __m512i first = _mm512_or_si512(middle, _mm512_set1_epi8((char)0xc0));
    first = _mm512_mask_mov_epi8(first, long3, _mm512_or_si512(a, _mm512_set1_epi8((char)0xe0)));
    first = _mm512_mask_mov_epi8(first, short1, _mm512_or_si512(_mm512_slli_epi16(c, 4), d));
    __m512i second = _mm512_mask_mov_epi8(last, long3, _mm512_or_si512(middle, high));
    *v = _mm512_mask_mov_epi8(*v, at, first);
    *v = _mm512_mask_mov_epi8(*v, at << 1, moved(second, 1));
    *v = _mm512_mask_mov_epi8(*v, at << 2, moved(last, 2));
    *keep |= at;
    *keep &= ~(at << 3 | at << 4 | at << 5 | (at & ~long3) << 2 | (at & short1) << 1);
    return at;
}

static inline uint64_t lowest(uint64_t bits)
{
    return bits & (0 - bits);
}

/*
 * The rest of a string after its opening quote, unescaped to q->room; *ret_n bytes count, and up to
 * 64 more are written. False at a control character, a bad escape or the end.
 */
AVX512_BYTES static bool json_quick_take_string(struct quick *q, size_t *ret_n)
{
    const __m512i none = _mm512_set1_epi8(-128), two = _mm512_set1_epi8(2);
    const __m512i low = meanings(json_short_escape, none),
                  high = meanings(json_short_escape + 64, none);
    const char *s = q->s;
    char *d = q->room;
    __m512i all = _mm512_setzero_si512();
    while (s < q->end) { /* s is never inside an escape */
        __m512i v = _mm512_loadu_si512(s);
        uint64_t starts = escape_starts(general(_mm512_cmpeq_epi8_mask(v, _mm512_set1_epi8('\\'))));
        uint64_t escaped = starts << 1, keep = ~starts;
        /* a quote or a control character */
        uint64_t stop = _mm512_cmplt_epu8_mask(_mm512_xor_si512(v, two), _mm512_set1_epi8('!'));
        __m512i meant = _mm512_permutex2var_epi8(low, v, high); /* by the low seven bits */
        uint64_t other = _mm512_movepi8_mask(_mm512_or_si512(meant, v)) & escaped;
        uint64_t cut = starts & UINT64_C(1) << 63; /* its rest is in the next bytes */
        all = _mm512_or_si512(all, v);
        uint64_t codes = other ? other & _mm512_cmpeq_epi8_mask(v, _mm512_set1_epi8('u')) : 0;
        v = _mm512_mask_mov_epi8(v, escaped, meant);
        if (codes) {
            codes >>= 1;
            cut |= codes >> (CODE_LAST + 1) << (CODE_LAST + 1);
            other &= ~(put_codes(&v, codes & ~cut, &keep) << 1 | cut << 1);
        }
        uint64_t event = (stop & ~escaped) | other | cut;
        if (!event) { /* a branch, so that the next step does not wait for this one's result */
            _mm512_storeu_si512(d, _mm512_maskz_compress_epi8(keep, v));
            s += 64;
            d += __builtin_popcountll(keep);
            continue;
        }
        size_t n = (size_t)__builtin_ctzll(event);
        keep &= lowest(event) - 1;
        _mm512_storeu_si512(d, _mm512_maskz_compress_epi8(keep, v));
        s += n;
        d += __builtin_popcountll(keep);
        if (cut >> n & 1)
            continue;
        if (!(escaped >> n & 1))
            break;
        if (!(s = take_codes(s - 1, q->end, &d)))
            return false;
    }
    q->high |= _mm512_movepi8_mask(all);
    *ret_n = (size_t)(d - q->room);
    q->s = s + 1;
    return s < q->end && *s == '"';
}

/* A key of less than 64 bytes, all ASCII and without escapes, and the colon after it. */
AVX512_BYTES static bool take_name(struct quick *q, const char **ret, size_t *ret_n)
{
    if (q->s >= q->end || *q->s != '"')
        return false;
    const char *s = ++q->s;
    __m512i v = _mm512_loadu_si512(s);
    uint64_t stop = _mm512_cmpeq_epi8_mask(v, _mm512_set1_epi8('"')) |
                    _mm512_cmpeq_epi8_mask(v, _mm512_set1_epi8('\\')) | _mm512_movepi8_mask(v) |
                    _mm512_cmplt_epu8_mask(v, _mm512_set1_epi8(' '));
    size_t n = stop ? (size_t)__builtin_ctzll(stop) : 64;
    if ((size_t)(q->end - s) <= n || n == 64 || s[n] != '"')
        return false;
    *ret = s;
    *ret_n = n;
    for (s += n + 1; s < q->end && *s == ' ';)
        s++;
    q->s = s + 1;
    return s < q->end && *s == ':';
}

/* ---- values --------------------------------------------------------------------------------- */

/* Skips blanks; returns the byte after them, NUL at the end. */
static inline char next(struct quick *q)
{
    while (q->s < q->end && *q->s == ' ')
        q->s++;
    return q->s < q->end ? *q->s : '\0';
}

/* A string, number or literal that begins with `c`. */
static bool skip_plain(struct quick *q, char c)
{
    size_t n;
    if (c == '"') {
        q->s++;
        return json_quick_take_string(q, &n);
    }
    const char *s = c ? json_scalar_end(q->s, q->end) : NULL;
    if (s)
        q->s = s;
    return s;
}

/* The open containers, a bit each, the innermost lowest; 1 for an object. */
struct open {
    uint64_t objects;
    unsigned depth;
};

/* After a value: closes the containers that end there. *ret_more: another value follows, and is
 * next. */
static bool close_all(struct quick *q, struct open *o, bool *ret_more)
{
    const char *name;
    size_t n;
    while (o->depth) {
        char c = next(q);
        bool object = o->objects & 1;
        q->s++;
        if (c == ',') {
            *ret_more = true;
            next(q);
            return !object || take_name(q, &name, &n);
        }
        if (c != (object ? '}' : ']'))
            return false;
        o->objects >>= 1;
        o->depth--;
    }
    *ret_more = false;
    return true;
}

/* Any value. */
static bool json_quick_skip(struct quick *q)
{
    struct open o = {0};
    const char *name;
    size_t n;
    for (bool more = true; more;) {
        char c = next(q);
        if (c == '{' || c == '[') {
            if (o.depth == DEPTH)
                return false;
            o.objects = o.objects << 1 | (c == '{');
            o.depth++;
            q->s++;
            char first = next(q);
            if (first != (c == '{' ? '}' : ']')) {
                if (c == '{' && !take_name(q, &name, &n))
                    return false;
                continue;
            }
        } else if (!skip_plain(q, c)) {
            return false;
        }
        if (!close_all(q, &o, &more))
            return false;
    }
    return true;
}

/* The value of a wanted key. Rejects a second one of the same name, and an array, which may hold
 * ids. */
static bool take_wanted(struct quick *q, const struct key_field *f)
{
    char c = next(q);
    struct jsonl_value v = {.kind = JSONL_OTHER};
    if (q->value[f->key[0]].kind != JSONL_MISSING || c == '[')
        return false;
    if (c == '"') {
        v = (struct jsonl_value){.kind = JSONL_STRING, .text = q->room};
        q->s++;
        if (!json_quick_take_string(q, &v.length))
            return false;
        q->room += v.length;
    } else if (!json_quick_skip(q)) {
        return false;
    }
    for (size_t k = 0; k < f->nkeys; k++)
        q->value[f->key[k]] = v;
    return true;
}

static bool take_object(struct quick *q)
{
    if (next(q) != '{')
        return false;
    for (char c = ','; c == ',';) {
        const char *name;
        size_t n;
        q->s++;
        next(q);
        if (!take_name(q, &name, &n))
            return false;
        const struct key_field *f = key_find(&q->keys->root, name, n);
        if (f ? !take_wanted(q, f) : !json_quick_skip(q))
            return false;
        c = next(q);
        if (c != ',' && c != '}')
            return false;
    }
    q->s++;
    return true;
}

bool json_quick_able(const struct key_tree *keys)
{
    return cpu_avx512_bytes() && keys->depth == 1;
}

bool json_quick(const char *p, const char *end, const struct key_tree *keys, char *room,
                struct jsonl_value *ret, const char **ret_stop)
{
    struct quick q = {.s = p, .end = end, .keys = keys, .value = ret, .room = room};
    if (!take_object(&q))
        return false;
    const char *s = q.s;
    while (s < end && (*s == ' ' || *s == '\t' || *s == '\r'))
        s++;
    *ret_stop = s;
    size_t n = (size_t)(s - p);
    return (s == end || *s == '\n') && (!q.high || utf8_good(p, n) == n);
}

#else

bool json_quick_able(const struct key_tree *keys)
{
    (void)keys;
    return false;
}

bool json_quick(const char *p, const char *end, const struct key_tree *keys, char *room,
                struct jsonl_value *ret, const char **ret_stop)
{
    (void)p, (void)end, (void)keys, (void)room, (void)ret, (void)ret_stop;
    BUG("json_quick on a processor that cannot");
}

#endif

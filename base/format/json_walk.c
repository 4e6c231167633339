/* SPDX-License-Identifier: Apache-2.0 */
#include "base/format/json_walk.h"

#include <stdlib.h>
#include <string.h>
#include "base/core/bytes.h"
#include "base/core/simd.h"
#include "base/format/json_escape.h"
#include "base/core/utf8.h"

/* ---- messages ---- */

static int json_walk_bad(const struct json_walk *w, const char *at, const char *why)
{
    return err_set(w->e, ERR_DATA, "byte %zu: %s", (size_t)(at - w->p), why);
}

int json_expected(const struct json_walk *w, const char *what)
{
    size_t at = w->at[w->i];
    if (w->i >= w->n)
        return err_set(w->e, ERR_DATA, "byte %zu: expected %s, found the end", at, what);
    unsigned char c = (unsigned char)w->p[at];
    if (c > 0x20 && c < 0x7f)
        return err_set(w->e, ERR_DATA, "byte %zu: expected %s, found '%c'", at, what, c);
    return err_set(w->e, ERR_DATA, "byte %zu: expected %s, found byte 0x%02x", at, what, c);
}

/* ---- tokens ---- */

static inline bool blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

int json_take(struct json_walk *w, char c, const char *what)
{
    if (json_peek(w) != c)
        return json_expected(w, what);
    w->i++;
    return 0;
}

static inline bool has_zero(uint64_t v)
{
    return (v - 0x0101010101010101) & ~v & 0x8080808080808080;
}

/* A backslash among n bytes? Most strings are short: eight bytes at a time, without a call; the
 * last eight may reach beyond the string. */
static inline bool has_backslash(const char *s, size_t n)
{
    if (n > 64)
        return memchr(s, '\\', n) != NULL;
    for (; n >= 8; s += 8, n -= 8)
        if (has_zero(load_u64(s) ^ 0x5c5c5c5c5c5c5c5c))
            return true;
    return has_zero((load_u64(s) ^ 0x5c5c5c5c5c5c5c5c) | UINT64_MAX << 8 * n);
}

static inline int json_walk_take_string(struct json_walk *w, const char **ret, size_t *ret_n,
                                        bool *ret_escaped)
{
    if (json_peek(w) != '"')
        return json_expected(w, "a string");
    const char *s = w->p + w->at[w->i] + 1, *end = w->p + w->at[w->i + 1] - 1;
    while (end > s && blank(*end))
        end--;
    if (end < s || *end != '"')
        return json_walk_bad(w, s - 1, "the string that begins here has no end");
    *ret = s;
    *ret_n = (size_t)(end - s);
    *ret_escaped = has_backslash(s, *ret_n);
    w->i++;
    return 0;
}

int json_take_string(struct json_walk *w, const char **ret, size_t *ret_n, bool *ret_escaped)
{
    return json_walk_take_string(w, ret, ret_n, ret_escaped);
}

static const char *digits(const char *s, const char *end)
{
    while (s < end && *s >= '0' && *s <= '9')
        s++;
    return s;
}

/* The end of the number at s, or NULL; *ret_kind 'i' or 'r'. */
static const char *json_walk_number(const char *s, const char *end, char *ret_kind)
{
    if (s < end && *s == '-')
        s++;
    const char *whole = s;
    s = digits(s, end);
    if (s == whole || (*whole == '0' && s - whole > 1))
        return NULL;
    *ret_kind = 'i';
    if (s < end && *s == '.') {
        const char *fraction = s + 1;
        s = digits(fraction, end);
        if (s == fraction)
            return NULL;
        *ret_kind = 'r';
    }
    if (s < end && (*s == 'e' || *s == 'E')) {
        s++;
        if (s < end && (*s == '+' || *s == '-'))
            s++;
        const char *exponent = s;
        s = digits(s, end);
        if (s == exponent)
            return NULL;
        *ret_kind = 'r';
    }
    return s;
}

/*
 * The value of one to eight digits, if that is all the n bytes are: by three multiplications,
 * without a branch on n. Eight bytes are read.
 */
static inline bool short_int(const char *s, size_t n, int64_t *ret)
{
    if (n - 1 > 7 || (*s == '0' && n > 1))
        return false;
    unsigned up = 64 - 8 * (unsigned)n;
    uint64_t v = load_u64(s) << up, zeros = 0x3030303030303030;
    v |= up ? zeros >> (64 - up) : 0;
    if ((v & 0xf0f0f0f0f0f0f0f0) != zeros ||
        ((v + 0x0606060606060606) & 0xf0f0f0f0f0f0f0f0) != zeros)
        return false;
    v -= zeros;
    v = (v * 10 + (v >> 8)) & 0x00ff00ff00ff00ff;
    v = (v * 100 + (v >> 16)) & 0x0000ffff0000ffff;
    *ret = (int64_t)((v * 10000 + (v >> 32)) & 0xffffffff);
    return true;
}

static const char *word(const char *s, const char *end, const char *text, size_t n)
{
    return (size_t)(end - s) >= n && !memcmp(s, text, n) ? s + n : NULL;
}

/* The end of the number or literal at s, NULL if it is malformed; *ret_kind is 0 if there is none.
 */
static inline const char *scalar(const char *s, const char *end, char *ret_kind)
{
    *ret_kind = *s;
    switch (*s) {
    case 't':
        return word(s, end, "true", 4);
    case 'f':
        return word(s, end, "false", 5);
    case 'n':
        return word(s, end, "null", 4);
    case 'N':
        *ret_kind = 'r';
        return word(s, end, "NaN", 3);
    case 'I':
        *ret_kind = 'r';
        return word(s, end, "Infinity", 8);
    default:
        if (*s == '-' && end - s > 1 && s[1] == 'I') {
            *ret_kind = 'r';
            return word(s, end, "-Infinity", 9);
        }
        *ret_kind = *s == '-' || (*s >= '0' && *s <= '9') ? 'i' : 0;
        return *ret_kind ? json_walk_number(s, end, ret_kind) : NULL;
    }
}

static inline int take_scalar(struct json_walk *w, const char **ret, size_t *ret_n, char *ret_kind)
{
    if (w->i >= w->n)
        return json_expected(w, "a value");
    const char *s = w->p + w->at[w->i], *next = w->p + w->at[w->i + 1], *end = next;
    int64_t value;
    if (short_int(s, (size_t)(next - s), &value))
        *ret_kind = 'i';
    else
        end = scalar(s, next, ret_kind);
    if (!*ret_kind)
        return json_expected(w, "a value");
    /* After a blank all is blank up to the next token. */
    if (!end || (end < next && !blank(*end)))
        return json_walk_bad(w, s, *s < 'A' ? "bad number" : "bad literal");
    *ret = s;
    *ret_n = (size_t)(end - s);
    w->i++;
    return 0;
}

const char *json_scalar_end(const char *s, const char *end)
{
    char kind;
    return scalar(s, end, &kind);
}

int json_take_scalar(struct json_walk *w, const char **ret, size_t *ret_n, char *ret_kind)
{
    return take_scalar(w, ret, ret_n, ret_kind);
}

bool json_take_int(struct json_walk *w, int64_t *ret)
{
    const char *s;
    size_t n;
    char kind;
    if (w->i >= w->n)
        return false;
    if (short_int(w->p + w->at[w->i], w->at[w->i + 1] - w->at[w->i], ret)) {
        w->i++;
        return true;
    }
    return !take_scalar(w, &s, &n, &kind) && kind == 'i' && json_int(s, n, ret);
}

bool json_int(const char *s, size_t n, int64_t *ret)
{
    bool minus = n && *s == '-';
    uint64_t v = 0;
    if (n > 20)
        return false;
    for (size_t i = minus; i < n; i++)
        if (__builtin_mul_overflow(v, 10, &v) ||
            __builtin_add_overflow(v, (uint64_t)(s[i] - '0'), &v))
            return false;
    if (v > (uint64_t)INT64_MAX + minus)
        return false;
    *ret = (int64_t)(minus ? 0 - v : v);
    return true;
}

/* ---- escapes ---- */

const uint8_t json_hex_value[256] = {
    ['0'] = 1,  ['1'] = 2,  ['2'] = 3,  ['3'] = 4,  ['4'] = 5,  ['5'] = 6,  ['6'] = 7,  ['7'] = 8,
    ['8'] = 9,  ['9'] = 10, ['a'] = 11, ['b'] = 12, ['c'] = 13, ['d'] = 14, ['e'] = 15, ['f'] = 16,
    ['A'] = 11, ['B'] = 12, ['C'] = 13, ['D'] = 14, ['E'] = 15, ['F'] = 16};

const char json_short_escape[256] = {['"'] = '"',  ['\\'] = '\\', ['/'] = '/',  ['b'] = '\b',
                                     ['f'] = '\f', ['n'] = '\n',  ['r'] = '\r', ['t'] = '\t'};

static int check_escapes(const struct json_walk *w, const char *s, size_t n)
{
    const char *end = s + n, *why;
    while ((s = memchr(s, '\\', (size_t)(end - s)))) {
        uint32_t c;
        size_t k = json_escape(s, end, &c, &why);
        if (!k)
            return json_walk_bad(w, s, why);
        s += k;
    }
    return 0;
}

/*
 * Copies up to the next backslash or the end, eight bytes at a time: reads and writes up to seven
 * bytes too many.
 */
static inline const char *copy_plain(char **dst, const char *s, const char *end)
{
    char *d = *dst;
    while (s < end) {
        uint64_t v = load_u64(s), x = v ^ 0x5c5c5c5c5c5c5c5c;
        uint64_t found = (x - 0x0101010101010101) & ~x & 0x8080808080808080;
        store_u64(d, v);
        size_t k = found ? (size_t)__builtin_ctzll(found) / 8 : 8;
        if ((size_t)(end - s) < k)
            k = (size_t)(end - s);
        s += k;
        d += k;
        if (found)
            break;
    }
    *dst = d;
    return s;
}

#ifdef __x86_64__
/*
 * The same through escapes of two bytes, 64 bytes at a time and without a branch on where they are:
 * the bytes after backslashes are looked up, and the backslashes squeezed out. Stops at the end or
 * at any other escape.
 */
AVX512_BYTES static const char *unescape_wide(char **dst, const char *s, const char *end)
{
    const __m512i low = _mm512_loadu_si512(json_short_escape),
                  high = _mm512_loadu_si512(json_short_escape + 64);
    char *d = *dst;
    for (bool more = true; more && s < end;) {
        size_t n = end - s < 64 ? (size_t)(end - s) : 64;
        __m512i v = _mm512_maskz_loadu_epi8(json_first_bits(n), s);
        uint64_t backslash = _mm512_cmpeq_epi8_mask(v, _mm512_set1_epi8('\\'));
        if (!backslash) {
            _mm512_mask_storeu_epi8(d, json_first_bits(n), v);
            s += n;
            d += n;
            continue;
        }
        uint64_t starts = json_escape_starts(backslash), escaped = starts << 1;
        __m512i meant = _mm512_permutex2var_epi8(low, v, high); /* by the low seven bits */
        uint64_t other = escaped & (_mm512_testn_epi8_mask(meant, meant) | _mm512_movepi8_mask(v));
        if (other) /* the byte before it is its backslash */
            n = (size_t)__builtin_ctzll(other) - 1;
        else if (starts >> (n - 1) & 1)
            n--;
        more = n && !other;
        uint64_t kept = ~starts & json_first_bits(n);
        size_t k = (size_t)__builtin_popcountll(kept);
        v = _mm512_maskz_compress_epi8(kept, _mm512_mask_mov_epi8(v, escaped, meant));
        _mm512_mask_storeu_epi8(d, json_first_bits(k), v);
        s += n;
        d += k;
    }
    *dst = d;
    return s;
}
#endif

/* Up to the end or to an escape of more than two bytes. */
static inline const char *copy_simple(char **dst, const char *s, const char *end)
{
#ifdef __x86_64__
    if (cpu_avx512_bytes())
        return end - s > 1 && s[0] == '\\' && s[1] == 'u' ? s : unescape_wide(dst, s, end);
#endif
    return s < end && *s != '\\' ? copy_plain(dst, s, end) : s;
}

int json_unescape(const struct json_walk *w, char *dst, const char *s, size_t n, size_t *ret_n)
{
    const char *end = s + n, *why;
    char *d = dst;
    for (;;) {
        uint32_t c;
        s = copy_simple(&d, s, end);
        if (s == end)
            break;
        size_t k = json_escape(s, end, &c, &why);
        if (!k)
            return json_walk_bad(w, s, why);
        d += utf8_put(d, c);
        s += k;
    }
    *ret_n = (size_t)(d - dst);
    return 0;
}

/* ---- values to skip ---- */

/* The kinds of the open containers, a bit each: 1 for an object. */
struct nest {
    uint64_t bits[16];
    unsigned depth;
};

static inline bool in_object(const struct nest *s)
{
    unsigned d = s->depth - 1;
    return s->bits[d / 64] >> (d % 64) & 1;
}

static int nest_open(struct json_walk *w, struct nest *s, bool object)
{
    if (w->depth + s->depth >= w->max_depth)
        return err_set(w->e, ERR_DATA, "byte %zu: nested deeper than %u", (size_t)w->at[w->i],
                       w->max_depth);
    uint64_t bit = (uint64_t)1 << (s->depth % 64);
    uint64_t *word64 = &s->bits[s->depth / 64];
    *word64 = object ? *word64 | bit : *word64 & ~bit;
    s->depth++;
    w->i++;
    return 0;
}

static inline int skip_string(struct json_walk *w)
{
    const char *s;
    size_t n;
    bool escaped = false;
    int rc = json_walk_take_string(w, &s, &n, &escaped);
    return rc || !escaped ? rc : check_escapes(w, s, n);
}

static inline int skip_key(struct json_walk *w)
{
    if (json_peek(w) != '"')
        return json_expected(w, "a key in quotes");
    int rc = skip_string(w);
    return rc ? rc : json_take(w, ':', "':' after a key");
}

/* One value, or the opening of one: *ret_open is true when its members are next. */
static inline int skip_begin(struct json_walk *w, struct nest *s, bool *ret_open)
{
    const char *text;
    size_t n;
    char kind, c = json_peek(w);
    *ret_open = false;
    if (c == '"')
        return skip_string(w);
    if (c != '{' && c != '[')
        return take_scalar(w, &text, &n, &kind);
    int rc = nest_open(w, s, c == '{');
    if (rc)
        return rc;
    if (json_peek(w) == (c == '{' ? '}' : ']')) {
        w->i++;
        s->depth--;
        return 0;
    }
    *ret_open = true;
    return c == '{' ? skip_key(w) : 0;
}

int json_skip(struct json_walk *w)
{
    struct nest s;
    s.depth = 0;
    for (;;) {
        bool open;
        int rc = skip_begin(w, &s, &open);
        if (rc)
            return rc;
        if (open)
            continue;
        while (s.depth && json_peek(w) == (in_object(&s) ? '}' : ']')) {
            w->i++;
            s.depth--;
        }
        if (!s.depth)
            return 0;
        bool object = in_object(&s);
        rc = json_take(w, ',', object ? "',' or '}'" : "',' or ']'");
        if (!rc && object)
            rc = skip_key(w);
        if (rc)
            return rc;
    }
}

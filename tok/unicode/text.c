/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Lower case and normal forms of texts. The forms are those of UAX #15: decompose, sort marks by
 * combining class, compose. Text is only processed where a character's flags say that it may
 * change: from the character that it may compose with to the next one that ignores what precedes.
 */
#include <stdlib.h>
#include <string.h>
#include "base/core/buf.h"
#include "base/core/simd.h"
#include "base/core/mem.h"
#include "base/core/utf8.h"
#include "tok/unicode/unicode.h"
#include "tok/unicode/tables/tables.h"

enum {
    S_BASE = 0xac00, /* Hangul: syllables, and their leading, vowel and trailing parts */
    L_BASE = 0x1100,
    V_BASE = 0x1161,
    T_BASE = 0x11a7,
    L_COUNT = 19,
    V_COUNT = 21,
    T_COUNT = 28,
    S_COUNT = L_COUNT * V_COUNT * T_COUNT
};

/* Length of the ASCII prefix, in steps of 32 bytes and then one by one. */
static size_t ascii_prefix(const char *text, size_t n)
{
    size_t i = 0;
    for (; i + 32 <= n; i += 32) {
        uint64_t w[4];
        memcpy(w, text + i, 32);
        if ((w[0] | w[1] | w[2] | w[3]) & 0x8080808080808080u)
            break;
    }
    while (i < n && (unsigned char)text[i] < 0x80)
        i++;
    return i;
}

/* The code point at p (p < end) and its length; for invalid UTF-8, something harmless. */
static inline uint32_t decode(const char *p, const char *end, size_t *ret_length)
{
    const unsigned char *s = (const unsigned char *)p;
    size_t left = (size_t)(end - p);
    *ret_length = 1;
    if (s[0] < 0xc0)
        return s[0];
    if (s[0] < 0xe0 && left >= 2) {
        *ret_length = 2;
        return (s[0] & 0x1fu) << 6 | (s[1] & 0x3fu);
    }
    if (s[0] >= 0xe0 && s[0] < 0xf0 && left >= 3) {
        *ret_length = 3;
        return (s[0] & 0xfu) << 12 | (s[1] & 0x3fu) << 6 | (s[2] & 0x3fu);
    }
    if (s[0] >= 0xf0 && left >= 4) {
        uint32_t c =
            (s[0] & 7u) << 18 | (s[1] & 0x3fu) << 12 | (s[2] & 0x3fu) << 6 | (s[3] & 0x3fu);
        *ret_length = 4;
        return c < UNI_LIMIT ? c : 0xfffd;
    }
    return 0xfffd;
}

static void add_char(struct buf *out, uint32_t c)
{
    out->len += utf8_put(buf_reserve(out, 4), c);
}

/* ---- lower case ------------------------------------------------------------------------------ */

size_t uni_lower(uint32_t c, uint32_t ret[2])
{
    BUG_ON(c >= UNI_LIMIT, "code point %#x", c);
    if (c == 0x130) {
        ret[0] = 'i';
        ret[1] = 0x307;
        return 2;
    }
    ret[0] = c + (uint32_t)uni_lower_step[uni_at(uni_lower_class, c)];
    return 1;
}

/* A step from c, or n code points at a place of uni_case_text. */
static size_t take_case(uint32_t c, int32_t value, size_t n, uint32_t ret[UNI_CASE_MAX])
{
    if (!n)
        return ret[0] = c + (uint32_t)value, 1;
    for (size_t i = 0; i < n; i++)
        ret[i] = uni_case_text[(size_t)value + i];
    return n;
}

static const struct uni_case *case_of(uint32_t c)
{
    BUG_ON(c >= UNI_LIMIT, "code point %#x", c);
    return &uni_case[uni_at(uni_case_class, c)];
}

size_t uni_upper(uint32_t c, uint32_t ret[UNI_CASE_MAX])
{
    const struct uni_case *k = case_of(c);
    return take_case(c, k->upper, k->upper_n, ret);
}

size_t uni_title(uint32_t c, uint32_t ret[UNI_CASE_MAX])
{
    const struct uni_case *k = case_of(c);
    return take_case(c, k->title, k->title_n, ret);
}

unsigned uni_case_flags(uint32_t c)
{
    return case_of(c)->flags;
}

static void lower_ascii(const char *text, size_t n, char *to)
{
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)text[i];
        to[i] = (char)(c + ((unsigned char)(c - 'A') < 26) * 32);
    }
}

void uni_lowercase(const char *text, size_t n, struct buf *out)
{
    if (!n)
        return;
    const char *end = text + n;
    for (const char *p = text; p < end;) {
        size_t length = ascii_prefix(p, (size_t)(end - p));
        lower_ascii(p, length, buf_reserve(out, length));
        out->len += length;
        p += length;
        while (p < end && (unsigned char)*p >= 0x80) {
            uint32_t to[2];
            size_t count = uni_lower(decode(p, end, &length), to);
            for (size_t i = 0; i < count; i++)
                add_char(out, to[i]);
            p += length;
        }
    }
}

/* ---- normal forms ---------------------------------------------------------------------------- */

uint8_t uni_combining(uint32_t c)
{
    BUG_ON(c >= UNI_LIMIT, "code point %#x", c);
    return uni_norm[uni_at(uni_norm_class, c)].ccc;
}

static inline unsigned flags_of(uint32_t c)
{
    return uni_norm[uni_at(uni_norm_class, c)].flags;
}

/* Decomposed code points, each with its combining class in the top byte. Short runs, which are
 * nearly all, live in `few`. */
struct run {
    uint32_t few[64];
    uint32_t *c;
    size_t n, cap;
};

static void run_init(struct run *r)
{
    r->c = r->few;
    r->n = 0;
    r->cap = sizeof(r->few) / sizeof(r->few[0]);
}

static void run_finish(struct run *r)
{
    if (r->c != r->few)
        free(r->c);
}

static void run_add(struct run *r, uint32_t c)
{
    if (r->n == r->cap) {
        uint32_t *more = mem_grow(r->c == r->few ? NULL : r->c, r->cap * 2, sizeof(*more));
        if (r->c == r->few)
            memcpy(more, r->few, sizeof(r->few));
        r->c = more;
        r->cap *= 2;
    }
    r->c[r->n++] = c | (uint32_t)uni_combining(c) << 24;
}

static void decompose(struct run *r, enum uni_form f, uint32_t c)
{
    uint32_t s = c - S_BASE;
    if (s < S_COUNT) {
        run_add(r, L_BASE + s / (V_COUNT * T_COUNT));
        run_add(r, V_BASE + s / T_COUNT % V_COUNT);
        if (s % T_COUNT)
            run_add(r, T_BASE + s % T_COUNT);
        return;
    }
    uint32_t at = f >= UNI_NFKC ? uni_at(uni_compat, c) : 0;
    at = at ? at : uni_at(uni_canonical, c);
    if (!at)
        run_add(r, c);
    for (uint32_t i = 1; at && i <= uni_decomposed[at]; i++)
        run_add(r, uni_decomposed[at + i]);
}

/* Stable sort of marks by class: insertion sort, or counting sort for many. */
static void sort_marks(uint32_t *c, size_t n)
{
    if (n <= 32) {
        for (size_t i = 1; i < n; i++) {
            uint32_t x = c[i];
            size_t j = i;
            for (; j > 0 && c[j - 1] >> 24 > x >> 24; j--)
                c[j] = c[j - 1];
            c[j] = x;
        }
        return;
    }
    size_t at[257] = {0};
    uint32_t *copy = mem_grow(NULL, n, sizeof(*copy));
    memcpy(copy, c, n * sizeof(*c));
    for (size_t i = 0; i < n; i++)
        at[(c[i] >> 24) + 1]++;
    for (size_t i = 0; i < 256; i++)
        at[i + 1] += at[i];
    for (size_t i = 0; i < n; i++)
        c[at[copy[i] >> 24]++] = copy[i];
    free(copy);
}

static void reorder(struct run *r)
{
    for (size_t i = 0; i < r->n; i++) {
        size_t first = i;
        while (i < r->n && r->c[i] >> 24)
            i++;
        if (i - first > 1)
            sort_marks(r->c + first, i - first);
    }
}

/* What the two compose to; 0: they do not compose. */
static uint32_t composite(uint32_t a, uint32_t b)
{
    if (a - L_BASE < L_COUNT && b - V_BASE < V_COUNT)
        return S_BASE + ((a - L_BASE) * V_COUNT + (b - V_BASE)) * T_COUNT;
    if (a - S_BASE < S_COUNT && (a - S_BASE) % T_COUNT == 0 && b - T_BASE - 1 < T_COUNT - 1)
        return a + (b - T_BASE);
    for (const uint32_t(*p)[2] = uni_composed + uni_at(uni_compose, a); (*p)[0]; p++) {
        if ((*p)[0] == b)
            return (*p)[1];
    }
    return 0;
}

/* A mark between a starter and c with c's class or a higher one blocks the composition. */
static void compose(struct run *r)
{
    size_t starter = SIZE_MAX, n = 0;
    for (size_t i = 0; i < r->n; i++) {
        uint32_t c = r->c[i] & 0xffffff, class = r->c[i] >> 24;
        bool next = starter != SIZE_MAX && n == starter + 1;
        if (starter != SIZE_MAX && (next || r->c[n - 1] >> 24 < class)) {
            uint32_t both = composite(r->c[starter] & 0xffffff, c);
            if (both) {
                r->c[starter] = both;
                continue;
            }
        }
        if (!class)
            starter = n;
        r->c[n++] = r->c[i];
    }
    r->n = n;
}

#ifdef __x86_64__
AVX512 static inline uint64_t between(__m512i v, int first, int last)
{
    __m512i from = _mm512_sub_epi8(v, _mm512_set1_epi8((char)first));
    return _mm512_cmple_epu8_mask(from, _mm512_set1_epi8((char)(last - first)));
}

/*
 * Skips 64 bytes at a time while NFC leaves all characters that begin there unchanged, as judged by
 * their first bytes: Latin, Cyrillic, East Asian scripts, and symbols.
 */
AVX512 static const char *skip_nfc_wide(const char *p, const char *end)
{
    for (; end - p >= 64 + 2; p += 64) {
        __m512i a = _mm512_loadu_si512(p);
        if (!_mm512_movepi8_mask(a))
            continue;
        uint64_t left = between(a, 0xc0, 0xff);
        left &= ~(between(a, 0xc2, 0xcb) | between(a, 0xcf, 0xd1));
        left &= ~(between(a, 0xe4, 0xe9) | between(a, 0xeb, 0xec));
        if (!left)
            continue;
        __m512i b = _mm512_loadu_si512(p + 1), c = _mm512_loadu_si512(p + 2);
        uint64_t sound = between(b, 0x82, 0x82) & between(c, 0x99, 0x9a);
        uint64_t kana = between(b, 0x81, 0x83) & ~sound, first = between(b, 0x80, 0x80);
        left &= ~(between(a, 0xe3, 0xe3) & (kana | (first & between(c, 0x80, 0xa9))));
        left &= ~(between(a, 0xef, 0xef) & between(b, 0xbc, 0xbe));
        uint64_t sign = between(b, 0x86, 0x8b) | between(b, 0x94, 0xaa);
        left &= ~(between(a, 0xe2, 0xe2) & (sign | (first & between(c, 0x82, 0xbf))));
        if (left)
            break;
    }
    return p;
}
#endif

static const char *skip_nfc_plain(const char *p, const char *end)
{
    (void)end;
    return p;
}

static const char *(*const skip_nfc[SIMD_LEVELS])(const char *p, const char *end) = {
    [SIMD_PLAIN] = skip_nfc_plain,
#ifdef __x86_64__
    [SIMD_AVX2] = skip_nfc_plain,
    [SIMD_AVX512] = skip_nfc_wide,
    [SIMD_AVX512_BYTES] = skip_nfc_wide,
#endif
};

/* The start of the character that contains the byte at `at`, not before p. */
static const char *begin_of(const char *p, const char *at)
{
    while (at > p && ((unsigned char)*at & 0xc0) == 0x80)
        at--;
    return at;
}

/* A start of a character up to which nothing changes, by a quick test. */
static const char *skip_many(enum uni_form f, const char *p, const char *end)
{
    return f == UNI_NFC ? begin_of(p, skip_nfc[simd_best()](p, end)) : p;
}

/* The end of the inert text at p; p itself if there is none. */
static const char *skip_inert(enum uni_form f, const char *p, const char *end,
                              const char **ret_last)
{
    enum { AGAIN = 64 };
    unsigned changes = 1u << f;
    const char *again = p;
    while (p < end) {
        if (p >= again) {
            const char *to = skip_many(f, p, end);
            if (to > p)
                *ret_last = begin_of(p, to - 1);
            p = to;
            again = p + AGAIN;
        }
        size_t length = ascii_prefix(p, (size_t)(end - p));
        if (length) {
            *ret_last = p + length - 1;
            p += length;
        }
        while (p < end && p < again && (unsigned char)*p >= 0x80) {
            /* U+4000 to U+9FFF: unchanged in every form */
            if ((unsigned char)(*p - 0xe4) < 6 && end - p >= 3) {
                length = 3;
            } else {
                uint32_t c = decode(p, end, &length);
                if (flags_of(c) & changes)
                    return p;
            }
            *ret_last = p;
            p += length;
        }
    }
    return p;
}

/*
 * The next stretch that may change: from *ret_from, a character that ignores what precedes it.
 * NULL: there is none.
 */
static const char *find_part(enum uni_form f, const char *p, const char *end)
{
    const char *last = NULL;
    const char *at = skip_inert(f, p, end, &last);
    size_t length;
    if (at == end)
        return NULL;
    bool composes = f == UNI_NFC || f == UNI_NFKC;
    bool acts = flags_of(decode(at, end, &length)) & 16u << f;
    return composes && acts && last ? last : at;
}

static const char *normalize_part(enum uni_form f, const char *p, const char *end, struct buf *out)
{
    struct run r;
    size_t length;
    run_init(&r);
    for (bool first = true; p < end; first = false, p += length) {
        uint32_t c = decode(p, end, &length);
        if (!first && !(flags_of(c) & 16u << f))
            break;
        decompose(&r, f, c);
    }
    reorder(&r);
    if (f == UNI_NFC || f == UNI_NFKC)
        compose(&r);
    for (size_t i = 0; i < r.n; i++)
        add_char(out, r.c[i] & 0xffffff);
    run_finish(&r);
    return p;
}

size_t uni_normal_prefix(enum uni_form f, const char *text, size_t n)
{
    const char *part = find_part(f, text, text + n);
    return part ? (size_t)(part - text) : n;
}

bool uni_acts_before(enum uni_form f, uint32_t c)
{
    return flags_of(c) & 16u << f;
}

void uni_normalize(enum uni_form f, const char *text, size_t n, struct buf *out)
{
    if (!n)
        return;
    const char *p = text, *end = text + n;
    while (p < end) {
        const char *part = find_part(f, p, end);
        buf_add(out, p, (size_t)((part ? part : end) - p));
        p = part ? normalize_part(f, part, end, out) : end;
    }
}

size_t uni_decompose(enum uni_form f, uint32_t c, uint32_t ret[UNI_DECOMPOSED_MAX])
{
    struct run r;
    run_init(&r);
    decompose(&r, f, c);
    BUG_ON(r.n > UNI_DECOMPOSED_MAX, "code point %#x decomposes to %zu", c, r.n);
    for (size_t i = 0; i < r.n; i++)
        ret[i] = r.c[i] & 0xffffff;
    size_t n = r.n;
    run_finish(&r);
    return n;
}

uint32_t uni_composite(uint32_t a, uint32_t b)
{
    return composite(a, b);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/core/utf8.h"
#include "tok/text/byte_alphabet.h"
#include "tok/pipeline/pipeline_internal.h"
#include "tok/pipeline/precompiled.h"
#include "tok/unicode/unicode.h"

/* Normalizers, each from one buffer into the next. */

enum {
    GROWTH = 64,           /* bytes that they may make of a byte, */
    GROWTH_FREE = 1 << 20, /* of any text, */
    GROWTH_LONG = 4 /* and as many as limits.h says in all, unless these are so many of a byte */
};

static void normalize_put_char(struct buf *out, uint32_t c)
{
    out->len += utf8_put(buf_reserve(out, 4), c);
}

bool norm_is_chinese(uint32_t c)
{
    return (c >= 0x4e00 && c <= 0x9fff) || (c >= 0x3400 && c <= 0x4dbf) ||
           (c >= 0x20000 && c <= 0x2a6df) || (c >= 0x2a700 && c <= 0x2b73f) ||
           (c >= 0x2b740 && c <= 0x2b81f) || (c >= 0x2b920 && c <= 0x2ceaf) ||
           (c >= 0xf900 && c <= 0xfaff) || (c >= 0x2f800 && c <= 0x2fa1f);
}

/*
 * Controls, formats and private-use characters of Unicode 8, except white space: these are removed.
 */
bool norm_is_dirt(uint32_t c)
{
    if (c == '\t' || c == '\n' || c == '\r')
        return false;
    return c == 0 || c == 0xfffd ||
           uni_in(UNI_8, c, 1u << UNI_CC | 1u << UNI_CF | 1u << UNI_CO | 1u << UNI_CS);
}

static void clean_text(const char *text, size_t n, struct buf *out)
{
    for (size_t i = 0, k; i < n; i += k) {
        uint32_t c = utf8_at(text + i, &k);
        if (!norm_is_dirt(c))
            normalize_put_char(out, uni_space(c) ? ' ' : c);
    }
}

static void space_chinese(const char *text, size_t n, struct buf *out)
{
    for (size_t i = 0, k; i < n; i += k) {
        bool wide = norm_is_chinese(utf8_at(text + i, &k));
        if (wide)
            buf_addc(out, ' ');
        buf_add(out, text + i, k);
        if (wide)
            buf_addc(out, ' ');
    }
}

static void drop(const char *text, size_t n, enum uni_version v, uint32_t set, struct buf *out)
{
    for (size_t i = 0, k; i < n; i += k)
        if (!uni_in(v, utf8_at(text + i, &k), set))
            buf_add(out, text + i, k);
}

uint32_t norm_nmt(uint32_t c)
{
    if ((c >= 1 && c <= 8) || c == 0xb || (c >= 0xe && c <= 0x1f) || c == 0x7f || c == 0x8f ||
        c == 0x9f)
        return NORM_GOES;
    bool space = c == 9 || c == 0xa || c == 0xc || c == 0xd || c == 0x1680 ||
                 (c >= 0x200b && c <= 0x200f) || c == 0x2028 || c == 0x2029 || c == 0x2581 ||
                 c == 0xfeff || c == 0xfffd;
    return space ? ' ' : c;
}

static void nmt(const char *text, size_t n, struct buf *out)
{
    for (size_t i = 0, k; i < n; i += k) {
        uint32_t c = norm_nmt(utf8_at(text + i, &k));
        if (c != NORM_GOES)
            normalize_put_char(out, c);
    }
}

static void normalize_strip(const struct norm_step *s, const char *text, size_t n, struct buf *out)
{
    size_t at = 0, k;
    while (s->left && at < n && uni_space(utf8_at(text + at, &k)))
        at += k;
    while (s->right && n > at) {
        size_t before = utf8_before(text, n);
        if (!uni_space(utf8_at(text + before, &k)))
            break;
        n = before;
    }
    buf_add(out, text + at, n - at);
}

static int replace(const struct norm_step *s, struct pipe_work *w, const char *text, size_t n,
                   struct buf *out, struct err *e)
{
    struct regex_at at = {0};
    size_t done = 0;
    for (bool found = true;;) {
        int code = regex_next(s->pattern, w->regex, text, n, &at, &found, e);
        if (code)
            return code;
        if (!found || out->len > w->norm_most) /* an error: no need to fill the memory */
            break;
        buf_add(out, text + done, at.start - done);
        buf_add(out, s->content.p, s->content.n);
        done = at.end;
    }
    buf_add(out, text + done, n - done);
    return 0;
}

static void letters(const char *text, size_t n, struct buf *out)
{
    char *dst = buf_reserve(out, n * 2);
    for (size_t i = 0; i < n; i++)
        dst += letter_put(dst, (uint8_t)text[i]);
    out->len = (size_t)(dst - out->data);
}

/* Swaps a and b, and empties b. */
static void turn(struct buf *a, struct buf *b)
{
    struct buf t = *a;
    *a = *b;
    *b = t;
    buf_reset(b);
}

/* Four optional steps in one; `t` is a second buffer. */
static void bert(const struct norm_step *s, const char *text, size_t n, struct buf *out,
                 struct buf *t)
{
    buf_reset(t);
    buf_add(t, text, n);
    if (s->clean) {
        clean_text(t->data, t->len, out);
        turn(t, out);
    }
    if (s->chinese) {
        space_chinese(t->data, t->len, out);
        turn(t, out);
    }
    if (s->accents) {
        uni_normalize(UNI_NFD, t->data, t->len, out);
        turn(t, out);
        drop(t->data, t->len, UNI_8, 1u << UNI_MN, out);
        turn(t, out);
    }
    if (s->lower) {
        uni_lowercase(t->data, t->len, out);
        turn(t, out);
    }
    buf_add(out, t->data, t->len);
}

static int run_step(const struct norm_step *s, struct pipe_work *w, const char *text, size_t n,
                    struct buf *out, struct err *e)
{
    static const enum uni_form form[] = {UNI_NFC, UNI_NFD, UNI_NFKC, UNI_NFKD};
    switch (s->kind) {
    case NORM_NFC:
    case NORM_NFD:
    case NORM_NFKC:
    case NORM_NFKD:
        uni_normalize(form[s->kind - NORM_NFC], text, n, out);
        return 0;
    case NORM_LOWERCASE:
        uni_lowercase(text, n, out);
        return 0;
    case NORM_STRIP:
        normalize_strip(s, text, n, out);
        return 0;
    case NORM_STRIP_ACCENTS:
        drop(text, n, UNI_9, UNI_M, out);
        return 0;
    case NORM_NMT:
        nmt(text, n, out);
        return 0;
    case NORM_BERT:
        bert(s, text, n, out, &w->bert);
        return 0;
    case NORM_PREPEND:
        if (n)
            buf_add(out, s->content.p, s->content.n);
        buf_add(out, text, n);
        return 0;
    case NORM_REPLACE:
        return replace(s, w, text, n, out, e);
    case NORM_BYTE_LEVEL:
        letters(text, n, out);
        return 0;
    case NORM_PRECOMPILED:
        precompiled_run(s->content.p, text, n, out);
        return 0;
    }
    BUG("normalizer %d", (int)s->kind);
}

int pipe_norm_step(const struct pipe_spec *s, size_t i, struct pipe_work *w, unsigned edge,
                   struct buf *text, struct err *e)
{
    const struct norm_step *t = &s->norm[i];
    if ((t->kind == NORM_STRIP && edge & EDGE_STRIPPED) ||
        (t->kind == NORM_PREPEND && edge & EDGE_CUT))
        return 0;
    struct buf *from = &w->swap; /* output of the previous step */
    turn(from, text);
    memset(buf_reserve(from, TEXT_SLACK), 0, TEXT_SLACK);
    if (!w->norm_most)
        w->norm_most = TEXT_MAX;
    int code = run_step(t, w, from->data, from->len, text, e);
    if (!code && text->len > TEXT_MAX)
        code = err_set(e, ERR_RESOURCE, "a text of %zu bytes once normalized, more than 2^31",
                       text->len);
    return code;
}

int norm_refuse_growth(const struct pipe_spec *s, size_t i, size_t n, size_t made, struct err *e)
{
    const struct norm_step *t = &s->norm[i];
    const char *pattern = t->kind == NORM_REPLACE ? regex_text(t->pattern) : NULL;
    return err_set(
        e, ERR_DATA,
        "%s: normalizer %zu of %zu%s%.100s%s makes %zu bytes or more of %zu bytes of "
        "text; %d for each and %d MiB are allowed, %zu MiB in all (--long-text-memory raises that)",
        s->path, i + 1, s->nnorm, pattern ? ", Replace of \"" : "", pattern ? pattern : "",
        pattern ? "\"," : "", made, n, GROWTH, GROWTH_FREE >> 20, s->limits.growth >> 20);
}

/* Bytes that normalizers may make of n bytes. */
static size_t most_of(const struct pipe_spec *s, size_t n)
{
    if (n > TEXT_MAX / GROWTH_LONG)
        return TEXT_MAX;
    size_t all = s->limits.growth;
    size_t most = n > all / GROWTH ? all : n * GROWTH + GROWTH_FREE;
    most = most < all ? most : all;
    return most > n * GROWTH_LONG ? most : n * GROWTH_LONG;
}

bool norm_grows_too_much(const struct pipe_spec *s, uint64_t n, uint64_t made, bool last)
{
    uint64_t most = n > TEXT_MAX / GROWTH_LONG ? n * GROWTH_LONG : most_of(s, (size_t)n);
    return made > most && (last || made > s->limits.growth_part);
}

size_t norm_growth(const struct pipe_spec *s)
{
    size_t all = 1;
    for (size_t i = 0; i < s->nnorm && all < GROWTH; i++) {
        const struct norm_step *t = &s->norm[i];
        size_t n; /* bytes that a match has at least */
        if (t->kind == NORM_REPLACE) {
            n = regex_literal_text(t->pattern, &n) && n ? n : 1;
            size_t once = (t->content.n + n - 1) / n;
            all *= once > 1 ? once : 1;
        } else if (t->kind == NORM_BYTE_LEVEL) {
            all *= 2;
        }
    }
    return all <= GROWTH_LONG ? 1 : all < GROWTH ? all : GROWTH;
}

static int refuse_large(const struct pipe_work *w, size_t n, struct err *e)
{
    return err_set(e, ERR_DATA,
                   "%s: %zu bytes of text become more than %zu MiB once normalized, but %s needs "
                   "them in one piece: split the line or raise --long-text-memory",
                   w->p->spec.path, n, w->norm_most >> 20, w->p->keeps ? w->p->keeps : "the model");
}

int pipe_normalize_edge(const struct pipe_spec *s, struct pipe_work *w, const char *text, size_t n,
                        unsigned edge, struct buf *out, struct err *e)
{
    int code = 0;
    buf_reset(out);
    buf_add(out, text, n);
    w->norm_most = most_of(s, n);
    size_t limit = w->norm_limit, least = n * GROWTH_LONG;
    limit = limit == s->limits.normal_large && least > limit ? least : limit;
    bool limited = limit && limit < w->norm_most;
    w->norm_most = limited ? limit : w->norm_most;
    for (size_t i = 0; i < s->nnorm && !code; i++) {
        code = pipe_norm_step(s, i, w, edge, out, e);
        if (code || out->len <= w->norm_most)
            continue;
        w->swollen = limited;
        code = limited ? refuse_large(w, n, e) : norm_refuse_growth(s, i, n, out->len, e);
    }
    memset(buf_reserve(out, TEXT_SLACK), 0, TEXT_SLACK);
    return code;
}

int pipe_normalize(const struct pipe_spec *s, struct pipe_work *w, const char *text, size_t n,
                   struct buf *out, struct err *e)
{
    return pipe_normalize_edge(s, w, text, n, 0, out, e);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/jinja/case.h"

#include "base/core/utf8.h"
#include "tok/jinja/text.h"
#include "tok/unicode/unicode.h"

size_t case_space(const char *p, const char *end)
{
    size_t k = utf8_char(p, end);
    uint32_t c = k ? utf8_code(p, k) : 'x';
    return uni_space(c) || (c >= 0x1c && c <= 0x1f) ? k : 0;
}

bool case_is_printable(uint32_t c)
{
    if (c < 0x7f)
        return c >= 0x20;
    uint32_t not = 1u << UNI_CN | 1u << UNI_CC | 1u << UNI_CF | 1u << UNI_CS | 1u << UNI_CO | UNI_Z;
    return !uni_in(UNI_15, c, not );
}

/* ---- letters --------------------------------------------------------------------------------- */

/* Is the letter before `at`, characters that case ignores left out, a cased one? */
static bool is_cased_before(const struct value *v, size_t at)
{
    while (at) {
        size_t k;
        at = utf8_before(v->text, at);
        unsigned flags = uni_case_flags(utf8_at(v->text + at, &k));
        if (!(flags & UNI_IS_CASE_IGNORABLE))
            return flags & UNI_IS_CASED;
    }
    return false;
}

static bool is_cased_after(const struct value *v, size_t at)
{
    while (at < v->n) {
        size_t k;
        unsigned flags = uni_case_flags(utf8_at(v->text + at, &k));
        if (!(flags & UNI_IS_CASE_IGNORABLE))
            return flags & UNI_IS_CASED;
        at += k;
    }
    return false;
}

/* Lower case of the character at `at`; a capital sigma that ends a word becomes the final one. */
static size_t lower_at(const struct value *v, size_t at, uint32_t c, size_t k,
                       uint32_t ret[UNI_CASE_MAX])
{
    if (c == 0x3a3)
        return ret[0] = is_cased_before(v, at) && !is_cased_after(v, at + k) ? 0x3c2 : 0x3c3, 1;
    if (uni_category(UNI_15, c) == UNI_CN)
        return ret[0] = c, 1;
    return uni_lower(c, ret);
}

/* What is done to a character: its place in a word decides for titles. */
static size_t change_case(const struct value *v, size_t at, uint32_t c, size_t k, enum case_form f,
                          bool inside, uint32_t ret[UNI_CASE_MAX])
{
    unsigned flags = f == CASE_SWAP ? uni_case_flags(c) : 0;
    if (f == CASE_UPPER || flags & UNI_IS_LOWER)
        return uni_upper(c, ret);
    if (f == CASE_LOWER || flags & UNI_IS_UPPER)
        return lower_at(v, at, c, k, ret);
    if (f == CASE_SWAP)
        return ret[0] = c, 1;
    bool first = f == CASE_CAPITALIZE ? at == 0 : !inside;
    return first ? uni_title(c, ret) : lower_at(v, at, c, k, ret);
}

static bool write_ascii(struct jinja_context *c, const struct value *v, enum case_form f)
{
    if (!jinja_step(c, v->n / 64) || !jinja_need(c, v->n))
        return false;
    char *to = pool_take(&c->values, v->n);
    unsigned char from = f == CASE_UPPER ? 'a' : 'A';
    for (size_t i = 0; i < v->n; i++)
        to[i] = (char)(v->text[i] ^ ((unsigned char)(v->text[i] - from) < 26 ? 0x20 : 0));
    struct value changed = *v;
    changed.text = to;
    return text_write_value(c, &changed);
}

static bool is_ascii(const struct value *v)
{
    unsigned char all = 0;
    for (size_t i = 0; i < v->n; i++)
        all |= (unsigned char)v->text[i];
    return all < 0x80;
}

bool case_write(struct jinja_context *c, const struct value *v, enum case_form f)
{
    size_t cursor = 0, k;
    bool inside = false;
    if (f <= CASE_LOWER && is_ascii(v))
        return write_ascii(c, v, f);
    if (!jinja_step(c, v->n / 8))
        return false;
    for (size_t at = 0; at < v->n; at += k) {
        uint32_t ch = utf8_at(v->text + at, &k), to[UNI_CASE_MAX];
        size_t n = change_case(v, at, ch, k, f, inside, to), bytes = 0;
        char text[4 * UNI_CASE_MAX];
        for (size_t i = 0; i < n; i++)
            bytes += utf8_put(text + bytes, to[i]);
        inside = uni_case_flags(ch) & UNI_IS_CASED;
        if (!text_write(c, text, bytes, text_tag(c, v, at, &cursor)))
            return false;
    }
    return true;
}

/* ---- classes --------------------------------------------------------------------------------- */

static bool is_of(uint32_t c, enum case_class k)
{
    return k == CASE_IS_DIGIT ? (uni_case_flags(c) & UNI_IS_DIGIT) != 0 : uni_in(UNI_15, c, UNI_L);
}

bool case_is(const struct value *v, enum case_class class)
{
    const char *end = v->text + v->n;
    size_t k;
    bool cased = false;
    for (const char *p = v->text; p < end; p += k) {
        uint32_t c = utf8_at(p, &k);
        unsigned flags = uni_case_flags(c);
        if (class == CASE_IS_SPACE   ? !case_space(p, end)
            : class == CASE_IS_LOWER ? (flags & (UNI_IS_UPPER | UNI_IS_TITLE)) != 0
            : class == CASE_IS_UPPER ? (flags & (UNI_IS_LOWER | UNI_IS_TITLE)) != 0
                                     : !is_of(c, class))
            return false;
        cased |= (flags & (class == CASE_IS_LOWER ? UNI_IS_LOWER : UNI_IS_UPPER)) != 0;
    }
    return class >= CASE_IS_LOWER ? cased : v->n > 0;
}

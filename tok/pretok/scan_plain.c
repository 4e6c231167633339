/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The regexes of the families by hand, alternative by alternative in their order, over code points.
 * The slow twin of scan_fast.c, and the code for processors without its vectors.
 */

#include "base/core/err.h"
#include "tok/pretok/scan_class.h"

/* Classes, one bit each; a set is their union. */
enum {
    UPPER = 1, /* Lu Lt */
    LOWER = 2, /* Ll */
    OTHER = 4, /* Lm Lo */
    MARK = 8,
    NUMBER = 16,
    WHITE = 32,
    PUNCT = 64,    /* P S */
    REST = 128,    /* controls, unassigned code points */
    HAN = 256,     /* in addition to its class */
    OUTSIDE = 512, /* in place of its class: not in this piece of DeepSeek's second split */
    LETTER = UPPER | LOWER | OTHER,
    NOT_HAN = 1024 /* in a set: without members of class HAN */
};

struct src {
    const uint8_t *text;
    size_t n;
    enum scan_family family;
    bool isle; /* in a piece of ideographs and kana */
};

static unsigned class_of(const struct src *s, uint32_t c)
{
    uint32_t set = 1u << uni_category(SCAN_UNICODE, c);
    unsigned han = s->family == SCAN_KIMI && scan_han(c) ? HAN : 0;
    if (s->family == SCAN_DEEPSEEK3 && scan_ideograph(c) != s->isle)
        return OUTSIDE;
    if (uni_space(c))
        return WHITE;
    if (set & UNI_L)
        return han | (set & (1u << UNI_LU | 1u << UNI_LT) ? UPPER
                      : set & 1u << UNI_LL                ? LOWER
                                                          : OTHER);
    return han | (set & UNI_M ? MARK : set & UNI_N ? NUMBER : set & (UNI_P | UNI_S) ? PUNCT : REST);
}

/* The class of the code point at i, 0 at the end; *ret_next is its end. */
static unsigned class_at(const struct src *s, size_t i, size_t *ret_next)
{
    unsigned bytes;
    *ret_next = i;
    if (i >= s->n)
        return 0;
    uint32_t c = scan_decode_within(s->text + i, s->n - i, &bytes);
    *ret_next = s->n - i < bytes ? s->n : i + bytes;
    return class_of(s, c);
}

static bool is_in(unsigned class, unsigned set)
{
    return class & set & ~(unsigned)HAN && !(set & NOT_HAN && class & HAN);
}

/* The end of the run of the set from i on. */
static size_t scan_plain_run(const struct src *s, size_t i, unsigned set)
{
    size_t next;
    while (is_in(class_at(s, i, &next), set))
        i = next;
    return i;
}

static bool is_newline(const struct src *s, size_t i)
{
    return i < s->n && !s->isle && (s->text[i] == '\n' || s->text[i] == '\r');
}

static size_t newlines(const struct src *s, size_t i, bool slashes)
{
    while (is_newline(s, i) || (slashes && i < s->n && s->text[i] == '/'))
        i++;
    return i;
}

static size_t behind_space(const struct src *s, size_t i)
{
    return i + (i < s->n && s->text[i] == ' ');
}

/* Skips one code point at i that is not a newline or in the set, if there is one. */
static size_t behind_leader(const struct src *s, size_t i, unsigned set)
{
    size_t next;
    unsigned class = class_at(s, i, &next);
    return is_newline(s, i) || class & set ? i : next;
}

static size_t numbers(const struct src *s, size_t i, int most)
{
    size_t next;
    for (; most > 0 && class_at(s, i, &next) & NUMBER; most--)
        i = next;
    return i;
}

/*
 * White space: up to its last newline; else without its last code point if something else of the
 * piece follows; else all of it. With `whole`, all of it takes precedence at the end of the text.
 */
static size_t white(const struct src *s, size_t i, bool newline_rule, bool whole)
{
    size_t end = i, last = i, newline = i, next;
    while (class_at(s, end, &next) & WHITE) {
        last = end;
        if (newline_rule && is_newline(s, end))
            newline = next;
        end = next;
    }
    if (whole && end == s->n)
        return end;
    if (newline > i)
        return newline;
    bool more = class_at(s, end, &next) & ~(s->family == SCAN_DEEPSEEK3 ? NUMBER | OUTSIDE : 0u);
    return more && last > i ? last : end;
}

static size_t next_gpt2(const struct src *s, size_t i)
{
    static const unsigned set[] = {LETTER, NUMBER, MARK | PUNCT | REST};
    size_t from = behind_space(s, i), end = i + scan_contraction(s->text + i, s->n - i, false);
    if (end > i)
        return end;
    for (int k = 0; k < 3; k++)
        if ((end = scan_plain_run(s, from, set[k])) > from)
            return end;
    return white(s, i, false, false);
}

/* cl100k, Llama-3, Qwen2, Qwen3.5 */
static size_t next_cl100k(const struct src *s, size_t i)
{
    unsigned word = s->family == SCAN_QWEN35 ? LETTER | MARK : LETTER;
    bool single = s->family == SCAN_QWEN2 || s->family == SCAN_QWEN35;
    size_t end = i + scan_contraction(s->text + i, s->n - i, true);
    if (end > i)
        return end;
    size_t from = behind_leader(s, i, LETTER | NUMBER);
    if ((end = scan_plain_run(s, from, word)) > from || (end = scan_plain_run(s, i, word)) > i)
        return end;
    if ((end = numbers(s, i, single ? 1 : 3)) > i)
        return end;
    from = behind_space(s, i);
    if ((end = scan_plain_run(s, from, (MARK | PUNCT | REST) & ~word)) > from)
        return newlines(s, end, false);
    return white(s, i, true, s->family == SCAN_CL100K);
}

static size_t back_one(const struct src *s, size_t i)
{
    do
        i--;
    while (i > 0 && scan_continues(s->text[i]));
    return i;
}

/*
 * From `from` on: upper-case code points, then lower-case ones, at least one if `lower_needed`;
 * marks and letters without case count as both. Takes as many upper-case ones as leave enough;
 * returns `from` if there is no match.
 */
static size_t cased(const struct src *s, size_t from, bool lower_needed)
{
    unsigned both = OTHER | MARK | (s->family == SCAN_KIMI ? NOT_HAN : 0);
    size_t end, split = scan_plain_run(s, from, UPPER | both);
    if (!lower_needed)
        return split > from ? scan_plain_run(s, split, LOWER | both) : from;
    for (; split >= from; split = back_one(s, split)) {
        if ((end = scan_plain_run(s, split, LOWER | both)) > split)
            return end;
        if (split == from)
            break;
    }
    return from;
}

/* o200k, Tekken, Kimi */
static size_t next_o200k(const struct src *s, size_t i)
{
    size_t end, from, leader = behind_leader(s, i, LETTER | NUMBER);
    bool tekken = s->family == SCAN_TEKKEN, kimi = s->family == SCAN_KIMI;
    for (end = i; kimi && class_at(s, end, &from) & HAN;)
        end = from;
    if (end > i)
        return end;
    for (int shape = 0; shape < 4; shape++) {
        from = shape % 2 ? i : leader;
        if ((end = cased(s, from, shape < 2)) > from)
            return tekken ? end : end + scan_contraction(s->text + end, s->n - end, true);
    }
    if ((end = numbers(s, i, tekken ? 1 : 3)) > i)
        return end;
    from = behind_space(s, i);
    if ((end = scan_plain_run(s, from, MARK | PUNCT | REST)) > from)
        return newlines(s, end, !kimi);
    return white(s, i, true, false);
}

static bool ascii_letter(const struct src *s, size_t i)
{
    return i < s->n && (s->text[i] | 0x20) >= 'a' && (s->text[i] | 0x20) <= 'z';
}

/* DeepSeek's third split within a piece of the first two; i if nothing matches. */
static size_t third_split(const struct src *s, size_t i)
{
    size_t end, from, next;
    if (class_at(s, i, &next) & PUNCT && next == i + 1 && ascii_letter(s, next)) {
        for (end = next; ascii_letter(s, end);)
            end++;
        return end;
    }
    from = behind_leader(s, i, LETTER | PUNCT | NUMBER | OUTSIDE);
    if ((end = scan_plain_run(s, from, LETTER | MARK)) > from ||
        (end = scan_plain_run(s, i, LETTER | MARK)) > i)
        return end;
    from = behind_space(s, i);
    if ((end = scan_plain_run(s, from, PUNCT)) > from)
        return newlines(s, end, false);
    return white(s, i, true, false);
}

/* The third split applies to isles too, which are pieces of their own, and to the text between. */
static size_t next_deepseek3(const struct src *text, size_t i)
{
    unsigned bytes;
    struct src s = *text;
    s.isle = scan_ideograph(scan_decode_within(s.text + i, s.n - i, &bytes));
    size_t next, end = numbers(&s, i, 3);
    if (end > i || (end = third_split(&s, i)) > i)
        return end;
    /* no split matches it: it forms a pre-token with neighbours of which the same is true */
    for (end = i; class_at(&s, end, &next) & REST && third_split(&s, end) == end;)
        end = next;
    return end;
}

static size_t next_of(const struct src *s, size_t i)
{
    switch (s->family) {
    case SCAN_GPT2:
        return next_gpt2(s, i);
    case SCAN_CL100K:
    case SCAN_LLAMA3:
    case SCAN_QWEN2:
    case SCAN_QWEN35:
        return next_cl100k(s, i);
    case SCAN_O200K:
    case SCAN_TEKKEN:
    case SCAN_KIMI:
        return next_o200k(s, i);
    case SCAN_DEEPSEEK3:
        return next_deepseek3(s, i);
    case SCAN_NONE:
    case SCAN_FAMILIES:
        break;
    }
    BUG("scan family %d", (int)s->family);
}

size_t scan_plain_next(enum scan_family f, const char *text, size_t n, size_t i)
{
    const struct src s = {(const uint8_t *)text, n, f, false};
    return next_of(&s, i);
}

size_t scan_plain_starts(enum scan_family f, const char *text, size_t n, uint32_t *at)
{
    const struct src s = {(const uint8_t *)text, n, f, false};
    size_t count = 0;
    for (size_t i = 0; i < n; i = next_of(&s, i))
        at[count++] = (uint32_t)i;
    at[count] = (uint32_t)n;
    return count;
}

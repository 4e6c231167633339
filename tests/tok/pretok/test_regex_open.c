/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/pretok/regex_open.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/mem.h"
#include "base/core/utf8.h"
#include "tests/t.h"

/* Matches in a text that comes in parts are those in the whole. */

static bool full(void)
{
    return getenv("WEFT_FULL") != NULL;
}

/* Each byte of a text as a letter: of a match or not, and whether a span ends after it. */
struct marks {
    struct buf b, text;
};

static int mark_span(void *arg, const char *text, size_t n, bool match, bool ends, struct err *e)
{
    struct marks *m = arg;
    (void)e;
    buf_add(&m->text, text, n);
    for (size_t i = 0; i < n; i++)
        buf_addc(&m->b, match ? 'm' : 'g');
    if (ends)
        m->b.data[m->b.len - 1] = match ? 'M' : 'G';
    return 0;
}

static int mark_whole(const struct regex *r, struct regex_work *w, const struct buf *text,
                      struct marks *m)
{
    struct regex_at at = {0};
    size_t done = 0;
    struct err e;
    m->b.len = m->text.len = 0;
    regex_work_begin(w);
    for (bool found = true;;) {
        int code = regex_next(r, w, text->data, text->len, &at, &found, &e);
        if (code)
            return code;
        size_t end = found ? at.start : text->len;
        if (end > done)
            mark_span(m, text->data + done, end - done, false, true, &e);
        if (!found)
            return 0;
        if (at.end > at.start)
            mark_span(m, text->data + at.start, at.end - at.start, true, true, &e);
        done = at.end;
    }
}

/* False if a pattern that explodes takes too many steps: what is read again counts again. */
static bool mark_parts(struct regex_open *o, const struct buf *text, uint64_t seed, struct marks *m)
{
    struct err e;
    m->b.len = m->text.len = 0;
    for (size_t at = 0, n, i = 0; at < text->len; at += n) {
        n = 1 + t_rand(seed, i++) % (seed % 2 ? 4 : 40);
        n = n < text->len - at ? n : text->len - at;
        while (at + n < text->len && ((unsigned char)text->data[at + n] & 0xc0) == 0x80)
            n++;
        int code = regex_open_put(o, text->data + at, n, at + n == text->len, mark_span, m, &e);
        if (code && strstr(e.msg, "too many steps"))
            return false;
        T_OK(code, &e);
    }
    return true;
}

static void make_text(struct buf *b, uint64_t seed)
{
    static const char *const one[] = {"a",      "b",          "B",      "1",  "2",      " ",
                                      "\n",     "'",          "s",      "ll", "\u00e9", "\u0301",
                                      "\u6f22", "\U0001f642", "\u017f", "."};
    size_t kinds = 1 + t_rand(seed, 0) % 16, first = t_rand(seed, 1), n = 1 + t_rand(seed, 2) % 60;
    buf_reset(b);
    for (uint64_t i = 0; i < n; i++) {
        size_t k = (first + t_rand(seed, 3 + 2 * i) % kinds) % 16;
        for (uint64_t j = t_rand(seed, 4 + 2 * i) % 8 ? 1 : 9; j; j--)
            buf_adds(b, one[k]);
    }
    memset(buf_reserve(b, 64), 0, 64);
}

static const char *const atom[] = {"a",    "b",   "[ab]",   "\\s",    "\\S",         "\\d",
                                   "[^a]", ".",   "\\p{L}", "\\p{N}", "'",           "\\n",
                                   " ",    "\\w", "(?i:s)", "(?i:b)", "[^\\s\\p{L}]"};
static const char *const test[] = {
    "^",        "$",       "\\b",      "\\B",          "\\A",
    "\\z",      "(?!\\S)", "(?=a|b)",  "(?<=\\s)",     "(?<!a)",
    "(?<=ab)",  "(?=ab)",  "(?!b\\s)", "(?<!1\\p{L})", "(?=(?:a|b)+1)",
    "(?<!a\\Z)"};
/* Groups that PCRE2 matches. */
static const char *const group[] = {"(?>a|ab)",         "(?>a+b?)",   "(a|b)\\1",
                                    "(?:ab)++",         "(?:a?b)*+",  "(?>\\s+)",
                                    "(\\p{L})(?:\\1)+", "(?:1|12)?+", "(?>\\p{N}{1,3})"};
static const char *const often[] = {"",      "",     "",   "*",  "+",  "?",     "{2}",
                                    "{1,3}", "{2,}", "*?", "+?", "??", "{0,2}?"};
static const char *const owns[] = {"", "", "*+", "++", "?+", "+"};

static void put_or(struct buf *b, uint64_t seed, unsigned depth);

static void put_item(struct buf *b, uint64_t seed, unsigned depth)
{
    uint32_t r = t_rand(seed, 0);
    if (r % 8 == 0) {
        buf_adds(b, test[t_rand(seed, 1) % (sizeof(test) / sizeof(*test))]);
    } else if (r % 8 == 1 && depth < 3) {
        buf_adds(b, r & 64 ? "(?:" : "(");
        put_or(b, seed * 31 + 7, depth + 1);
        buf_addc(b, ')');
        buf_adds(b, often[t_rand(seed, 2) % (sizeof(often) / sizeof(*often))]);
    } else if (r % 64 == 2) {
        buf_adds(b, group[t_rand(seed, 3) % (sizeof(group) / sizeof(*group))]);
    } else {
        buf_adds(b, atom[t_rand(seed, 3) % (sizeof(atom) / sizeof(*atom))]);
        if (r % 8 < 3)
            buf_adds(b, owns[t_rand(seed, 4) % (sizeof(owns) / sizeof(*owns))]);
        else
            buf_adds(b, often[t_rand(seed, 4) % (sizeof(often) / sizeof(*often))]);
    }
}

static void put_or(struct buf *b, uint64_t seed, unsigned depth)
{
    for (uint64_t i = 0, n = 1 + t_rand(seed, 20) % 3; i < n; i++) {
        buf_adds(b, i ? "|" : "");
        for (uint64_t k = 0, items = 1 + t_rand(seed, 21 + i) % 3; k < items; k++)
            put_item(b, seed * 64 + i * 8 + k + 1, depth);
    }
}

/* Whether it is compared. */
static bool compare(const char *pattern, bool rust, bool must, uint64_t seed, uint64_t texts)
{
    struct regex *r;
    struct err e;
    int code = rust ? regex_compile("x.tiktoken", pattern, strlen(pattern), REGEX_RUST, &r, &e)
                    : regex_compile_search("x.json", pattern, strlen(pattern), &r, &e);
    if (code && strstr(e.msg, "not one of the known"))
        t_skip("built without PCRE2");
    if (code && !must)
        return false;
    T_OK(code, &e);
    struct regex_open *o = regex_open_create(r);
    if (!o && must)
        printf("# %s\n", pattern);
    T_CHECK(o || !must);
    struct regex_work *w = regex_work_create();
    struct marks want = {0}, got = {0};
    struct buf text = {0};
    for (uint64_t i = 0; o && i < texts; i++) {
        make_text(&text, seed * 1000 + i);
        if (mark_whole(r, w, &text, &want) || !mark_parts(o, &text, seed + i, &got))
            continue;
        T_EQ(got.text.len, text.len);
        T_MEM(got.text.data, text.data, text.len);
        if (strcmp(buf_str(&got.b), buf_str(&want.b)) != 0)
            printf("# %s on \"%s\": %s, not %s\n", pattern, buf_str(&text), got.b.data,
                   want.b.data);
        T_STR(buf_str(&got.b), buf_str(&want.b));
    }
    buf_finish(&text);
    buf_finish(&want.b);
    buf_finish(&want.text);
    buf_finish(&got.b);
    buf_finish(&got.text);
    regex_work_destroy(w);
    bool is = o;
    regex_open_destroy(o);
    regex_destroy(r);
    return is;
}

static const char *const usual[] = {
    "'(?i:[sdmt]|ll|ve|re)|[^\\r\\n\\p{L}\\p{N}]?+\\p{L}+|\\p{N}{1,4}| "
    "?[^\\s\\p{L}\\p{N}]++[\\r\\n]*|"
    "\\s*[\\r\\n]|\\s+(?!\\S)|\\s+",
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+",
    "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]*[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]+(?i:'"
    "s|'t|'re)?|"
    "\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+",
    "\\p{N}{1,3}",
    "\\w+|[^\\w\\s]+",
    "\\s",
    " +",
    "[a-z]+?b",
    "[\\s\\S]{1,5}",
    "\\b",
    "a*b|a",
    "(a|ab)(b|bb)?",
    "^.*$",
    "(?:\\r?\\n)+",
    "\\S+\\s*",
    "(?<!a)b|(?<=a)a",
    "x*",
    "a??",
    "\\n|\\z",
    "(?<=ab)[ab]|\\s+",
    "(?<!ab)a|\\p{N}{1,2}",
    "(?>a+b?)|\\s",
    "(?:ab)++|a",
    "(a|b)\\1|\\s+",
    "\\p{N}{1,3}(?=(?:\\p{N}{3})*(?!\\p{N}))|\\p{L}+",
    "(?=ab)a|b(?!a1)",
    "(?:a?)*",
    "(?:[ab]{60}){90}|a"};

static void patterns_in_use(void)
{
    for (size_t i = 0; i < sizeof(usual) / sizeof(*usual); i++)
        for (int rust = 0; rust < 2; rust++)
            compare(usual[i], rust, true, i + 1, full() ? 5000 : 60);
}

static void patterns_of_families(void)
{
    const char *pattern;
    for (size_t i = 0; (pattern = scan_spelling(i)); i++)
        for (int rust = 0; rust < 2; rust++)
            compare(pattern, rust, true, i + 100, 40);
}

static void random_patterns(void)
{
    struct buf b = {0};
    size_t tried = 0, n = full() ? 4000 : 60;
    for (uint64_t i = 0; i < n; i++) {
        buf_reset(&b);
        put_or(&b, i + 1, 0);
        tried += compare(buf_str(&b), i % 3 == 0, false, i, full() ? 40 : 10);
    }
    T_CHECK(tried > n / 3);
    buf_finish(&b);
}

/* Matches that depend on where a search begins. */
static void patterns_that_need_the_whole(void)
{
    static const char *const pattern[] = {"\\Ka", "\\Ga"};
    for (size_t i = 0; i < sizeof(pattern) / sizeof(*pattern); i++) {
        struct regex *r;
        struct err e;
        int code = regex_compile_search("x.json", pattern[i], strlen(pattern[i]), &r, &e);
        if (code)
            continue;
        struct regex_open *o = regex_open_create(r);
        if (o)
            printf("# %s\n", pattern[i]);
        T_CHECK(!o);
        regex_open_destroy(o);
        regex_destroy(r);
    }
}

/* What is kept of a long match is short, and each byte is read about once. */
static void long_matches_are_passed_on(void)
{
    static const char *const piece[] = {"a", " ", "\n", "1", " \n", "\u0301", "\u6f22"};
    struct regex *r;
    struct err e;
    struct marks m = {0};
    int code = regex_compile_search("x.json", usual[0], strlen(usual[0]), &r, &e);
    if (code)
        t_skip("built without PCRE2");
    struct regex_open *o = regex_open_create(r);
    for (size_t k = 0; k < sizeof(piece) / sizeof(*piece); k++) {
        size_t n = strlen(piece[k]), bytes = 0;
        m.b.len = m.text.len = 0;
        for (size_t i = 0; i < 20000; i++, bytes += n)
            T_OK(regex_open_put(o, piece[k], n, false, mark_span, &m, &e), &e);
        T_CHECK(bytes - m.text.len < 64);
        T_CHECK(regex_open_take_work(o) < 24 * bytes);
        T_OK(regex_open_put(o, "", 0, true, mark_span, &m, &e), &e);
        T_EQ(m.text.len, bytes);
    }
    buf_finish(&m.b);
    buf_finish(&m.text);
    regex_open_destroy(o);
    regex_destroy(r);
}

/* `a*b|a` looks at the rest of the text for each a. */
static void steps_are_limited(void)
{
    struct regex *r;
    struct err e;
    struct marks m = {0};
    struct buf text = {0};
    if (regex_compile_search("x.json", "a*b|a", 5, &r, &e))
        t_skip("built without PCRE2");
    struct regex_open *o = regex_open_create(r);
    for (int i = 0; i < 40000; i++)
        buf_addc(&text, 'a');
    T_ERR(regex_open_put(o, text.data, text.len, true, mark_span, &m, &e), &e, ERR_DATA,
          "a*b|a\" takes too many steps");
    buf_finish(&text);
    buf_finish(&m.b);
    buf_finish(&m.text);
    regex_open_destroy(o);
    regex_destroy(r);
}

/* Nor is more kept than 48 MiB of a match that is not decided. */
static void what_is_kept_is_limited(void)
{
    struct regex *r;
    struct err e;
    struct marks m = {0};
    int code = 0, i = 0;
    if (!full())
        t_skip("WEFT_FULL=1 reads 48 MiB");
    if (regex_compile_search("x.json", "a*b|a", 5, &r, &e))
        t_skip("built without PCRE2");
    struct regex_open *o = regex_open_create(r);
    char *text = mem_new(1 << 20, 1);
    memset(text, 'a', 1 << 20);
    for (; !code && i < 60; i++)
        code = regex_open_put(o, text, 1 << 20, false, mark_span, &m, &e);
    T_ERR(code, &e, ERR_DATA, "a*b|a\" needs more than 48 MiB of text to decide a match");
    T_EQ(i, 49);
    free(text);
    buf_finish(&m.b);
    buf_finish(&m.text);
    regex_open_destroy(o);
    regex_destroy(r);
}

/* Where it shares the limit with others. */
static void what_is_kept_is_limited_to_less(void)
{
    enum { PART = 1 << 16, PARTS = (2 << 20) / PART };
    struct regex *r;
    struct err e;
    struct marks m = {0};
    int code = 0, i = 0;
    if (regex_compile_search("x.json", "a*b|a", 5, &r, &e))
        t_skip("built without PCRE2");
    struct regex_open *o = regex_open_create(r);
    char *text = mem_new(PART, 1);
    memset(text, 'a', PART);
    regex_open_limit(o, 2 << 20);
    for (; !code && i < 2 * PARTS; i++)
        code = regex_open_put(o, text, PART, false, mark_span, &m, &e);
    T_ERR(code, &e, ERR_DATA, "a*b|a\" needs more than 2 MiB of text to decide a match");
    T_EQ(i, PARTS + 1);
    free(text);
    buf_finish(&m.b);
    buf_finish(&m.text);
    regex_open_destroy(o);
    regex_destroy(r);
}

T_MAIN(T_CASE(patterns_in_use), T_CASE(patterns_of_families), T_CASE(random_patterns),
       T_CASE(patterns_that_need_the_whole), T_CASE(long_matches_are_passed_on),
       T_CASE(steps_are_limited), T_CASE(what_is_kept_is_limited),
       T_CASE(what_is_kept_is_limited_to_less))

/* SPDX-License-Identifier: Apache-2.0 */
#include "prep/input/text_in.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/io/file.h"
#include "base/core/mem.h"
#include "tests/t.h"

static const struct text_form by_line = {.sep = "\n", .nsep = 1},
                              kept = {.sep = "\n", .nsep = 1, .keep_newlines = true},
                              two = {.sep = "\n\n", .nsep = 2},
                              word = {.sep = "<|end|>", .nsep = 7};

/* The documents of a block, each in brackets. */
static void documents(const struct text_form *f, const char *in, const char *want)
{
    struct buf b = {0};
    const char *p = in, *from = in, *end = in + strlen(in);
    for (size_t n; text_next(f, &p, end, &n); from = p)
        buf_addf(&b, "[%.*s]", (int)n, from);
    T_STR(buf_str(&b), want);
    buf_finish(&b);
}

static void lines_and_separators(void)
{
    documents(&by_line, "", "");
    documents(&by_line, "a\nb", "[a][b]");
    documents(&by_line, "a\r\n\n \n", "[a][][ ]");
    documents(&by_line, "a\rb\n\r\n", "[a\rb][]");
    documents(&by_line, "\r", "[\r]");
    documents(&kept, "a\r\n\nb", "[a\r\n][\n][b]");
    documents(&two, "a\nb\n\nc\n", "[a\nb][c\n]");
    documents(&two, "a\n\n\nb\n\n\n", "[a][\nb]");
    documents(&word, "a<|end|>\nb <|end|><|end|>\n", "[a][\nb ][]");
    documents(&word, "<|end|", "[<|end|]");
}

/* The documents of a file through blocks and long documents, joined by a bar. */
static void read_all(const struct text_form *f, const char *p, size_t n, struct buf *ret)
{
    struct err e;
    struct zin *z;
    struct lines l;
    struct buf b = {0};
    enum lines_kind kind = LINES_WHOLE;
    bool last, bad;
    T_OK(file_replace(t_path("in"), p, n, &e), &e);
    T_OK(zin_open(t_path("in"), &z, &e), &e);
    lines_init_text(&l, z, f->sep, f->nsep);
    buf_reset(ret);
    while (kind != LINES_END) {
        T_OK(lines_next(&l, &b, 64, &kind, &last, &e), &e);
        const char *at = b.data, *from = at;
        for (size_t k; kind == LINES_WHOLE && text_next(f, &at, b.data + b.len, &k); from = at) {
            buf_add(ret, from, k);
            buf_addc(ret, '|');
        }
        if (kind != LINES_PIECE)
            continue;
        struct spill to, line;
        T_OK(spill_open(&to, t_path("x"), &e), &e);
        T_OK(spill_open(&line, t_path("x"), &e), &e);
        T_OK(text_long(f, &l, &b, &to, &line, &bad, &e), &e);
        T_CHECK(line.size >= to.size - f->keep_newlines);
        T_OK(spill_read(&to, 0, buf_reserve(ret, to.size), to.size, &e), &e);
        ret->len += to.size;
        buf_addc(ret, '|');
        spill_close(&to);
        spill_close(&line);
    }
    T_EQ(lines_at(&l), n);
    lines_finish(&l);
    zin_close(z);
    buf_finish(&b);
}

/* Documents of random lengths, some of many megabytes; what is cut is what was put together. */
static void long_documents_are_cut_as_short_ones(void)
{
    static const struct text_form *const form[] = {&by_line, &kept, &two, &word};
    for (size_t i = 0; i < 4; i++) {
        const struct text_form *f = form[i];
        struct buf in = {0}, want = {0}, got = {0};
        for (uint64_t d = 0; d < 40; d++) {
            size_t n =
                d % 13 == 5 ? (size_t)LINES_LONG + t_rand(7, d) % (3 << 20) : t_rand(7, d) % 200000;
            char *p = buf_reserve(&in, n + 3);
            for (size_t k = 0; k < n; k++)
                p[k] = "ab<|n\n"[(k * 7 + d + k / 977) % (f == &two || f == &word ? 6 : 5)];
            memcpy(p + n, "\xE3\x81\x82", 3);
            if (f == &two) /* no two newlines side by side above: 7 and 6 have no common divisor */
                T_CHECK(!memmem(p, n, "\n\n", 2));
            buf_add(&want, p, n + 3);
            in.len += n + 3;
            if (f->keep_newlines)
                buf_addc(&want, '\n');
            buf_add(&in, f->sep, f->nsep);
            buf_addc(&want, '|');
        }
        read_all(f, in.data, in.len, &got);
        T_EQ(got.len, want.len);
        T_MEM(got.data, want.data, want.len);
        buf_finish(&in);
        buf_finish(&want);
        buf_finish(&got);
    }
}

static void long_text_that_is_not_utf8(void)
{
    struct err e;
    struct zin *z;
    struct lines l;
    struct buf b = {0};
    struct spill to, line;
    enum lines_kind kind;
    bool last, bad;
    size_t n = (size_t)LINES_LONG * 2, at = n - 12345;
    char *p = mem_new(n, 1);
    memset(p, 'x', n);
    p[at] = (char)0xff;
    p[n - 1] = '\n';
    T_OK(file_replace(t_path("in"), p, n, &e), &e);
    T_OK(zin_open(t_path("in"), &z, &e), &e);
    lines_init_text(&l, z, "\n", 1);
    T_OK(lines_next(&l, &b, 64, &kind, &last, &e), &e);
    T_EQ(kind, LINES_PIECE);
    T_OK(spill_open(&to, t_path("x"), &e), &e);
    T_OK(spill_open(&line, t_path("x"), &e), &e);
    char want[100];
    snprintf(want, sizeof(want), "byte %zu: invalid UTF-8", at);
    T_ERR(text_long(&by_line, &l, &b, &to, &line, &bad, &e), &e, ERR_DATA, want);
    T_CHECK(bad);
    T_EQ(line.size, n - 1);
    T_ERR(text_check("ab\xC3", 3, &e), &e, ERR_DATA, "byte 2: invalid UTF-8");
    T_OK(text_check("", 0, &e), &e);
    spill_close(&to);
    spill_close(&line);
    lines_finish(&l);
    zin_close(z);
    buf_finish(&b);
    free(p);
}

static void separators_as_written(void)
{
    struct err e;
    char got[LINES_SEPARATOR], much[LINES_SEPARATOR + 2];
    size_t n;
    T_OK(text_separator("a\\n\\t\\0\\\\\\x0Af\\xfF", got, &n, &e), &e);
    T_EQ(n, 8);
    T_MEM(got, "a\n\t\0\\\nf\xff", 8);
    T_ERR(text_separator("", got, &n, &e), &e, ERR_USAGE, "cannot be empty");
    T_ERR(text_separator("a\\q", got, &n, &e), &e, ERR_USAGE, "a backslash is followed by");
    T_ERR(text_separator("\\x1", got, &n, &e), &e, ERR_USAGE, "a backslash is followed by");
    T_ERR(text_separator("\\", got, &n, &e), &e, ERR_USAGE, "a backslash is followed by");
    memset(much, 'x', sizeof(much) - 1);
    much[sizeof(much) - 1] = '\0';
    T_ERR(text_separator(much, got, &n, &e), &e, ERR_USAGE, "at most 256 bytes");
}

T_MAIN(T_CASE(lines_and_separators), T_CASE(long_documents_are_cut_as_short_ones),
       T_CASE(long_text_that_is_not_utf8), T_CASE(separators_as_written))

/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "base/io/file.h"
#include "prep/input/lines.h"
#include "tests/t.h"

/* What comes out of the splitter, put together again: the bytes, and how they were cut. */
struct result {
    struct buf bytes;
    int blocks, longs, last;
    bool whole; /* every block ended in a newline or at the end of the stream */
};

static void take_long(struct lines *l, struct buf *b, struct result *ret)
{
    struct err e;
    bool end = false;
    ret->longs++;
    while (!end) {
        T_OK(lines_more(l, b, &end, &e), &e);
        T_CHECK(b->len == 0 || !memchr(b->data, '\n', b->len));
        buf_add(&ret->bytes, b->data, b->len);
    }
    buf_addc(&ret->bytes, '\n');
}

static void split(const void *p, size_t n, struct result *ret)
{
    struct err e;
    struct zin *z;
    struct lines l;
    struct buf b = {0};
    enum lines_kind kind;
    bool last = false;
    *ret = (struct result){.whole = true};
    T_OK(file_replace(t_path("in"), p, n, &e), &e);
    T_OK(zin_open(t_path("in"), &z, &e), &e);
    lines_init(&l, z);
    for (;;) {
        T_OK(lines_next(&l, &b, 64, &kind, &last, &e), &e);
        if (kind == LINES_END)
            break;
        T_CHECK(b.cap >= b.len + 64);
        buf_add(&ret->bytes, b.data, b.len);
        ret->blocks += kind == LINES_WHOLE;
        ret->last = last;
        if (kind == LINES_PIECE)
            take_long(&l, &b, ret);
        else if (!last && b.data[b.len - 1] != '\n')
            ret->whole = false;
    }
    lines_finish(&l);
    buf_finish(&b);
    zin_close(z);
}

static void check(const char *in, const char *out, int blocks)
{
    struct result r;
    split(in, strlen(in), &r);
    T_STR(buf_str(&r.bytes), out);
    T_EQ(r.blocks, blocks);
    T_EQ(r.longs, 0);
    buf_finish(&r.bytes);
}

static void short_streams(void)
{
    check("", "", 0);
    check("\xEF\xBB\xBF", "", 0);
    check("\xEF\xBB", "\xEF\xBB", 1);
    check("{}", "{}", 1);
    check("{}\n", "{}\n", 1);
    check("\xEF\xBB\xBF{}\r\n{}", "{}\r\n{}", 1);
    check("{}\n\n\n", "{}\n\n\n", 1);
    check("\n\n{}\n", "\n\n{}\n", 1);
}

/* n lines of random length up to `longest` bytes. */
static void fill_lines(struct buf *b, size_t n, uint32_t longest, uint64_t stream)
{
    for (size_t i = 0; i < n; i++) {
        size_t k = t_rand(stream, i) % longest;
        memset(buf_reserve(b, k), 'a' + (int)(i % 26), k);
        b->len += k;
        buf_addc(b, '\n');
    }
}

static void same(const struct buf *b, const struct result *r)
{
    T_EQ(r->bytes.len, b->len);
    T_MEM(r->bytes.data, b->data, b->len);
    T_CHECK(r->whole);
}

static void blocks_are_whole_lines(void)
{
    static const uint32_t longest[] = {2, 100, 5000, 300000, 1500000};
    for (size_t i = 0; i < sizeof(longest) / sizeof(*longest); i++) {
        struct buf b = {0};
        struct result r;
        fill_lines(&b, (6 << 20) / longest[i] + 3, longest[i], i);
        buf_adds(&b, "{}\n");
        split(b.data, b.len, &r);
        same(&b, &r);
        T_CHECK(r.longs == 0 && r.blocks >= 2);
        buf_finish(&b);
        buf_finish(&r.bytes);
    }
}

static void white_space_at_the_end_stays_with_the_last_block(void)
{
    struct buf b = {0};
    struct result r;
    fill_lines(&b, 1000, 1000, 7);
    while (b.len < LINES_BLOCK + (256 << 10) - 5)
        buf_addc(&b, 'x');
    buf_adds(&b, "\n\n \r\n\n\n\n\n");
    split(b.data, b.len, &r);
    same(&b, &r);
    T_CHECK(r.last);
    buf_finish(&b);
    buf_finish(&r.bytes);
}

static void much_white_space_is_cut_by_lines(void)
{
    struct buf b = {0};
    struct result r;
    for (int i = 0; i < LINES_LONG; i++)
        buf_adds(&b, "\n ");
    buf_adds(&b, "{}\n");
    split(b.data, b.len, &r);
    same(&b, &r);
    T_EQ(r.longs, 0);
    buf_finish(&b);
    buf_finish(&r.bytes);
}

static void long_lines_come_in_pieces(void)
{
    struct buf b = {0};
    struct result r;
    fill_lines(&b, 50, 100, 3);
    for (int i = 0; i < 3 * LINES_LONG; i++)
        buf_addc(&b, (char)('a' + i % 26));
    buf_adds(&b, "\nshort\n");
    for (int i = 0; i < LINES_LONG + 1000000; i++)
        buf_addc(&b, 'z');
    buf_addc(&b, '\n');
    split(b.data, b.len, &r);
    same(&b, &r);
    T_EQ(r.longs, 2);
    buf_finish(&b);
    buf_finish(&r.bytes);
}

static void line_helpers(void)
{
    const char *s = "ab\ncd";
    T_EQ(line_end(s, s + 5) - s, 2);
    T_EQ(line_end(s + 3, s + 5) - s, 5);
}

T_MAIN(T_CASE(short_streams), T_CASE(blocks_are_whole_lines),
       T_CASE(white_space_at_the_end_stays_with_the_last_block),
       T_CASE(much_white_space_is_cut_by_lines), T_CASE(long_lines_come_in_pieces),
       T_CASE(line_helpers))

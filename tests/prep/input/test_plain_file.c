/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>
#include <unistd.h>

#include "base/io/file.h"
#include "base/format/jsonl.h"
#include "base/io/path.h"
#include "prep/input/lines.h"
#include "prep/input/plain_file.h"
#include "tests/t.h"

static void put(const struct buf *b)
{
    struct err e;
    T_OK(file_replace(t_path("in"), b->data, b->len, &e), &e);
}

static struct plain open_in(char sep, bool json)
{
    struct err e;
    struct plain p;
    T_OK(plain_open(&p, t_path("in"), sep, json, &e), &e);
    return p;
}

/* The blocks in order; of a long line its bytes. */
struct result {
    struct buf bytes;
    int blocks, longs;
    bool last;
};

static void add(const struct plain *p, uint64_t at, uint64_t n, struct result *ret)
{
    struct err e;
    struct buf b = {0};
    T_OK(plain_file_read(p->file, at, n, 64, &b, &e), &e);
    T_CHECK(b.len == n && b.cap >= n + 64);
    buf_add(&ret->bytes, b.data, b.len);
    buf_finish(&b);
}

static void take(struct plain *p, struct result *ret)
{
    struct err e;
    *ret = (struct result){0};
    for (;;) {
        enum plain_kind kind;
        uint64_t n, at = p->at;
        T_OK(plain_next(p, &kind, &n, &ret->last, &e), &e);
        if (kind == PLAIN_END)
            break;
        if (kind == PLAIN_LONG) {
            struct buf all = {0};
            T_OK(file_read(t_path("in"), 1 << 30, &all, &e), &e);
            const char *end = memchr(all.data + at, p->sep, all.len - at);
            n = end ? (uint64_t)(end - all.data) + 1 - at : all.len - at;
            T_CHECK(n > LINES_LONG);
            T_EQ(p->at, at);
            p->at = at + n;
            ret->longs++;
            buf_finish(&all);
        } else {
            T_CHECK(n <= LINES_LONG && p->at == at + n);
            ret->blocks++;
        }
        add(p, at, n, ret);
        T_CHECK(p->at == p->size || ret->bytes.data[ret->bytes.len - 1] == p->sep);
    }
}

static void blocks_are_whole_lines(void)
{
    struct buf b = {0};
    struct result r;
    for (int i = 0; i < 300000; i++)
        buf_addf(&b, "{\"line\": %d}\n", i);
    put(&b);
    struct plain p = open_in('\n', true);
    take(&p, &r);
    T_CHECK(r.bytes.len == b.len && !memcmp(r.bytes.data, b.data, b.len));
    T_EQ(r.blocks, b.len / LINES_BLOCK + 1);
    T_CHECK(r.last);
    plain_close(&p);
    buf_finish(&r.bytes);
    buf_finish(&b);
}

/* White space at the end comes with the last block, wherever a block would have ended. */
static void white_space_at_the_end_comes_last(void)
{
    for (int shift = -40; shift < 40; shift += 3) {
        struct buf b = {0};
        struct result r;
        while (b.len < (size_t)(LINES_BLOCK + shift))
            buf_adds(&b, "{}\n");
        size_t lines = b.len;
        buf_adds(&b, "\n \t\n\n                 \n\r\n\n  ");
        put(&b);
        struct plain p = open_in('\n', true);
        enum plain_kind kind;
        uint64_t n, at = 0;
        struct err e;
        bool last = false;
        while (!last) {
            at = p.at;
            T_OK(plain_next(&p, &kind, &n, &last, &e), &e);
            T_EQ(kind, PLAIN_LINES);
        }
        T_CHECK(at <= lines && at + n == b.len);
        plain_close(&p);
        p = open_in('\n', false); /* of text they are lines */
        take(&p, &r);
        T_CHECK(r.bytes.len == b.len && r.blocks == 1 + (b.len > LINES_BLOCK + 2));
        plain_close(&p);
        buf_finish(&r.bytes);
        buf_finish(&b);
    }
}

static void long_lines_stand_alone(void)
{
    struct buf b = {0};
    struct result r;
    buf_adds(&b, "1\n2\n");
    for (size_t n = LINES_LONG - 1; n < LINES_LONG + 2; n++) { /* the last two are long */
        memset(buf_reserve(&b, n), 'x', n);
        b.len += n;
        b.data[b.len - 1] = '\n';
    }
    buf_adds(&b, "3\n");
    for (size_t n = 2 * LINES_LONG; n; n--)
        buf_addc(&b, '\n'); /* white space is cut as it comes */
    buf_adds(&b, "4\n");
    memset(buf_reserve(&b, LINES_LONG + 9), 'y', LINES_LONG + 9);
    b.len += LINES_LONG + 9;
    put(&b);
    struct plain p = open_in('\n', true);
    take(&p, &r);
    T_CHECK(r.bytes.len == b.len && !memcmp(r.bytes.data, b.data, b.len));
    T_EQ(r.longs, 2);
    plain_close(&p);
    buf_finish(&r.bytes);
    buf_finish(&b);
}

/* Any two neighbouring ranges share the lines out. */
static void ranges_share_the_lines_out(void)
{
    static const char text[] = "\xEF\xBB\xBF{}\n{1}\n\n{22}\n \n\n";
    struct buf b = {.data = (char *)text, .len = sizeof(text) - 1};
    struct err e;
    put(&b);
    for (uint64_t cut = 1; cut < b.len; cut++) {
        struct result first, second;
        struct plain p = open_in('\n', true), q = open_in('\n', true);
        T_OK(plain_range(&p, 0, cut, &e), &e);
        T_OK(plain_range(&q, cut, 0, &e), &e);
        take(&p, &first);
        take(&q, &second);
        buf_add(&first.bytes, second.bytes.data, second.bytes.len);
        /* both may have the white space at the end, which is not a line */
        T_CHECK(first.bytes.len >= b.len - 3 && !memcmp(first.bytes.data, text + 3, b.len - 3));
        T_CHECK(jsonl_blank(first.bytes.data + b.len - 3, first.bytes.data + first.bytes.len));
        plain_close(&p);
        plain_close(&q);
        buf_finish(&first.bytes);
        buf_finish(&second.bytes);
    }
}

static void the_digest_is_that_of_the_file(void)
{
    struct buf b = {0};
    struct err e;
    char want[XXH_TEXT], got[XXH_TEXT];
    for (int i = 0; i < 100000; i++)
        buf_addf(&b, "%d\n", i);
    put(&b);
    xxh_once(b.data, b.len, want);
    struct plain p = open_in('\n', true);
    T_OK(plain_file_hash(p.file, b.data + 10, 90, 100, &e), &e); /* the first ten are read */
    T_OK(plain_file_hash(p.file, NULL, 0, 400000, &e), &e);
    plain_file_digest(p.file, got);
    T_STR(got, "");
    T_OK(plain_file_hash(p.file, b.data + 400000, b.len - 400000, b.len, &e), &e);
    plain_file_digest(p.file, got);
    T_STR(got, want);
    T_EQ(truncate(t_path("in"), 50), 0);
    struct buf read = {0};
    T_ERR(plain_file_read(p.file, 40, 20, 0, &read, &e), &e, ERR_IO, "in: ends at byte 50");
    plain_close(&p);
    buf_finish(&read);
    buf_finish(&b);
}

static void the_file_stays_open_for_who_holds_it(void)
{
    struct buf b = {0}, got = {0};
    struct err e;
    buf_adds(&b, "1\n2\n");
    put(&b);
    struct plain p = open_in('\n', true);
    struct plain_file *f = p.file;
    plain_file_hold(f);
    T_ERR(plain_seek(&p, 5, &e), &e, ERR_DATA, "has 4 bytes of text, but 5 of them");
    T_OK(plain_seek(&p, 2, &e), &e);
    T_EQ(p.at, 2);
    plain_close(&p);
    T_OK(plain_file_read(f, 2, 2, 0, &got, &e), &e);
    T_STR(buf_str(&got), "2\n");
    plain_file_drop(f);
    T_ERR(plain_open(&p, t_path("none"), '\n', true, &e), &e, ERR_IO, "none");
    buf_finish(&got);
    buf_finish(&b);
}

T_MAIN(T_CASE(blocks_are_whole_lines), T_CASE(white_space_at_the_end_comes_last),
       T_CASE(long_lines_stand_alone), T_CASE(ranges_share_the_lines_out),
       T_CASE(the_digest_is_that_of_the_file), T_CASE(the_file_stays_open_for_who_holds_it))

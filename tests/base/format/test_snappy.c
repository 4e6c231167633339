/* SPDX-License-Identifier: Apache-2.0 */
#include "base/format/snappy.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/buf.h"
#include "base/core/mem.h"
#include "tests/t.h"

/* Decodes in pieces into a buffer that slides, as a page's stream does. */
static const char *decode(const struct buf *in, size_t step, size_t cap, struct buf *ret)
{
    struct snappy s = {0};
    unsigned char *out = mem_new(cap, 1);
    const char *why = NULL;
    size_t len = 0, at = 0, taken = 0;
    buf_reset(ret);
    while (at < in->len && !why) {
        size_t used, n = in->len - at < step ? in->len - at : step;
        why = snappy_run(&s, (const unsigned char *)in->data + at, n, &used, out, &len, cap);
        at += used;
        buf_add(ret, out + taken, len - taken);
        taken = len;
        if (cap - len < SNAPPY_SLACK) {
            size_t keep = cap / 2;
            memmove(out, out + len - keep, keep);
            taken = len = keep;
        }
    }
    if (!why && s.done != s.total)
        why = "short";
    free(out);
    return why;
}

static void is(const char *in, size_t n, const char *want)
{
    struct buf b = {.data = (char *)in, .len = n}, got = {0};
    for (size_t step = 1; step < 9; step += 3) {
        T_CHECK(!decode(&b, step, 4096, &got));
        T_EQ(got.len, strlen(want));
        T_MEM(got.data, want, got.len);
    }
    buf_finish(&got);
}

static void refused(const char *in, size_t n, const char *want)
{
    struct buf b = {.data = (char *)in, .len = n}, got = {0};
    const char *why = decode(&b, 3, 4096, &got);
    T_CHECK(why && strstr(why, want));
    buf_finish(&got);
}

/* Vectors by hand, after the format's description. */
static void each_kind_of_element(void)
{
    is("\x00", 1, "");
    is("\x03\x08"
       "abc",
       5, "abc");
    is("\x0a\x08"
       "abc"
       "\x0d\x03",
       7, "abcabcabca"); /* 7 bytes from 3 back, one of the short */
    is("\x0b\x04"
       "ab"
       "\x22\x02\x00",
       7, "abababababa"); /* 9 bytes, two of offset */
    is("\x07\x04"
       "ab"
       "\x13\x02\x00\x00\x00",
       9, "abababa"); /* 5 bytes, four of offset */
    is("\x05\xf0\x04"
       "hello",
       8, "hello"); /* a length of one byte more */
    is("\x05\xf4\x04\x00"
       "hello",
       9, "hello"); /* of two */
}

static void what_is_refused(void)
{
    refused("\x03\x08"
            "ab",
            4, "short");
    refused("\x03\x0c"
            "abcd",
            6, "longer than the text");
    refused("\x04\x04"
            "ab"
            "\x01\x00",
            6, "before the text");
    refused("\x04\x04"
            "ab"
            "\x01\x03",
            6, "before the text");
    refused("\x03\x04"
            "ab"
            "\x05\x02",
            6, "longer than the text");
    refused("\x02\x04"
            "ab"
            "\x00"
            "c",
            6, "follow the end");
    refused("\xff\xff\xff\xff\xff\x01", 6, "no length");
    refused("\xff\xff\xff\xff\x7f", 5, "no length");
}

/* A long text of literals and copies by chance, decoded through a window. */
static void long_texts(void)
{
    struct buf in = {0}, want = {0}, got = {0};
    uint64_t draw = 0;
    while (want.len < 300000) {
        size_t n = 1 + t_rand(1, draw++) % 60, back = 1 + t_rand(1, draw++) % 1500;
        if (back > want.len || t_rand(1, draw++) % 4 == 0) {
            buf_addc(&in, (char)((n - 1) << 2));
            for (size_t i = 0; i < n; i++) {
                char c = (char)('a' + t_rand(2, draw++) % 20);
                buf_addc(&in, c);
                buf_addc(&want, c);
            }
        } else {
            char copy[3] = {(char)((n - 1) << 2 | 2), (char)(back & 255), (char)(back >> 8)};
            buf_add(&in, copy, 3);
            for (size_t i = 0; i < n; i++)
                buf_addc(&want, want.data[want.len - back]);
        }
    }
    struct buf all = {0};
    for (size_t v = want.len; v; v >>= 7)
        buf_addc(&all, (char)((v & 0x7f) | (v >> 7 ? 0x80 : 0)));
    buf_add(&all, in.data, in.len);
    for (size_t step = 1; step < 100000; step = step * 7 + 1) {
        T_CHECK(!decode(&all, step, 4096, &got));
        T_EQ(got.len, want.len);
        T_MEM(got.data, want.data, want.len);
    }
    T_CHECK(decode(&all, 100, 512, &got) != NULL); /* a window that copies reach out of */
    buf_finish(&in);
    buf_finish(&want);
    buf_finish(&got);
    buf_finish(&all);
}

T_MAIN(T_CASE(each_kind_of_element), T_CASE(what_is_refused), T_CASE(long_texts))

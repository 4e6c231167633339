/* SPDX-License-Identifier: Apache-2.0 */
#include "base/core/utf8.h"

#include <string.h>

#include "tests/t.h"

static const struct {
    const char *text, *mended;
    size_t good;
    uint64_t invalid;
} known[] = {
    {"", "", 0, 0},
    {"twelve bytes", "twelve bytes", 12, 0},
    {"\xc3\xa9t\xc3\xa9", "\xc3\xa9t\xc3\xa9", 5, 0},
    {"12345678\xff", "12345678\xef\xbf\xbd", 8, 1},
    {"a\xe3\x81z", "a\xef\xbf\xbdz", 1, 2}, /* cut short: one run of two bytes */
    {"\xed\xa0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd", 0, 3}, /* a surrogate */
    {"\xc0\x80", "\xef\xbf\xbd\xef\xbf\xbd", 0, 2},                 /* overlong */
    {"\xf0\x9f\x98", "\xef\xbf\xbd", 0, 3},
};

static void known_texts(void)
{
    for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++) {
        struct buf b = {0};
        size_t n = strlen(known[i].text);
        T_EQ(utf8_good(known[i].text, n), known[i].good);
        T_EQ(utf8_invalid(known[i].text, n), known[i].invalid);
        utf8_mend(&b, known[i].text, n);
        T_STR(buf_str(&b), known[i].mended);
        buf_finish(&b);
    }
}

/* Characters of each length across the ends of blocks, and one bad byte anywhere among them. */
static void long_texts(void)
{
    static const char *const unit[] = {"a", "\xc3\xa9", "\xe3\x81\x82", "\xf0\x9f\x98\x80"};
    for (size_t u = 0; u < 4; u++)
        for (size_t shift = 0; shift < 4; shift++) {
            struct buf b = {0};
            buf_add(&b, "bcd", shift);
            while (b.len < 20000)
                buf_add(&b, unit[u], strlen(unit[u]));
            T_EQ(utf8_good(b.data, b.len), b.len);
            for (size_t at = 0; at < b.len; at += 97) {
                size_t first =
                    at < shift ? at : shift + (at - shift) / strlen(unit[u]) * strlen(unit[u]);
                char was = b.data[at];
                b.data[at] = '\xff';
                T_EQ(utf8_good(b.data, b.len), first);
                b.data[at] = was;
            }
            buf_finish(&b);
        }
}

/* The text before a character is repaired to as many bytes. */
static void places_before_mending(const char *text, size_t n, const struct buf *mended)
{
    for (size_t at = 0; at <= mended->len; at++) {
        struct buf b = {0};
        if (at < mended->len && (mended->data[at] & 0xc0) == 0x80)
            continue;
        utf8_mend(&b, text, utf8_before_mending(text, n, at));
        T_EQ(b.len, at);
        buf_finish(&b);
    }
}

/* Repaired text is valid, and valid text is not changed. */
static void random_bytes(void)
{
    for (uint64_t r = 0; r < 20000; r++) {
        char text[40];
        size_t n = t_rand(r, 0) % sizeof(text);
        struct buf b = {0}, again = {0};
        for (size_t i = 0; i < n; i++)
            text[i] = (char)("az\xc3\xe3\xed\xf0\xf4\x80\x9f\xa0\xbf\xff"[t_rand(r, i + 1) % 12]);
        size_t runs = utf8_mend(&b, text, n);
        T_EQ(utf8_good(buf_str(&b), b.len), b.len);
        T_EQ(runs == 0, utf8_good(text, n) == n);
        T_EQ(utf8_invalid(text, n) >= runs, true);
        T_EQ(utf8_mend(&again, b.data, b.len), 0);
        places_before_mending(text, n, &b);
        T_STR(buf_str(&again), buf_str(&b));
        buf_finish(&b);
        buf_finish(&again);
    }
}

static void plain_texts(void)
{
    static const char *const rows[][2] = {
        {"a rank: \xec\x99\x9c?", "a rank: \xec\x99\x9c?"},
        {"\x1b[31mred\x1b[0m", "\\x1b[31mred\\x1b[0m"},
        {"a\nb\tc\x7f", "a\\x0ab\\x09c\\x7f"},
        {"\xc2\x9bK\xff", "\\xc2\\x9bK\\xff"}, /* CSI of C1; no UTF-8 */
        {"\xe2\x80\xae"
         "cba",
         "\\xe2\\x80\\xae"
         "cba"}, /* from right to left */
        {"a\xe2\x82", "a\\xe2\\x82"},
    };
    char text[64];
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        T_EQ(utf8_plain(rows[i][0], strlen(rows[i][0]), text, sizeof(text)), strlen(rows[i][1]));
        T_STR(text, rows[i][1]);
    }
    T_EQ(utf8_plain("abcdef", 6, text, 4), 3);
    T_STR(text, "abc");
    T_EQ(utf8_plain("ab\xec\x99\x9c", 5, text, 5), 2); /* no part of a character */
    T_EQ(utf8_plain("a\x1b", 2, text, 5), 1);
    T_EQ(utf8_plain("a", 1, text, 1), 0);
    T_STR(text, "");
}

T_MAIN(T_CASE(known_texts), T_CASE(long_texts), T_CASE(plain_texts), T_CASE(random_bytes))

/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/pretok/split_open.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/utf8.h"
#include "tests/t.h"
#include "tok/pretok/regex.h"

/* Pieces of a text that comes in parts are those of the whole. */

static int put_piece(void *arg, const char *text, size_t n, bool ends, struct err *e)
{
    struct buf *b = arg;
    (void)e;
    buf_add(b, text, n);
    if (ends)
        buf_addc(b, '|');
    return 0;
}

static bool is_odd(const void *arg, uint32_t c)
{
    (void)arg;
    return c & 1;
}

static bool is_comma(const void *arg, uint32_t c)
{
    return c == (uint32_t) * (const char *)arg;
}

static int kind_of(uint32_t c)
{
    return c == ' ' ? 0 : c < 'b' ? 1 : c < 0x80 ? 2 : 3;
}

static size_t put_twice(char *dst, uint8_t byte)
{
    dst[0] = (char)('a' + byte % 16);
    dst[1] = (char)('a' + byte / 16);
    return 2;
}

static const char *const pattern[] = {"a+",     "\\s+",        "[ab]|(?<=ab)1", "x*",
                                      "(a)\\1", "(?>a+b)|\\n", "\\b",           "\\p{L}+|,"};
enum { PATTERNS = sizeof(pattern) / sizeof(*pattern) };

static void add_step(struct split_open *s, struct regex *const r[], uint64_t seed)
{
    enum pre_behavior b = (enum pre_behavior)(t_rand(seed, 1) % 5);
    uint32_t k = t_rand(seed, 2);
    switch (t_rand(seed, 0) % 8) {
    case 0:
        T_CHECK(split_open_add_chars(s, k & 1 ? is_odd : is_comma, ",", b));
        return;
    case 1:
        T_CHECK(split_open_add_runs(s, kind_of, k & 1));
        return;
    case 2:
        T_CHECK(split_open_add_lengths(s, 1 + k % 5));
        return;
    case 3:
        T_CHECK(split_open_add_marks(s, (struct split_marks){"\u2581", 3, k & 1, k & 2}));
        return;
    case 4:
        T_CHECK(k & 1 ? split_open_add_space(s) : split_open_add_letters(s, put_twice));
        return;
    default:
        if (r[k % PATTERNS])
            T_CHECK(split_open_add(s, r[k % PATTERNS], k & 64, b));
    }
}

static void make_text(struct buf *b, uint64_t seed)
{
    static const char *const one[] = {"a", "b", " ", ",", "1", "\n", "\u00e9", "\u6f22", "\u2581"};
    buf_reset(b);
    for (uint64_t i = 0, n = t_rand(seed, 0) % 50; i < n; i++)
        for (uint64_t k = t_rand(seed, 2 * i + 1) % 8 ? 1 : 6; k; k--)
            buf_adds(b, one[t_rand(seed, 2 * i + 2) % 9]);
}

static void pieces_are_those_of_the_whole(void)
{
    struct regex *r[PATTERNS] = {NULL};
    struct buf text = {0}, want = {0}, got = {0};
    struct err e;
    for (size_t i = 0; i < PATTERNS && WEFT_PCRE2; i++)
        T_OK(regex_compile_search("x.json", pattern[i], strlen(pattern[i]), &r[i], &e), &e);
    for (uint64_t seed = 1; seed <= (getenv("WEFT_FULL") ? 5000U : 400U); seed++) {
        struct split_open *s = split_open_create();
        for (uint64_t i = 0; i < 1 + seed % 3; i++)
            add_step(s, r, seed * 8 + i);
        for (uint64_t i = 0; i < 4; i++) {
            make_text(&text, seed * 4 + i);
            buf_reset(&want);
            buf_reset(&got);
            T_OK(split_open_put(s, buf_str(&text), text.len, true, put_piece, &want, &e), &e);
            for (size_t at = 0, n; at < text.len; at += n) {
                for (n = 1 + t_rand(i, at) % 5; at + n < text.len; n++)
                    if (((unsigned char)text.data[at + n] & 0xc0) != 0x80)
                        break;
                n = n < text.len - at ? n : text.len - at;
                T_OK(split_open_put(s, text.data + at, n, false, put_piece, &got, &e), &e);
            }
            T_OK(split_open_put(s, "", 0, true, put_piece, &got, &e), &e);
            T_STR(buf_str(&got), buf_str(&want));
        }
        split_open_destroy(s);
    }
    for (size_t i = 0; i < PATTERNS; i++)
        regex_destroy(r[i]);
    buf_finish(&text);
    buf_finish(&want);
    buf_finish(&got);
}

T_MAIN(T_CASE(pieces_are_those_of_the_whole))

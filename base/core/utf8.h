/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_CORE_UTF8_H
#define BASE_CORE_UTF8_H

/* UTF-8, a character or a text at a time. RFC 3629: no surrogates, nothing overlong, at most
 * U+10FFFF. */

#include <stddef.h>
#include <stdint.h>

#include "base/core/buf.h"

/* Bytes of the character at `p` (p < end), or 0 if it is not valid UTF-8. */
static inline size_t utf8_char(const char *p, const char *end)
{
    const unsigned char *s = (const unsigned char *)p;
    size_t left = (size_t)(end - p);
    if (s[0] < 0x80)
        return 1;
    if (s[0] < 0xc2 || s[0] > 0xf4)
        return 0;
    if (left < 2 || (s[1] & 0xc0) != 0x80)
        return 0;
    if (s[0] < 0xe0)
        return 2;
    if (s[0] == 0xe0 ? s[1] < 0xa0 : s[0] == 0xed && s[1] > 0x9f)
        return 0;
    if (s[0] == 0xf0 ? s[1] < 0x90 : s[0] == 0xf4 && s[1] > 0x8f)
        return 0;
    if (left < 3 || (s[2] & 0xc0) != 0x80)
        return 0;
    if (s[0] < 0xf0)
        return 3;
    return left >= 4 && (s[3] & 0xc0) == 0x80 ? 4 : 0;
}

/* The code point of a character of k bytes, 1 to 4 as utf8_char returns. */
static inline uint32_t utf8_code(const char *p, size_t k)
{
    const unsigned char *s = (const unsigned char *)p;
    if (k == 1)
        return s[0];
    uint32_t c = s[0] & (0x7fu >> k);
    for (size_t i = 1; i < k; i++)
        c = c << 6 | (s[i] & 0x3fu);
    return c;
}

/* The code point of the character at p, which is valid UTF-8, and its length. */
static inline uint32_t utf8_at(const char *p, size_t *ret_n)
{
    const unsigned char *s = (const unsigned char *)p;
    if (s[0] < 0x80)
        return *ret_n = 1, s[0];
    if (s[0] < 0xe0)
        return *ret_n = 2, (uint32_t)(s[0] & 0x1f) << 6 | (s[1] & 0x3f);
    if (s[0] < 0xf0)
        return *ret_n = 3,
               (uint32_t)(s[0] & 0x0f) << 12 | (uint32_t)(s[1] & 0x3f) << 6 | (s[2] & 0x3f);
    return *ret_n = 4, (uint32_t)(s[0] & 0x07) << 18 | (uint32_t)(s[1] & 0x3f) << 12 |
                           (uint32_t)(s[2] & 0x3f) << 6 | (s[3] & 0x3f);
}

/* Where the character that ends at text + at begins, in valid UTF-8; at > 0. */
static inline size_t utf8_before(const char *text, size_t at)
{
    do
        at--;
    while (at && ((unsigned char)text[at] & 0xc0) == 0x80);
    return at;
}

/* Writes `c` (at most 0x10ffff, not a surrogate) to dst, which has space for 4 bytes; returns their
 * number. */
static inline size_t utf8_put(char *dst, uint32_t c)
{
    if (c < 0x80) {
        dst[0] = (char)c;
        return 1;
    }
    if (c < 0x800) {
        dst[0] = (char)(0xc0 | c >> 6);
        dst[1] = (char)(0x80 | (c & 0x3f));
        return 2;
    }
    if (c < 0x10000) {
        dst[0] = (char)(0xe0 | c >> 12);
        dst[1] = (char)(0x80 | (c >> 6 & 0x3f));
        dst[2] = (char)(0x80 | (c & 0x3f));
        return 3;
    }
    dst[0] = (char)(0xf0 | c >> 18);
    dst[1] = (char)(0x80 | (c >> 12 & 0x3f));
    dst[2] = (char)(0x80 | (c >> 6 & 0x3f));
    dst[3] = (char)(0x80 | (c & 0x3f));
    return 4;
}

/* Bytes of p[0 .. n) before the first invalid one. */
size_t utf8_good(const char *p, size_t n);

/* How many bytes of p[0 .. n) are not part of a valid character. */
uint64_t utf8_invalid(const char *p, size_t n);

/* Appends n bytes with each maximal invalid run replaced by U+FFFD; returns the number of runs. */
size_t utf8_mend(struct buf *out, const char *p, size_t n);

/*
 * p[0 .. n) as text for a terminal, cut to what fits into size > 0 bytes with its NUL: bytes of
 * control characters, of those that reorder a line, and invalid ones as \xNN. Returns its length.
 */
size_t utf8_plain(const char *p, size_t n, char *ret, size_t size);

/* The place in p[0 .. n) of byte `at` of utf8_mend's output: the byte, or where its run begins. */
size_t utf8_before_mending(const char *p, size_t n, size_t at);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/utf8.h"
#include "tok/pipe_run.h"

/*
 * GPT-2 writes bytes as letters: those that print stand for themselves, the other 68 are U+0100 and
 * on, in order.
 */
static bool prints(uint8_t b)
{
    return (b >= '!' && b <= '~') || (b >= 0xa1 && b != 0xad);
}

uint32_t letter_of_byte(uint8_t b)
{
    if (prints(b))
        return b;
    if (b <= ' ')
        return 0x100u + b;
    return b == 0xad ? 0x143 : 0x100u + 33 + (b - 0x7fu);
}

size_t letter_put(char *dst, uint8_t b)
{
    return utf8_put(dst, letter_of_byte(b));
}

int byte_of_letter(const char *p, size_t left, size_t *ret_n)
{
    const unsigned char *s = (const unsigned char *)p;
    if (left && s[0] >= '!' && s[0] <= '~')
        return *ret_n = 1, s[0];
    if (left < 2 || s[0] < 0xc2 || s[0] > 0xc5)
        return -1;
    uint32_t c = (uint32_t)(s[0] & 0x1f) << 6 | (s[1] & 0x3f);
    *ret_n = 2;
    if (c < 0x100)
        return prints((uint8_t)c) ? (int)c : -1;
    if (c <= 0x120)
        return (int)(c - 0x100);
    return c <= 0x142 ? (int)(c - 0x121 + 0x7f) : c == 0x143 ? 0xad : -1;
}

size_t utf8_good(const char *p, size_t n)
{
    size_t i = 0;
    while (i < n) {
        uint64_t v;
        while (i + 8 <= n && (memcpy(&v, p + i, 8), !(v & 0x8080808080808080u)))
            i += 8;
        if (i == n)
            break;
        size_t k = utf8_char(p + i, p + n);
        if (!k)
            break;
        i += k;
    }
    return i;
}

/* Bytes of the longest beginning of a character at p, which is no whole one: at least 1. */
static size_t bad_run(const unsigned char *s, size_t left)
{
    size_t want = s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : 2;
    if (s[0] < 0xc2 || s[0] > 0xf4 || left < 2)
        return 1;
    unsigned char low = s[0] == 0xe0 ? 0xa0 : s[0] == 0xf0 ? 0x90 : 0x80;
    unsigned char high = s[0] == 0xed ? 0x9f : s[0] == 0xf4 ? 0x8f : 0xbf;
    if (s[1] < low || s[1] > high)
        return 1;
    size_t i = 2;
    while (i < want - 1 && i < left && (s[i] & 0xc0) == 0x80)
        i++;
    return i;
}

size_t utf8_mend(struct buf *out, const char *p, size_t n)
{
    size_t runs = 0;
    for (size_t i = 0; i < n;) {
        size_t k = utf8_good(p + i, n - i);
        buf_add(out, p + i, k);
        i += k;
        if (i == n)
            break;
        buf_add(out, "\xef\xbf\xbd", 3);
        i += bad_run((const unsigned char *)p + i, n - i);
        runs++;
    }
    return runs;
}

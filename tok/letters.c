/* SPDX-License-Identifier: Apache-2.0 */
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

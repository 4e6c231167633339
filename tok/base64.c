/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/base64.h"

void base64_put(struct buf *b, const void *p, size_t n)
{
    static const char digit[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const uint8_t *s = p;
    for (size_t i = 0; i < n; i += 3) {
        uint32_t v = 0;
        for (size_t k = 0; k < 3; k++)
            v = v << 8 | (i + k < n ? s[i + k] : 0);
        for (size_t k = 0; k < 4; k++)
            buf_addc(b, k > n - i ? '=' : digit[v >> (18 - 6 * k) & 63]);
    }
}

static int value_of(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

ptrdiff_t base64_get(const char *p, size_t n, bool exact, uint8_t *ret)
{
    size_t pad = 0;
    uint8_t *to = ret;
    while (pad < 2 && pad < n && p[n - 1 - pad] == '=')
        pad++;
    if (n % 4)
        return -1;
    for (size_t i = 0; i < n; i += 4) {
        uint32_t bits = 0;
        size_t keep = i + 4 == n ? 4 - pad : 4;
        for (size_t k = 0; k < 4; k++) {
            int v = k < keep ? value_of(p[i + k]) : 0;
            if (v < 0)
                return -1;
            bits = bits << 6 | (uint32_t)v;
        }
        for (size_t k = 0; k + 1 < keep; k++)
            *to++ = (uint8_t)(bits >> (16 - 8 * k));
        if (exact && bits & ((1u << 8 * (4 - keep)) - 1))
            return -1;
    }
    return to - ret;
}

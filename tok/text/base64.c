/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/text/base64.h"

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

enum { NO = 64 }; /* not a digit */

/* clang-format off */
static const uint8_t value[128] = {
    NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO,
    NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO,
    NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, 62, NO, NO, NO, 63,
    52, 53, 54, 55, 56, 57, 58, 59, 60, 61, NO, NO, NO, NO, NO, NO,
    NO,  0,  1,  2,  3,  4,  5,  6,  7,  8,  9, 10, 11, 12, 13, 14,
    15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, NO, NO, NO, NO, NO,
    NO, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40,
    41, 42, 43, 44, 45, 46, 47, 48, 49, 50, 51, NO, NO, NO, NO, NO,
};
/* clang-format on */

static inline uint32_t value_of(char c)
{
    return (unsigned char)c < 128 ? value[(unsigned char)c] : NO;
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
        size_t keep = i + 4 == n ? 4 - pad : 4;
        uint32_t a = value_of(p[i]), b = value_of(p[i + 1]);
        uint32_t c = keep > 2 ? value_of(p[i + 2]) : 0, d = keep > 3 ? value_of(p[i + 3]) : 0;
        uint32_t bits = a << 18 | b << 12 | c << 6 | d;
        if ((a | b | c | d) & NO)
            return -1;
        for (size_t k = 0; k + 1 < keep; k++)
            *to++ = (uint8_t)(bits >> (16 - 8 * k));
        if (exact && bits & ((1u << 8 * (4 - keep)) - 1))
            return -1;
    }
    return to - ret;
}

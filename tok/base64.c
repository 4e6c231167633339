/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/base64.h"

#include <stdint.h>

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

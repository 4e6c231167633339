/* SPDX-License-Identifier: Apache-2.0 */
#include "base/format/json.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/bytes.h"
#include "base/core/utf8.h"

static void escape(struct buf *b, unsigned char c)
{
    static const char letter[32] = {
        ['\b'] = 'b', ['\t'] = 't', ['\n'] = 'n', ['\f'] = 'f', ['\r'] = 'r'};
    char *dst = buf_reserve(b, 6);
    dst[0] = '\\';
    if (c >= 32 || letter[c]) {
        dst[1] = c < 32 ? letter[c] : (char)c;
        b->len += 2;
    } else {
        memcpy(dst + 1, c < 16 ? "u000" : "u001", 4);
        dst[5] = "0123456789abcdef"[c & 15];
        b->len += 6;
    }
}

/* May one of eight bytes need an escape, or not be ASCII? Never false if one does. */
static inline bool is_odd(uint64_t v)
{
    const uint64_t low = 0x0101010101010101;
    uint64_t quote = v ^ low * '"', slash = v ^ low * '\\';
    return ((v - low * 0x20) | (quote - low) | (slash - low) | v) & low * 0x80;
}

void jsonw_string(struct buf *b, const char *s, size_t n)
{
    const char *end = s + n, *from = s;
    buf_addc(b, '"');
    while (s < end) {
        while (end - s >= 8 && !is_odd(load_u64(s)))
            s += 8;
        if (s == end)
            break;
        size_t k = utf8_char(s, end);
        unsigned char c = (unsigned char)*s;
        if (k && c >= 0x20 && c != '"' && c != '\\') {
            s += k;
            continue;
        }
        buf_add(b, from, (size_t)(s - from));
        if (k)
            escape(b, c);
        else
            buf_adds(b, "\xef\xbf\xbd");
        from = ++s;
    }
    buf_add(b, from, (size_t)(s - from));
    buf_addc(b, '"');
}

void jsonw_key(struct buf *b, const char *key)
{
    jsonw_string(b, key, strlen(key));
    buf_addc(b, ':');
}

void jsonw_real(struct buf *b, double v)
{
    char text[40];
    if (!isfinite(v)) {
        buf_adds(b, "null");
        return;
    }
    bool plain = fabs(v) < 1e15 && floor(v) == v;
    if (plain)
        snprintf(text, sizeof(text), "%.1f", v);
    for (int digits = 1; !plain && digits <= 17; digits++) {
        snprintf(text, sizeof(text), "%.*g", digits, v);
        if (strtod(text, NULL) == v) /* 17 digits always do */
            break;
    }
    buf_adds(b, text);
    buf_adds(b, strpbrk(text, ".e") ? "" : ".0");
}

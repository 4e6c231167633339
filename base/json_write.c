/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"

static void escape(struct buf *b, unsigned char c)
{
    static const char letter[32] = {
        ['\b'] = 'b', ['\t'] = 't', ['\n'] = 'n', ['\f'] = 'f', ['\r'] = 'r'};
    if (c == '"' || c == '\\')
        buf_addf(b, "\\%c", c);
    else if (letter[c])
        buf_addf(b, "\\%c", letter[c]);
    else
        buf_addf(b, "\\u%04x", c);
}

void jsonw_string(struct buf *b, const char *s, size_t n)
{
    const char *end = s + n, *from = s;
    buf_addc(b, '"');
    while (s < end) {
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

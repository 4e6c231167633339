/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/text/utf8_stream.h"

#include <string.h>

/* The first byte of a character; false if no character begins with it. */
static bool utf8_stream_begin(struct strict *s, uint8_t b)
{
    s->begun = s->at;
    s->low = b == 0xe0 ? 0xa0 : b == 0xf0 ? 0x90 : 0x80;
    s->high = b == 0xed ? 0x9f : b == 0xf4 ? 0x8f : 0xbf;
    s->need = b < 0x80 ? 0 : b < 0xe0 ? 1 : b < 0xf0 ? 2 : 3;
    return b < 0x80 || (b >= 0xc2 && b <= 0xf4);
}

bool strict_add(struct strict *s, const char *text, size_t n, bool last)
{
    for (size_t i = 0; i < n;) {
        uint64_t v;
        if (!s->need && i + 8 <= n && (memcpy(&v, text + i, 8), !(v & 0x8080808080808080u))) {
            i += 8;
            s->at += 8;
            continue;
        }
        uint8_t b = (uint8_t)text[i++];
        if (!s->need) {
            if (!utf8_stream_begin(s, b))
                return false;
        } else {
            if (b < s->low || b > s->high)
                return false;
            s->need--;
            s->low = 0x80;
            s->high = 0xbf;
        }
        s->at++;
    }
    return !last || !s->need;
}

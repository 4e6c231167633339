/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/unicode/charset.h"

#include <stdlib.h>

#include "base/core/err.h"
#include "base/core/mem.h"
#include "tok/unicode/unicode.h"

enum { WORDS = UNI_LIMIT / 64 };

static uint64_t *bits_of(struct charset *s)
{
    if (!s->bit)
        s->bit = mem_new(WORDS, sizeof(*s->bit));
    return s->bit;
}

void charset_finish(struct charset *s)
{
    free(s->bit);
    s->bit = NULL;
}

void charset_add(struct charset *s, uint32_t first, uint32_t last)
{
    BUG_ON(last >= UNI_LIMIT, "code point %#x", last);
    uint64_t *bit = bits_of(s);
    for (uint32_t c = first; c <= last; c++)
        bit[c >> 6] |= (uint64_t)1 << (c & 63);
}

bool charset_has(const struct charset *s, uint32_t c)
{
    return s->bit && s->bit[c >> 6] >> (c & 63) & 1;
}

void charset_invert(struct charset *s)
{
    uint64_t *bit = bits_of(s);
    for (size_t i = 0; i < WORDS; i++)
        bit[i] = ~bit[i];
}

void charset_join(struct charset *s, const struct charset *with)
{
    uint64_t *bit = bits_of(s);
    for (size_t i = 0; with->bit && i < WORDS; i++)
        bit[i] |= with->bit[i];
}

void charset_meet(struct charset *s, const struct charset *with)
{
    uint64_t *bit = bits_of(s);
    for (size_t i = 0; i < WORDS; i++)
        bit[i] &= with->bit ? with->bit[i] : 0;
}

size_t charset_put(const struct charset *s, struct buf *out)
{
    uint32_t first = 0;
    bool inside = false;
    size_t count = 0;
    for (uint32_t c = 0; c <= UNI_LIMIT; c++) {
        bool is = c < UNI_LIMIT && !(c >= 0xd800 && c <= 0xdfff) && charset_has(s, c);
        if (is && !inside)
            first = c;
        if (!is && inside) {
            buf_addf(out, "\\x{%x}", first);
            if (c - 1 > first)
                buf_addf(out, "-\\x{%x}", c - 1);
            count++;
        }
        inside = is;
    }
    return count;
}

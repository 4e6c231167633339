/* SPDX-License-Identifier: Apache-2.0 */
#include "base/format/snappy.h"

#include <string.h>

/* The size of an element's header, tag byte included. */
static size_t head_size(unsigned char tag)
{
    static const unsigned char copy[4] = {0, 2, 3, 5};
    unsigned n = tag >> 2;
    if (tag & 3)
        return copy[tag & 3];
    return n < 60 ? 1 : n - 58;
}

static uint32_t little(const unsigned char *p, size_t n)
{
    uint32_t v = 0;
    for (size_t i = 0; i < n; i++)
        v |= (uint32_t)p[i] << (8 * i);
    return v;
}

/* The total, seven bits a byte; 1: complete, 0: not yet, -1: invalid. */
static int add_total(struct snappy *s, unsigned char byte)
{
    s->total |= (uint64_t)(byte & 0x7f) << (7 * s->nhead++);
    if (byte >= 0x80)
        return s->nhead < 5 ? 0 : -1;
    return s->total <= UINT32_MAX ? 1 : -1;
}

static const char *begin_literal(struct snappy *s)
{
    uint32_t n = s->head[0] >> 2;
    if (n >= 60)
        n = little(s->head + 1, s->nhead - 1);
    if (n >= s->total - s->done)
        return "a snappy literal is longer than the text";
    s->literal = n + 1;
    return NULL;
}

static const char *snappy_copy(struct snappy *s, unsigned char *out, size_t *len)
{
    unsigned tag = s->head[0];
    size_t n = (tag & 3) == 1 ? (tag >> 2 & 7) + 4 : (tag >> 2) + 1;
    size_t back = (tag & 3) == 1 ? (tag >> 5) << 8 | s->head[1] : little(s->head + 1, s->nhead - 1);
    if (!back || back > s->done)
        return "a snappy copy reaches back before the text";
    if (back > *len)
        return "a snappy copy reaches back further than 4 MiB";
    if (n > s->total - s->done)
        return "a snappy copy is longer than the text";
    unsigned char *to = out + *len;
    const unsigned char *from = to - back;
    if (back >= n)
        memcpy(to, from, n);
    else
        for (size_t i = 0; i < n; i++)
            to[i] = from[i];
    *len += n;
    s->done += n;
    return NULL;
}

static size_t copy_literal(struct snappy *s, const unsigned char *in, size_t n, unsigned char *out,
                           size_t *len, size_t cap)
{
    size_t k = s->literal;
    k = k < n ? k : n;
    k = k < cap - *len ? k : cap - *len;
    memcpy(out + *len, in, k);
    *len += k;
    s->literal -= (uint32_t)k;
    s->done += k;
    return k;
}

const char *snappy_run(struct snappy *s, const unsigned char *in, size_t n, size_t *ret_used,
                       unsigned char *out, size_t *len, size_t cap)
{
    const char *why = NULL;
    size_t i = 0;
    while (i < n && !why && cap - *len >= SNAPPY_SLACK) {
        if (s->literal) {
            i += copy_literal(s, in + i, n - i, out, len, cap);
        } else if (!s->began) {
            int known = add_total(s, in[i++]);
            why = known < 0 ? "the snappy data has no length" : NULL;
            s->began = known > 0;
            s->nhead = s->began ? 0 : s->nhead;
        } else if (s->done == s->total) {
            why = "bytes follow the end of the snappy data";
        } else {
            s->head[s->nhead++] = in[i++];
            if (s->nhead < head_size(s->head[0]))
                continue;
            why = s->head[0] & 3 ? snappy_copy(s, out, len) : begin_literal(s);
            s->nhead = 0;
        }
    }
    *ret_used = i;
    return why;
}

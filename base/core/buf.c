/* SPDX-License-Identifier: Apache-2.0 */
#include "base/core/buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/mem.h"

char *buf_reserve(struct buf *b, size_t n)
{
    size_t need;
    BUG_ON(__builtin_add_overflow(b->len, n, &need), "buf_reserve of %zu bytes", n);
    if (need > b->cap || !b->data) {
        size_t cap = b->cap + b->cap / 2;
        if (cap < need)
            cap = need;
        if (cap < 64)
            cap = 64;
        b->data = mem_grow(b->data, cap, 1);
        b->cap = cap;
    }
    return b->data + b->len;
}

void buf_add(struct buf *b, const void *p, size_t n)
{
    if (!n)
        return;
    memcpy(buf_reserve(b, n), p, n);
    b->len += n;
}

void buf_addc(struct buf *b, char c)
{
    *buf_reserve(b, 1) = c;
    b->len++;
}

void buf_adds(struct buf *b, const char *s)
{
    buf_add(b, s, strlen(s));
}

void buf_addf(struct buf *b, const char *fmt, ...)
{
    va_list ap, again;
    va_start(ap, fmt);
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    BUG_ON(n < 0, "bad format '%s'", fmt);
    vsnprintf(buf_reserve(b, (size_t)n + 1), (size_t)n + 1, fmt, again);
    va_end(again);
    b->len += (size_t)n;
}

char *buf_str(struct buf *b)
{
    *buf_reserve(b, 1) = '\0';
    return b->data;
}

void buf_reset(struct buf *b)
{
    b->len = 0;
}

void buf_finish(struct buf *b)
{
    free(b->data);
    *b = (struct buf){0};
}

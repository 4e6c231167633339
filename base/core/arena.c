/* SPDX-License-Identifier: Apache-2.0 */
#include "base/core/arena.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/bytes.h"
#include "base/core/mem.h"

struct arena_block {
    struct arena_block *next;
    size_t size;
    _Alignas(16) char data[];
};

enum { BLOCK = 64 * 1024 };

void *arena_take(struct arena *a, size_t n, size_t size)
{
    size_t bytes;
    BUG_ON(__builtin_mul_overflow(n, size, &bytes), "arena_take of %zu times %zu", n, size);
    bytes = align_up(bytes, 16);
    if (!a->head || a->head->size - a->used < bytes) {
        size_t want = bytes > BLOCK ? bytes : BLOCK;
        struct arena_block *b = mem_new(1, sizeof(*b) + want);
        b->size = want;
        b->next = a->head;
        a->head = b;
        a->used = 0;
    }
    void *p = a->head->data + a->used;
    a->used += bytes;
    return p;
}

char *arena_strndup(struct arena *a, const char *s, size_t n)
{
    char *p = arena_take(a, n + 1, 1);
    memcpy(p, s, n);
    return p;
}

char *arena_strdup(struct arena *a, const char *s)
{
    return arena_strndup(a, s, strlen(s));
}

char *arena_printf(struct arena *a, const char *fmt, ...)
{
    va_list ap, again;
    va_start(ap, fmt);
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    BUG_ON(n < 0, "bad format '%s'", fmt);
    char *p = arena_take(a, (size_t)n + 1, 1);
    vsnprintf(p, (size_t)n + 1, fmt, again);
    va_end(again);
    return p;
}

void arena_reset(struct arena *a)
{
    if (!a->head)
        return;
    size_t dirty = a->head->next ? 0 : a->used; /* of the first block, where that is known */
    while (a->head->next) {
        struct arena_block *next = a->head->next;
        free(a->head);
        a->head = next;
    }
    memset(a->head->data, 0, dirty ? dirty : a->head->size);
    a->used = 0;
}

void arena_finish(struct arena *a)
{
    while (a->head) {
        struct arena_block *next = a->head->next;
        free(a->head);
        a->head = next;
    }
    a->used = 0;
}

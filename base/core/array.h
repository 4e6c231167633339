/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_CORE_ARRAY_H
#define BASE_CORE_ARRAY_H

/*
 * Arrays that grow one element at a time: a pointer, the number of elements and a size_t capacity.
 * The memory is not initialised, and is freed by free().
 *
 *     ARRAY_GROW(s->item, s->n, s->cap);
 *     s->item[s->n++] = ...;
 */

#include <stdbool.h>
#include <stddef.h>

#include "base/core/mem.h"

/* Ensures space for element `n`; `p` may move; the capacity doubles when it is full. */
#define ARRAY_GROW(p, n, cap)                                                                      \
    ((n) == (cap) ? (void)((p) = array_double((p), &(cap), sizeof(*(p)))) : (void)0)

/* Twice as many elements of `size` bytes, 64 at first. */
static inline void *array_double(void *p, size_t *cap, size_t size)
{
    *cap = *cap ? 2 * *cap : 64;
    return mem_grow(p, *cap, size);
}

/* The same without a stored capacity: it is 16, or the next power of two of `n`. */
static inline void *array_more(void *p, size_t n, size_t size)
{
    bool full = n == 0 || (n >= 16 && (n & (n - 1)) == 0);
    return full ? mem_grow(p, n ? n * 2 : 16, size) : p;
}

#endif

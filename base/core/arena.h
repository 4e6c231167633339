/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_CORE_ARENA_H
#define BASE_CORE_ARENA_H

/*
 * Memory with one lifetime: many small pieces, freed together. The arena owns its blocks; pieces
 * live until arena_reset or arena_finish. One thread at a time. A zeroed struct is a valid empty
 * arena.
 */

#include <stddef.h>

struct arena_block;

struct arena {
    struct arena_block *head; /* newest block */
    size_t used;              /* bytes taken from it */
};

/* Zeroed, 16-byte aligned, never NULL (see mem.h). */
void *arena_take(struct arena *a, size_t n, size_t size);
char *arena_strndup(struct arena *a, const char *s, size_t n);
char *arena_strdup(struct arena *a, const char *s);
char *arena_printf(struct arena *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Drops all pieces; keeps one block for reuse. */
void arena_reset(struct arena *a);
void arena_finish(struct arena *a);

#endif

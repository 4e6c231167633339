/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_CORE_MEM_H
#define BASE_CORE_MEM_H

/*
 * Heap memory. Two doors:
 *   mem_new, mem_grow   for sizes that our own code decides: never NULL; a machine that has no
 *                       memory left ends the process with one sentence and exit code 5.
 *   mem_try             for sizes that come from a file or an option: ERR_RESOURCE with a sentence.
 * New memory is zeroed. Freed by free().
 */

#include <stddef.h>

#include "base/core/err.h"

void *mem_new(size_t n, size_t size);

/* Grows `p` (may be NULL) to n elements; the new part is not initialised. */
void *mem_grow(void *p, size_t n, size_t size);

/* Large pages for memory that was just allocated and not yet written, where the system has them and
 * n is large enough: random access then misses fewer translations, and first writes fault less. */
void mem_large_pages(void *p, size_t n);

/* Zeroed, on lines of the cache that nothing else lies on: what a thread writes beside what others
 * read. */
void *mem_own(size_t n);

/* n bytes in large pages where the system has them, not initialised, for what is read or filled
 * once: pages of 4 KiB cost four times as much. */
void *mem_block(size_t n);

/* Zeroed memory on its own pages, of which only those that are touched are taken, large ones if the
 * system has them; given back by munmap. */
void *mem_pages(size_t n);

/* Makes n bytes of `old`, which it may move: large pages stay what they are. */
void *mem_pages_grow(void *p, size_t old, size_t n);

/* All of it is going to be written soon: its pages are had at once, where the system can, which
 * costs a fraction of having them one by one. */
void mem_all_pages(void *p, size_t n);

/* memcpy of what nobody reads soon: past the processor's caches, which costs half as much where the
 * memory is none that they hold. */
void mem_copy_past(void *to, const void *from, size_t n);

/* From now on a block of a MiB or more goes back to the system when it is freed, where the C
 * library can do that: for programs that keep to a limit. */
void mem_return_blocks(void);

char *mem_strdup(const char *s);
char *mem_strndup(const char *s, size_t n);

/* printf into fresh memory. */
char *mem_printf(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* `what` names the purpose: "memory for the vocabulary of x.model". */
int mem_try(size_t n, size_t size, const char *what, void **ret, struct err *e);

#endif

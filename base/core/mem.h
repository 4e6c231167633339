/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_CORE_MEM_H
#define BASE_CORE_MEM_H

/*
 * Heap memory. Two kinds of allocation:
 *   mem_new, mem_grow   for sizes that our own code decides: never NULL; out of memory ends the
 *                       process with a message and exit code 5.
 *   mem_try             for sizes that come from a file or an option: ERR_RESOURCE with a sentence.
 * New memory is zeroed. Freed by free().
 */

#include <stddef.h>

#include "base/core/err.h"

void *mem_new(size_t n, size_t size);

/* Grows `p` (may be NULL) to n elements; the new part is not initialised. */
void *mem_grow(void *p, size_t n, size_t size);

/* Requests huge pages (MADV_HUGEPAGE) for memory just allocated and not yet written, if n is large
 * enough: fewer TLB misses and page faults. No effect where the system has none. */
void mem_large_pages(void *p, size_t n);

/* Zeroed, on cache lines of its own, so that a thread's writes do not slow down readers of its
 * neighbours (no false sharing). */
void *mem_own(size_t n);

/* n bytes, not initialised, in huge pages where possible: for large buffers that are filled and
 * read once, where page faults of 4 KiB cost four times as much. */
void *mem_block(size_t n);

/* n zeroed bytes from mmap: only pages that are touched take memory; huge pages where possible.
 * Freed by munmap. */
void *mem_pages(size_t n);

/* Resizes such memory from `old` to n bytes and may move it (mremap); huge pages are kept. */
void *mem_pages_grow(void *p, size_t old, size_t n);

/* Faults all pages in now (MADV_POPULATE_WRITE, where available): a fraction of the cost of one
 * fault a page. For memory that is about to be written. */
void mem_all_pages(void *p, size_t n);

/* memcpy with non-temporal stores, for data that is not read soon: half the cost if `to` is not in
 * the processor's caches. */
void mem_copy_past(void *to, const void *from, size_t n);

/* From now on blocks of 1 MiB or more return to the system when freed, if the C library can do
 * that: for programs that keep to a memory limit. */
void mem_return_blocks(void);

char *mem_strdup(const char *s);
char *mem_strndup(const char *s, size_t n);

/* printf into new memory. */
char *mem_printf(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* `what` names the purpose: "memory for the vocabulary of x.model". */
int mem_try(size_t n, size_t size, const char *what, void **ret, struct err *e);

#endif

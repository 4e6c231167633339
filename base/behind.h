/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_BEHIND_H
#define BASE_BEHIND_H

/*
 * Bytes written at the end of a file by threads of its own while their owner goes on. Pieces of
 * 2 MiB go past the page cache where the file's system can (O_DIRECT), which takes a small part of
 * the processor time and leaves the cache to what is read; what lies before the first such place,
 * or is waited for, goes through it. The file is longer than what was added until that is waited
 * for, where the disk has room for that. One thread at a time adds.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct behind;

/* The descriptor stays the caller's, and all writing is left to this; the first byte goes to place
 * `at`. ERR_RESOURCE when there are no threads. */
int behind_create(int fd, uint64_t at, struct behind **ret, struct err *e);

/* Memory for what comes next, *ret_n bytes, not 0. Waits while many are not yet written. */
void *behind_room(struct behind *w, size_t *ret_n);

/* The first n bytes of that memory are the next ones. 0, or the errno of a failure. */
int behind_took(struct behind *w, size_t n);

/* All that was added is written: 0, or the errno of a failure; then anything may be missing behind
 * what was waited for before. */
int behind_wait(struct behind *w);

void behind_destroy(struct behind *w); /* takes NULL; waits */

/*
 * All n bytes: 0 or errno. `told` counts bytes; at every few MiB the disk is told to begin, so that
 * the sync at the end of a large file finds little left to do (how it went, that sync tells).
 */
int write_told(int fd, const void *p, size_t n, uint64_t *told);

#endif

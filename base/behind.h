/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_BEHIND_H
#define BASE_BEHIND_H

/*
 * Buffers written at the end of a file, one behind the other, by a thread of its own while their
 * owner fills the next. One thread at a time gives.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

struct behind;

/* The descriptor stays the caller's. ERR_RESOURCE when there is no thread. */
int behind_create(int fd, struct behind **ret, struct err *e);

/* Takes the bytes with their memory; *b is empty then. Waits while many are not yet written. */
void behind_give(struct behind *w, struct buf *b);

/* All that was given is written: 0, or the errno of the first failure, behind which nothing is. */
int behind_wait(struct behind *w);

void behind_destroy(struct behind *w); /* takes NULL; waits */

/*
 * All n bytes: 0 or errno. `told` counts bytes; at every few MiB the disk is told to begin, so that
 * the sync at the end of a large file finds little left to do (how it went, that sync tells).
 */
int write_told(int fd, const void *p, size_t n, uint64_t *told);

#endif

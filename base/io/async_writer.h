/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_IO_ASYNC_WRITER_H
#define BASE_IO_ASYNC_WRITER_H

/*
 * Bytes on their way to the end of a file. They wait in pieces of memory, where places are given
 * out ahead; any threads fill those, and who takes them, in the same order, says that they are
 * there. A piece whose bytes are all taken is written: at once, or by threads of its own while
 * their owner goes on (async_threads). Then pieces of 2 MiB go past the page cache where the
 * file's system can (O_DIRECT), which takes a small part of the processor time and leaves the cache
 * to what is read; what lies before the first such place, or is waited for, goes through it. The
 * file is longer than what was taken until that is waited for, where the disk has room for that.
 *
 * One thread at a time gives places, and one at a time does all else; they may be two.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/core/err.h"

struct async_writer;

/* The descriptor stays the caller's, and all writing is left to this; the first byte goes to place
 * `at`. `piece`: bytes. */
struct async_writer *async_create(int fd, uint64_t at, size_t piece);

/*
 * When all that has a place is taken, these too: what was taken is written, pieces have another
 * size from now on, or threads write. 0 or errno.
 */
int async_pieces(struct async_writer *w, size_t piece);
int async_threads(struct async_writer *w);

/* Likewise: pieces are given back to the system until there is more. Nothing is written. */
void async_rest(struct async_writer *w);

/*
 * The place of the next *n bytes, or of the first of them: *n becomes how many, and is not 0 if it
 * was not. Waits for the threads while they have much to write, and never for what is to be taken.
 */
void *async_place(struct async_writer *w, size_t *n);

/* The next n bytes that have places are there. 0, or the errno of a failure. */
int async_took(struct async_writer *w, size_t n);

/* All that was taken is written: 0, or the errno of a failure; then anything may be missing behind
 * what was waited for before. */
int async_wait(struct async_writer *w);

/* When all that has a place is taken: n bytes more. 0, or the errno of a failure. */
int async_write(struct async_writer *w, const void *p, size_t n);

/* Takes NULL. What was not waited for may be missing. */
void async_destroy(struct async_writer *w);

#endif

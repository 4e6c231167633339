/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_IO_ASYNC_WRITER_H
#define BASE_IO_ASYNC_WRITER_H

/*
 * Appends to a file asynchronously. Bytes are buffered in pieces. async_place reserves the
 * next bytes of the file, any thread fills them, and async_took, called in the same order, reports
 * that they are filled. A full piece is written: at once, or by threads of the writer's own
 * (async_threads). Those write pieces of 2 MiB with O_DIRECT where the file system allows it, which
 * takes little processor time and leaves the page cache to readers; bytes before the first aligned
 * position, and those flushed by async_wait, go through the page cache. Until async_wait the file
 * may be longer than what was written, as space is allocated ahead where enough is free.
 *
 * One thread at a time may reserve, and one at a time may call the rest; the two may differ.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/core/err.h"

struct async_writer;

/* The caller keeps the descriptor but must not write to it; the first byte goes to offset `at`.
 * `piece`: bytes of a buffer. */
struct async_writer *async_create(int fd, uint64_t at, size_t piece);

/*
 * With nothing reserved that is not yet filled: write what is buffered, then use pieces of another
 * size, or threads, from now on. 0 or errno.
 */
int async_pieces(struct async_writer *w, size_t piece);
int async_threads(struct async_writer *w);

/* Likewise: frees the buffers until they are needed again. Nothing is written. */
void async_rest(struct async_writer *w);

/*
 * Reserves the next *n bytes, or the first of them: *n becomes how many, not 0 unless it was. Waits
 * while the threads have too much to write, never for bytes that are still to be filled.
 */
void *async_place(struct async_writer *w, size_t *n);

/* The next n reserved bytes are filled. 0, or the errno of a failed write. */
int async_took(struct async_writer *w, size_t n);

/* Waits until all that was filled is written: 0, or the errno of a failed write; then anything
 * after the last successful wait may be missing. */
int async_wait(struct async_writer *w);

/* With nothing reserved that is not yet filled: appends n bytes. 0, or the errno of a failed write.
 */
int async_write(struct async_writer *w, const void *p, size_t n);

/* Accepts NULL. Bytes not waited for may be missing from the file. */
void async_destroy(struct async_writer *w);

#endif

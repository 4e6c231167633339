/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_CORE_BUF_H
#define BASE_CORE_BUF_H

/*
 * A growable run of bytes. A zeroed struct is a valid empty buffer. `data` is owned by the buffer
 * and moves when it grows. Growing never fails (see mem.h).
 */

#include <stddef.h>

struct buf {
    char *data;
    size_t len;
    size_t cap;
};

/* Ensures space for n more bytes after len; returns its address. len is unchanged. */
char *buf_reserve(struct buf *b, size_t n);
void buf_add(struct buf *b, const void *p, size_t n);
void buf_addc(struct buf *b, char c);
void buf_adds(struct buf *b, const char *s);
void buf_addf(struct buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Appends a NUL (not counted in len); returns data. */
char *buf_str(struct buf *b);

/* len = 0; memory is kept. */
void buf_reset(struct buf *b);
void buf_finish(struct buf *b);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_IO_SPILL_H
#define BASE_IO_SPILL_H

/*
 * Bytes too many for memory: an unnamed file in the folder of the outputs, which is gone with the
 * process, or a named one, which stays. Append only; can be read anywhere once flushed.
 * One thread at a time.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/core/buf.h"
#include "base/core/err.h"

struct spill {
    int fd;         /* -1: closed */
    char *beside;   /* the output in whose folder it lies, for messages; owned */
    struct buf buf; /* not yet written */
    uint64_t size;  /* bytes added */
};

/* On failure it is closed. */
int spill_open(struct spill *s, const char *beside, struct err *e);

/*
 * The file `path`, of which the first `size` bytes are kept; if `size` is 0 it is created; ERR_DATA
 * if it is shorter. spill_close does not remove it.
 */
int spill_open_at(struct spill *s, const char *path, uint64_t size, const char *beside,
                  struct err *e);
int spill_add(struct spill *s, const void *p, size_t n, struct err *e);
int spill_flush(struct spill *s, struct err *e);
int spill_sync(struct spill *s, struct err *e); /* flushed, and on the disk */

/* Empty again. */
int spill_clear(struct spill *s, struct err *e);

/* Bytes [at, at + n) of a flushed spill. */
int spill_read(const struct spill *s, uint64_t at, void *p, size_t n, struct err *e);

/* Accepts a closed one, but not a zeroed one. */
void spill_close(struct spill *s);

#endif

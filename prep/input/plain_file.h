/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PREP_INPUT_PLAIN_FILE_H
#define PREP_INPUT_PLAIN_FILE_H

/*
 * Lines of a file that lies on the disk as it is. Who cuts it into blocks looks only at the places
 * where they end; who works on a block reads it, so that many may do so at a time and find it in
 * their own caches; who follows makes the file's digest of what was read.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/core/buf.h"
#include "base/core/err.h"
#include "base/core/hash.h"

/* The open file, shared by all who have a block of it. */
struct plain_file;

void plain_file_hold(struct plain_file *f);
void plain_file_drop(struct plain_file *f); /* takes NULL; the last one closes it. Any thread */

/* Bytes [at, at + n), and `padding` readable ones behind. ERR_IO if they are not there any more. */
int plain_file_read(const struct plain_file *f, uint64_t at, size_t n, size_t padding,
                    struct buf *ret, struct err *e);

/*
 * The digest goes on to the byte `end`: of the n bytes before it if they are at hand, reading what
 * else is missing. One thread at a time.
 */
int plain_file_hash(struct plain_file *f, const void *p, size_t n, uint64_t end, struct err *e);

/* Of all the file, when plain_file_hash came to its end; else "". */
void plain_file_digest(const struct plain_file *f, char ret[XXH_TEXT]);

/* Who cuts. One thread at a time. */
struct plain {
    struct plain_file *file; /* NULL: closed */
    char sep;                /* what ends a line */
    bool json;               /* white space at the end of the file is no line */
    uint64_t at;             /* where the next block begins */
    uint64_t end, size;      /* lines that begin at `end` or later are left out; all bytes */
    uint64_t asked;          /* the disk is asked for what lies from here on, later */
};

enum plain_kind { PLAIN_END, PLAIN_LINES, PLAIN_LONG };

/* A byte order mark is passed over. */
int plain_open(struct plain *p, const char *path, char sep, bool json, struct err *e);
void plain_close(struct plain *p);

/* Before the first block: only lines that begin in bytes [begin, stop); 0: no such bound. */
int plain_range(struct plain *p, uint64_t begin, uint64_t stop, struct err *e);

/* Goes on at a byte where a block ended. ERR_DATA if the file is shorter. */
int plain_seek(struct plain *p, uint64_t at, struct err *e);

/*
 * PLAIN_LINES: *ret_n bytes from p->at on are whole lines, about LINES_BLOCK of them; *ret_last:
 * they go up to the end of the file, and white space at its end always comes with such a block.
 * PLAIN_LONG: the line there has more than LINES_LONG bytes. Moves on only behind PLAIN_LINES.
 */
int plain_next(struct plain *p, enum plain_kind *ret, uint64_t *ret_n, bool *ret_last,
               struct err *e);

#endif

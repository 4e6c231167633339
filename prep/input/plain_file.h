/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PREP_INPUT_PLAIN_FILE_H
#define PREP_INPUT_PLAIN_FILE_H

/*
 * Lines of an uncompressed file. The thread that splits it into blocks reads only where they end;
 * the worker of a block reads all of it, so that several read in parallel and into their own
 * caches; the follow step hashes what was read.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/core/buf.h"
#include "base/core/err.h"
#include "base/core/hash.h"

/* The open file, shared by all its blocks. */
struct plain_file;

void plain_file_hold(struct plain_file *f);
void plain_file_drop(struct plain_file *f); /* accepts NULL; the last one closes it. Any thread */

/* Bytes [at, at + n), with `padding` readable bytes after them. ERR_IO if the file shrank. */
int plain_file_read(const struct plain_file *f, uint64_t at, size_t n, size_t padding,
                    struct buf *ret, struct err *e);

/*
 * Extends the digest to byte `end`. p has the n bytes before it (n may be 0); earlier ones that are
 * missing are read. One thread at a time.
 */
int plain_file_hash(struct plain_file *f, const void *p, size_t n, uint64_t end, struct err *e);

/* The digest of the whole file once plain_file_hash reached its end, else "". */
void plain_file_digest(const struct plain_file *f, char ret[XXH_TEXT]);

/* The splitter. One thread at a time. */
struct plain {
    struct plain_file *file; /* NULL: closed */
    char sep;                /* the separator */
    bool json;               /* white space at the end of the file is not a line */
    uint64_t at;             /* where the next block begins */
    uint64_t end, size;      /* lines that begin at `end` or later are skipped; file size */
    uint64_t asked;          /* read-ahead was started up to here */
    size_t growth;           /* for lines_share; set after plain_open */
};

enum plain_kind { PLAIN_END, PLAIN_LINES, PLAIN_LONG };

/* Skips a byte order mark. */
int plain_open(struct plain *p, const char *path, char sep, bool json, struct err *e);
void plain_close(struct plain *p);

/* Before the first block: only lines that begin in bytes [begin, stop); 0: no such bound. */
int plain_range(struct plain *p, uint64_t begin, uint64_t stop, struct err *e);

/* Continues at the end of a block. ERR_DATA if the file is shorter. */
int plain_seek(struct plain *p, uint64_t at, struct err *e);

/*
 * PLAIN_LINES: *ret_n bytes from p->at on are whole lines, about LINES_BLOCK bytes; *ret_last: they
 * reach the end of the file; white space at its end always comes with such a block. PLAIN_LONG: the
 * line there has more than LINES_LONG bytes. Advances only after PLAIN_LINES.
 */
int plain_next(struct plain *p, enum plain_kind *ret, uint64_t *ret_n, bool *ret_last,
               struct err *e);

#endif

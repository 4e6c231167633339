/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_STREAM_PARQUET_ROWS_H
#define TOK_STREAM_PARQUET_ROWS_H

/* The texts in some columns of a Parquet file, for tok/stream/documents.h: validated as UTF-8,
 * whole or in parts. One thread at a time. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/core/buf.h"
#include "base/core/err.h"
#include "base/parquet/parquet.h"

struct docs_rows {
    struct parquet *file; /* NULL: closed */
    /* private */
    const char *const *key;
    uint64_t *length;   /* of the row's texts */
    size_t k;           /* the current column */
    uint64_t left;      /* bytes of its text still to come */
    size_t taken, held; /* bytes of `part` returned last; bytes of a character split by that */
    struct buf part;
};

/* Temporary files for large dictionaries are created next to `beside`. The keys must outlive the
 * rows. On failure nothing is open. */
int docs_rows_open(struct docs_rows *r, const char *path, const char *const *key, size_t nkeys,
                   const char *beside, struct err *e);
void docs_rows_close(struct docs_rows *r);

/* The next row, whose texts must be taken in the order of the keys; false: none. */
int docs_rows_next(struct docs_rows *r, bool *ret_more, struct err *e);

/* Begins column k of the row: returns the bytes of its text, or PARQUET_NULL. */
uint64_t docs_rows_begin(struct docs_rows *r, size_t k);

/*
 * Up to n more bytes of that text, split between characters; *ret is never NULL and valid until the
 * next call. *ret_last: it ends here. ERR_DATA for invalid UTF-8.
 */
int docs_rows_take(struct docs_rows *r, uint64_t most, const char **ret, size_t *ret_n,
                   bool *ret_last, struct err *e);

uint64_t docs_rows_consumed(const struct docs_rows *r); /* about this many bytes of the file */

#endif

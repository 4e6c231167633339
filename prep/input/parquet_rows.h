/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PREP_INPUT_PARQUET_ROWS_H
#define PREP_INPUT_PARQUET_ROWS_H

/*
 * Rows of a Parquet file as items: blocks of texts with their lengths, and rows too long for a
 * block as long records. One thread at a time.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/core/err.h"
#include "prep/input/block.h"
#include "base/parquet/parquet.h"

struct rows {
    struct parquet *file; /* NULL: closed */
    const struct long_plan *plan;
    uint64_t *n; /* lengths of the current row */
    bool held;   /* it was begun and goes into the next item */
};

/* `plan` must outlive the rows. On failure nothing is open. */
int rows_open(struct rows *r, const char *path, const struct long_plan *plan, struct err *e);
void rows_close(struct rows *r);

/* An ITEM_ROWS or ITEM_LONG; *ret_any false at the end. */
int rows_fill(struct rows *r, struct item *it, bool *ret_any, struct err *e);

/* Rows up to the end of the last item. */
uint64_t rows_at(const struct rows *r);

/* The row {"key": "text", ...} as a line of JSON without a newline, for the file of bad records;
 * with `ids`, values are int64_t instead of texts. */
void rows_json(struct buf *to, const char *const *key, size_t nkeys, bool ids, const char *text,
               const uint64_t *n);

#endif

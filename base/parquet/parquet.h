/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_PARQUET_PARQUET_H
#define BASE_PARQUET_PARQUET_H

/*
 * Rows of a Parquet file, as the texts or lists of ids of a few of its columns (paths as in
 * base/format/keys.h; leaves of type BYTE_ARRAY that are not repeated, nullable or not, also inside
 * groups). Supported: data pages of versions 1 and 2; values plain, by dictionary,
 * DELTA_LENGTH_BYTE_ARRAY and DELTA_BYTE_ARRAY; uncompressed, snappy, gzip and zstd. Page checksums
 * are verified. Memory is bounded, see column.h. One thread at a time.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/core/err.h"

struct parquet;

/* ERR_DATA if it is not a Parquet file, lacks a column, or has a wanted one that is not text. With
 * `ids` they are lists of integers of 32 or 64 bits, and a row's "text" is their int64_t. */
int parquet_open(const char *path, const char *const *key, size_t nkeys, bool ids,
                 const char *beside, struct parquet **ret, struct err *e);
void parquet_close(struct parquet *p); /* accepts NULL */

uint64_t parquet_rows(const struct parquet *p);
uint64_t parquet_row(const struct parquet *p);  /* rows begun so far */
uint64_t parquet_size(const struct parquet *p); /* bytes of the file */

/* Skips rows up to number `row`. */
int parquet_seek(struct parquet *p, uint64_t row, struct err *e);

/*
 * The next row: the length of its text in each column, PARQUET_NULL for a null. All texts must be
 * taken before the next row. *ret_more false: no more rows.
 */
#define PARQUET_NULL UINT64_MAX
int parquet_next(struct parquet *p, uint64_t *ret_n, bool *ret_more, struct err *e);

/* The next n bytes of the row's text in column `key`. */
int parquet_take(struct parquet *p, size_t key, void *to, size_t n, struct err *e);

#endif

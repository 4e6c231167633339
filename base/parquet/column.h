/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_PARQUET_COLUMN_H
#define BASE_PARQUET_COLUMN_H

/*
 * One column of strings or numbers of a Parquet file, value by value: its pages in order, nulls by
 * their definition levels, values plain, by dictionary, or in the two delta encodings.
 *
 * Memory: the stream of a page; levels, indices and lengths of a page (at most COLUMN_PARTS bytes
 * of each); a dictionary, above COLUMN_DICTIONARY bytes in an unnamed file; with DELTA_BYTE_ARRAY
 * the last value. One thread at a time.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/core/buf.h"
#include "base/core/err.h"
#include "base/io/spill.h"
#include "base/parquet/meta.h"
#include "base/parquet/page.h"
#include "base/parquet/runs.h"

enum {
    COLUMN_PARTS = 64 << 20,
    COLUMN_DICTIONARY = 16 << 20,
    COLUMN_WORDS = 4 << 20,    /* values of a dictionary */
    COLUMN_PREFIXED = 64 << 20 /* bytes of a value in DELTA_BYTE_ARRAY */
};

struct pq_column {
    const struct pq_file *f;
    const char *beside;      /* a large dictionary's file lies in its folder */
    unsigned max_def, width; /* as in struct pq_leaf */
    int codec;
    uint64_t at, end; /* the next page's header; the end of the column's bytes */
    uint64_t page;    /* the current page */
    uint64_t left;    /* values left in it, nulls too */
    int encoding;
    struct pq_stream in;
    bool open; /* the page's contents are being read */
    struct buf levels, repeats, indices;
    struct pq_runs def, rep, index;
    struct buf words; /* the dictionary */
    struct spill far; /* if it is large */
    uint64_t *word;   /* where each begins, and the end */
    size_t nwords, words_cap;
    uint32_t *length, *prefix; /* in the delta encodings */
    size_t nlengths, nprefixes, next;
    struct buf last;
    uint64_t value, value_at; /* bytes left of the current value, and where they are */
};

/* A zeroed column with far.fd = -1 is closed. */
void pq_column_init(struct pq_column *c, const struct pq_file *f, const char *beside,
                    const struct pq_leaf *leaf);
void pq_column_close(struct pq_column *c);

/* Begins with the column's part in a row group. */
void pq_column_begin(struct pq_column *c, const struct pq_chunk *chunk);

/* The next value; *ret_there false: a null. ERR_DATA if there are no more. */
int pq_column_next(struct pq_column *c, bool *ret_there, uint64_t *ret_n, struct err *e);

/* The next number of a column of lists. */
struct pq_number {
    unsigned rep, def; /* levels; rep 0 begins a row */
    int64_t value;     /* INT64_MIN if there is none */
};
int pq_column_number(struct pq_column *c, struct pq_number *ret, struct err *e);
bool pq_column_done(const struct pq_column *c); /* no more in this row group */

/* The next n of the value's bytes; all must be taken before the next value. */
int pq_column_take(struct pq_column *c, void *p, size_t n, struct err *e);

/* After the row group's last value: checks that nothing follows. */
int pq_column_end(struct pq_column *c, struct err *e);

#endif

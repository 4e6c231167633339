/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_PARQUET_IDS_H
#define BASE_PARQUET_IDS_H

/*
 * Rows of a column of lists of numbers: the numbers of one row at a time, as int64_t. Memory: 4
 * MiB; a longer row goes into an unnamed file. One thread at a time.
 */

#include "base/parquet/column.h"

enum { IDS_MOST = 1 << 24 /* of a row */ };

struct pq_ids {
    struct pq_column *c;
    unsigned list_def; /* the level of an empty list */
    bool held;         /* the first number of the next row was read: */
    struct pq_number number;
    struct buf row;
    struct spill far; /* of a row that is longer */
    bool is_far;
    uint64_t taken; /* bytes taken of the current row */
};

void pq_ids_init(struct pq_ids *r, struct pq_column *c, const struct pq_leaf *leaf);
void pq_ids_close(struct pq_ids *r); /* takes a zeroed one whose far.fd is -1 */

/* The column's part in a row group begins. */
void pq_ids_begin(struct pq_ids *r);

/*
 * The next row: the bytes of its numbers; *ret_there false: a null list. A null number is
 * INT64_MIN. ERR_DATA, also for more than IDS_MOST numbers.
 */
int pq_ids_next(struct pq_ids *r, bool *ret_there, uint64_t *ret_n, struct err *e);

/* The next n bytes of the row. */
int pq_ids_take(struct pq_ids *r, void *p, size_t n, struct err *e);

/* After the group's last row: ERR_DATA if another one has begun. */
int pq_ids_end(const struct pq_ids *r, struct err *e);

#endif

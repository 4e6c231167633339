/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CONVERT_COPY_COPY_ROWS_H
#define CONVERT_COPY_COPY_ROWS_H

/*
 * The rows of an embedding after its vocabulary has changed: maps that `tok extend`, `merge` and
 * `prune` write (PATH.rows, tok/FORMAT.md), and tensors seen through them.
 */

#include "convert/copy/copy.h"

struct copy_rows {
    int64_t was, is; /* rows before and after; padding of the former is not counted */
    int64_t *old;    /* [is] the old row, -1: a new one */
    size_t *start;   /* [is + 1] the old rows of which a new one is the mean, in `from` */
    int64_t *from;   /* in no row: the mean of all old ones */
};

/* ERR_DATA names file and line for what no map is. */
int copy_rows_parse(struct copy_rows *ret, const char *name, const char *text, size_t n,
                    struct err *e);
int copy_rows_open(struct copy_rows *ret, const char *path, struct err *e);
void copy_rows_finish(struct copy_rows *r);

/* The new row of an old one, -1: it has none. */
int64_t copy_rows_find(const struct copy_rows *r, int64_t old);

/* A tensor [rows->is, columns], seen through the map. */
struct copy_mapped {
    const struct copy_rows *rows;
    const struct copy_source *of;
    const char *name; /* of the file with the map */
    double *mean;     /* [columns] of all old rows; NULL: no row needs it */
};

/*
 * A source over another one with at least rows->was rows; further ones are padding. Rows that stay
 * have their bytes; means are calculated in double and rounded to float, then to the tensor's type.
 * Where a row needs the mean of all, the tensor is read once here. ERR_DATA for another number of
 * rows. All must live on; free m->mean after the run.
 */
int copy_from_rows(const struct copy_rows *rows, const char *name, const struct copy_source *of,
                   struct copy_mapped *m, struct copy_source *ret, struct err *e);

#endif

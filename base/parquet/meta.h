/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_PARQUET_META_H
#define BASE_PARQUET_META_H

/*
 * The footer of a Parquet file: its columns and where their chunks lie (specification:
 * apache/parquet-format, parquet.thrift). Everything is checked against the file's size before it
 * is used; memory is bounded by the footer's own bytes.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/core/err.h"

enum pq_codec { PQ_PLAIN = 0, PQ_SNAPPY = 1, PQ_GZIP = 2, PQ_ZSTD = 6 };

/* One column's bytes in one row group. */
struct pq_chunk {
    uint64_t at, size;
    int codec; /* enum pq_codec */
};

/* A wanted column: a leaf of strings without repetition, or of the numbers of a list. */
struct pq_leaf {
    unsigned max_def;  /* levels that may be null or repeated; at most 32 */
    unsigned width;    /* bytes of a number; 0: strings */
    unsigned list_def; /* definition level of an empty list */
    uint64_t number;   /* among all leaves */
    int wanted;        /* found in the schema */
};

struct pq_meta {
    size_t ngroups, nkeys;
    uint64_t *rows;         /* of each row group */
    struct pq_chunk *chunk; /* [group * nkeys + key] */
    struct pq_leaf *leaf;   /* one for each key */
    uint64_t total;         /* rows in all */
};

struct pq_footer {
    const char *name; /* of the file */
    const void *p;
    size_t n;
    uint64_t before; /* bytes before it */
};

/*
 * Keys are paths as in base/format/keys.h; with `ids` they name lists of integers, not strings.
 * ERR_DATA, with the file's name in front; on failure there is nothing to finish.
 */
int pq_meta_parse(struct pq_meta *m, const struct pq_footer *footer, const char *const *key,
                  size_t nkeys, bool ids, struct err *e);
void pq_meta_finish(struct pq_meta *m);

#endif

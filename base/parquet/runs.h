/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_PARQUET_RUNS_H
#define BASE_PARQUET_RUNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/core/buf.h"

/* Runs and packed groups of numbers (RLE / bit-packing hybrid). */
struct pq_runs {
    const unsigned char *p, *end;
    unsigned bits;
    uint64_t run, packed; /* left of the current run, of the current packed group */
    uint64_t bit;         /* of the packed values */
    uint32_t value;       /* of the run */
};

/* Numbers of `bits` (at most 32) from byte `from` of `b`, which must outlive `r`. */
void pq_runs_open(struct pq_runs *r, const struct buf *b, size_t from, unsigned bits);

/* false at the end. */
bool pq_runs_next(struct pq_runs *r, uint32_t *ret);

#endif

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
    uint64_t run, packed; /* left of the run at hand, of the packed values at hand */
    uint64_t bit;         /* of the packed values */
    uint32_t value;       /* of the run */
};

/* Numbers of `bits` (at most 32) from byte `from` of `b` on, which must live as long. */
void pq_runs_open(struct pq_runs *r, const struct buf *b, size_t from, unsigned bits);

/* false: there is none. */
bool pq_runs_next(struct pq_runs *r, uint32_t *ret);

#endif

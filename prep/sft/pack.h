/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PREP_SFT_PACK_H
#define PREP_SFT_PACK_H

/*
 * Examples into sequences of bounded length: best fit decreasing, each example into the sequence
 * with the least sufficient space (the last opened on a tie). O(n log n), a function of the lengths
 * only.
 *
 */

#include <stddef.h>
#include <stdint.h>

struct pack {
    uint32_t *order; /* [n] examples, grouped by sequence, in input order within it */
    size_t *end;     /* [nseq] where each sequence ends in `order` */
    size_t nseq;     /* sequences, in the order of their first examples */
};

/* Lengths are 1 .. room. */
void pack_best_fit(const uint32_t *length, size_t n, uint32_t room, struct pack *ret);
void pack_finish(struct pack *p);

#endif

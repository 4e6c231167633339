/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DATASET_INDEX_MT19937_H
#define DATASET_INDEX_MT19937_H

/*
 * numpy's legacy RandomState as far as Megatron's index maps need it: the Mersenne Twister
 * MT19937 (Matsumoto and Nishimura 1998) with scalar seeding, and shuffle with masked rejection.
 * Bit-equal to numpy.random.RandomState(seed). Not for anything else: our own random numbers are in
 * base/core/rng.h.
 *
 * State belongs to the caller; one thread at a time.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MT_WORDS = 624 };

struct mt19937 {
    uint32_t key[MT_WORDS];
    uint32_t word[MT_WORDS]; /* tempered; the next one is at pos */
    uint32_t pos;
};

void mt_seed(struct mt19937 *m, uint32_t seed);
uint32_t mt_u32(struct mt19937 *m);

/* Uniform in [0, max]; draws nothing for 0, 64-bit words (high half first) above 2^32 - 1. */
uint64_t mt_interval(struct mt19937 *m, uint64_t max);

/* RandomState.shuffle of n elements of 4 or 8 bytes. */
void mt_shuffle32(struct mt19937 *m, uint32_t *a, uint64_t n);
void mt_shuffle64(struct mt19937 *m, uint64_t *a, uint64_t n);

/* Draws as a shuffle of n elements does and discards the words, in a tenth of the time. */
void mt_skip(struct mt19937 *m, uint64_t n);

#endif

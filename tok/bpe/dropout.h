/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_BPE_DROPOUT_H
#define TOK_BPE_DROPOUT_H

/*
 * Byte-pair merging with dropout: merges are left out at random (Provilkov et al., "BPE-Dropout").
 * Possible merges are taken in the order of bpe.h, and each is left out with the given probability.
 * A merge that was left out
 *
 *   is possible again once another was taken (`again`: tokenizers 0.23.3), or
 *   stays left out (SentencePiece 0.2.2).
 *
 * Immutable and shared by threads. A random number is a function of the key and of the count of
 * numbers drawn before.
 */

#include <stdbool.h>
#include <stdint.h>

#include "tok/bpe/bpe.h"

struct bpe_drop;

/* If a pair occurs twice, the later entry counts. */
struct bpe_drop *bpe_drop_create(const struct bpe_pair *pair, size_t n, double probability,
                                 bool again);
void bpe_drop_destroy(struct bpe_drop *d);

struct bpe_draws {
    uint64_t key, n; /* n: numbers drawn so far */
};

/* As bpe_merge_seen; `seen` may be NULL. */
size_t bpe_drop_merge(const struct bpe_drop *d, struct bpe_draws *draws, uint32_t *sym, size_t n,
                      bpe_seen *seen, void *arg);

#endif

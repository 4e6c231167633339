/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_BPE_DROPOUT_H
#define TOK_BPE_DROPOUT_H

/*
 * Byte pairs with dropout: merges are left out at random (Provilkov et al., "BPE-Dropout"). Of the
 * merges that are possible the first in order is looked at, as in bpe.h, and passed over with the
 * probability given. What was passed over
 *
 *   comes back as soon as another is taken (`again`: tokenizers 0.23.3), or
 *   is never looked at again (SentencePiece 0.2.2).
 *
 * Immutable and shared by threads. A random number is a function of the key and of how many were
 * taken before.
 */

#include <stdbool.h>
#include <stdint.h>

#include "tok/bpe/bpe.h"

struct bpe_drop;

/* A pair that is there twice counts as its later entry says. */
struct bpe_drop *bpe_drop_create(const struct bpe_pair *pair, size_t n, double probability,
                                 bool again);
void bpe_drop_destroy(struct bpe_drop *d);

struct bpe_draws {
    uint64_t key, n; /* how many were taken */
};

/* As bpe_merge_seen; `seen` may be NULL. */
size_t bpe_drop_merge(const struct bpe_drop *d, struct bpe_draws *draws, uint32_t *sym, size_t n,
                      bpe_seen *seen, void *arg);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DATASET_PACKED_PACKED_H
#define DATASET_PACKED_PACKED_H

/*
 * A packed set: a shard whose sequences are concatenated examples of up to seq_length tokens, and
 * PREFIX.pack beside it, which says where each example ends in its sequence and which tokens
 * contribute to the loss. Bytes: FORMAT.md.
 *
 * packed_open reads the header, both ends of each array, and all of the .idx for its digest;
 * everything else is checked on access, so that no file can cause a read out of bounds;
 * packed_check checks everything. Malformed contents are ERR_DATA; a .pack of another .idx is
 * ERR_INTEGRITY.
 *
 * Memory of `struct packed` is the caller's. An open one is immutable: any number of threads may
 * read it.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/core/err.h"
#include "base/io/map.h"
#include "dataset/shard/shard.h"

enum { PACKED_HEAD = 72, PACKED_VERSION = 1 };

struct packed {
    struct shard shard;
    struct map map;
    uint32_t seq_length; /* most tokens of a sequence */
    uint64_t nexamples, ntokens;
    const unsigned char *first; /* u64[nseq + 1], first example of each sequence */
    const unsigned char *end;   /* u32[nexamples], in its sequence */
    const unsigned char *learn; /* a bit per token */
};

/* Is there a PREFIX.pack? */
bool packed_exists(const char *prefix);

int packed_open(struct packed *p, const char *prefix, struct err *e);

/* Whether any token contributes to the loss. */
bool packed_learns(const struct packed *p);

/* Accepts a zeroed or closed one. */
void packed_close(struct packed *p);

/* A sequence in the caller's arrays of seq_length each; end may be NULL, learn too. */
struct packed_sequence {
    int32_t *token;
    unsigned char *learn; /* 1: contributes to the loss */
    uint32_t *end;        /* where each example ends, the last one at n */
    uint32_t n, nends;
};

/* Sequence k < shard.nseq. Ids must be below `limit` (SHARD_ANY_ID: any). */
int packed_sequence(const struct packed *p, uint64_t k, int64_t limit, struct packed_sequence *ret,
                    struct err *e);

struct packed_stats {
    struct shard_stats shard;
    uint64_t learnt; /* tokens */
    uint64_t barren; /* examples in which nothing is learnt */
};

/* Checks everything: shard_check, every boundary, the digest, bits after the last token. */
int packed_check(const struct packed *p, const struct shard_check *c, struct packed_stats *ret,
                 struct err *e);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DATASET_SAMPLE_FEED_H
#define DATASET_SAMPLE_FEED_H

/*
 * What batches are made of: numbered samples of seq_length + 1 ids, from any source. A feed is a
 * view; what it refers to must outlive it. Any number of threads may use it.
 */

#include <stdint.h>

#include "base/core/err.h"

/*
 * A row made of examples, in the caller's arrays of seq_length each: tokens, labels, loss mask,
 * positions within the examples, and where the examples end, the last one at seq_length.
 */
struct feed_row {
    int32_t *tokens, *labels;
    float *loss_mask;
    int32_t *position;
    int32_t *ends;
    uint32_t nends;
    uint32_t used; /* tokens before the padding, which is the last segment if there is any; as it
                      comes in, all of them */
};

/*
 * Prefetch steps of a sample, each fetching what the next one reads: its row of the sample map, its
 * documents' numbers, their entries in the .idx, their tokens. FEED_DISK starts reading the tokens
 * from disk, running all steps of memory at once.
 */
enum feed_step { FEED_ROW, FEED_DOC, FEED_ENTRY, FEED_TOKENS, FEED_DISK, FEED_STEPS };

struct feed {
    const void *self;
    /* Sample k < count into ret[seq_length + 1]. */
    int (*sample)(const void *self, uint64_t k, int32_t *ret, struct err *e);
    /* Instead of `sample`, if samples are made of examples: row k < count. */
    int (*row)(const void *self, uint64_t k, struct feed_row *ret, struct err *e);
    /* A hint that sample k < count is needed soon. NULL: not supported. */
    void (*ahead)(const void *self, uint64_t k, enum feed_step step);
    uint64_t count;
    uint32_t seq_length;
    int32_t pad;      /* id of padding, which is masked; -1: none */
    const char *name; /* for messages: prefix and part */
    const char *part;
};

#endif

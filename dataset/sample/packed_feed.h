/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DATASET_SAMPLE_PACKED_FEED_H
#define DATASET_SAMPLE_PACKED_FEED_H

/*
 * Packed sets as the data of a run: one whose sequences are divided by `split` into the three
 * parts, or one per part. Each part has its own order, reshuffled every epoch (epochs.h).
 *
 * A sample is one sequence padded to seq_length. Its examples do not attend to each other and have
 * positions from 0; the padding is a segment of its own with id 0. The loss covers the labels
 * marked as learnt, never an example's first token.
 *
 * Open data is immutable; any number of threads may use its feeds.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/core/err.h"
#include "dataset/sample/feed.h"
#include "dataset/packed/packed.h"
#include "dataset/index/split.h"

struct packed_part {
    const struct packed *set;
    enum part part;
    uint64_t first, n; /* sequences */
    uint64_t samples;  /* requested */
    uint32_t seq_length, seed;
    int64_t limit;
};

struct packed_data {
    struct packed set[PARTS]; /* a shared one is the first */
    struct packed_part part[PARTS];
    bool empty[PARTS]; /* wanted, but its share of the split has no sequence */
    const char *split; /* the config's; NULL: none */
};

struct packed_config {
    const char *shared, *split; /* one for all parts, */
    const char *own[PARTS];     /* or one per part; NULL: none */
    uint32_t seq_length, seed;
    uint64_t samples[PARTS]; /* 0: skip the part */
    int64_t limit;           /* ids must be below */
};

/* `d` must not move until packed_data_close. ERR_USAGE if sequences are longer than
 * seq_length. */
int packed_data_open(struct packed_data *d, const struct packed_config *c, struct err *e);
void packed_data_close(struct packed_data *d); /* accepts a zeroed or closed one */

/* ERR_USAGE with the reason if part p, which the run needs, has no sequences. */
int packed_need(const struct packed_data *d, enum part p, struct err *e);

/* The sequence at place k < samples of the part's order. */
uint64_t packed_order(const struct packed_part *p, uint64_t k);

struct feed packed_feed(const struct packed_data *d, enum part p);

#endif

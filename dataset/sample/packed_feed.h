/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DATASET_SAMPLE_PACKED_FEED_H
#define DATASET_SAMPLE_PACKED_FEED_H

/*
 * Packed sets as data of a run: one whose sequences are cut by `split` into the three parts, or one
 * for each part. Each part has an order of its own that is shuffled anew in every epoch and is a
 * function of (seed, part, epoch, place), so that nothing is built or kept: a run's state is its
 * count of samples.
 *
 * A sample is one sequence filled up to seq_length. Examples in it do not see each other and have
 * positions from 0; what fills it up is a stretch of its own with id 0. The loss is that of labels
 * which are to be learnt, never that of an example's first token.
 *
 * Open data is immutable; any number of threads may ask its feeds.
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
    uint64_t samples;  /* asked for */
    uint32_t seq_length, seed;
    int64_t limit;
};

struct packed_data {
    struct packed set[PARTS]; /* a shared one is the first */
    struct packed_part part[PARTS];
    bool empty[PARTS]; /* wanted, but the split leaves it nothing of what it has a share of */
    const char *split; /* the config's; NULL: none */
};

struct packed_config {
    const char *shared, *split; /* one for all parts, */
    const char *own[PARTS];     /* or one for each that has any; NULL: none */
    uint32_t seq_length, seed;
    uint64_t samples[PARTS]; /* 0: the part is not wanted */
    int64_t limit;           /* ids must be below */
};

/* `d` must stay where it is until packed_data_close. ERR_USAGE if sequences are longer than
 * seq_length. */
int packed_data_open(struct packed_data *d, const struct packed_config *c, struct err *e);
void packed_data_close(struct packed_data *d); /* accepts a zeroed or closed one */

/* ERR_USAGE with the sentence for a run that needs a part without sequences. */
int packed_need(const struct packed_data *d, enum part p, struct err *e);

/* The sequence that stands at place k < samples of the part's order. */
uint64_t packed_order(const struct packed_part *p, uint64_t k);

struct feed packed_feed(const struct packed_data *d, enum part p);

#endif

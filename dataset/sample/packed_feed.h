/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DATASET_SAMPLE_PACKED_FEED_H
#define DATASET_SAMPLE_PACKED_FEED_H

/*
 * Packed sets as the data of a run: lists of them, one whose sets are each divided by `split` into
 * the three parts, or one per part. A part has its own order, reshuffled every epoch, which is a
 * function of (seed, part, epoch, place): a run's state is its count of samples.
 *
 * Several sets without weights are one: an epoch takes each sequence once. With weights each set
 * has its own epochs, and which of them is at each place is what a blend of other data has there
 * (blend_weave), for any number of samples.
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
#include "dataset/sample/blend.h"
#include "dataset/sample/feed.h"
#include "dataset/packed/packed.h"
#include "dataset/index/split.h"

/* A part's share of a set: sequences first .. first + n - 1. */
struct packed_share {
    const struct packed *set;
    uint64_t first, n;
};

struct packed_part {
    enum part part;
    struct packed_share *share;
    size_t nshares;
    uint64_t n;       /* sequences of all shares */
    uint64_t samples; /* requested */
    uint32_t seq_length, seed;
    int64_t limit;
    int16_t *which; /* [samples] share of each, with weights; NULL: without */
    int64_t *turn;  /* [samples] how many of that share come before it */
};

struct packed_data {
    struct packed *set;
    size_t nsets;
    struct packed_part part[PARTS];
    const struct packed *empty[PARTS]; /* wanted, but this set has no sequence for it */
    const char *split;                 /* the config's; NULL: none */
};

struct packed_config {
    const struct blend_list *shared;     /* one for all parts, divided by `split`, */
    const struct blend_list *own[PARTS]; /* or one per part; NULL or empty: none */
    const char *split;
    uint32_t seq_length, seed;
    uint64_t samples[PARTS]; /* 0: skip the part; SAMPLES_ALL without weights: any number */
    int64_t limit;           /* ids must be below */
};

/* `d` must not move until packed_data_close. ERR_USAGE if sequences are longer than seq_length, and
 * for weights without a number of samples. */
int packed_data_open(struct packed_data *d, const struct packed_config *c, struct err *e);
void packed_data_close(struct packed_data *d); /* accepts a zeroed or closed one */

/* ERR_USAGE: `found` is a packed set and `plain`, named beside it, is none. */
int packed_mixed(const char *found, const char *plain, struct err *e);

/* ERR_USAGE with the reason if part p, which the run needs, has no sequences. */
int packed_need(const struct packed_data *d, enum part p, struct err *e);

/* The set and the sequence at place k < samples of the part's order. */
const struct packed *packed_order(const struct packed_part *p, uint64_t k, uint64_t *ret_sequence);

/* How many samples from the first on contain no sequence twice. */
uint64_t packed_once(const struct packed_part *p);

struct feed packed_feed(const struct packed_data *d, enum part p);

#endif

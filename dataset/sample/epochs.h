/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DATASET_SAMPLE_EPOCHS_H
#define DATASET_SAMPLE_EPOCHS_H

/*
 * Samples in epochs: each of them takes all once, in an order of its own, which is a function of
 * (seed, part, epoch, place): nothing is built or stored, and a run's state is its count of
 * samples.
 */

#include "dataset/index/split.h"
#include "dataset/sample/feed.h"

/* Which of n >= 1 samples is at place k of endless epochs. */
uint64_t epochs_order(uint32_t seed, enum part part, uint64_t n, uint64_t k);

/* Another feed, whose samples are taken in epochs. */
struct epochs {
    struct feed of;
    uint64_t n;       /* samples of an epoch, at most of.count */
    uint64_t samples; /* those of all epochs, at least 1 */
    uint32_t seed;
    enum part part;
};

/* `p` must outlive the feed. */
struct feed epochs_feed(const struct epochs *p);

/*
 * Steps of `full` samples, the last one of an epoch with those that are left: how many steps an
 * epoch has, and the samples that so many steps have taken since `consumed`, none or at the end of
 * a step.
 */
uint64_t epochs_steps(uint64_t n, uint64_t full);
uint64_t epochs_after(uint64_t n, uint64_t full, uint64_t consumed, uint64_t steps);

#endif

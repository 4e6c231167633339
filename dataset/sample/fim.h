/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DATASET_SAMPLE_FIM_H
#define DATASET_SAMPLE_FIM_H

/*
 * Fill in the middle (Bavarian et al. 2022) over the samples of another feed: some documents of a
 * sample are reordered as prefix, suffix, middle, so that a model learns to fill a gap between two
 * texts.
 *
 * Each stretch between ends of document is reordered with probability `rate`, split at two
 * uniformly drawn places: PREFIX p SUFFIX s MIDDLE m, or with probability `spm_rate` of these
 * PREFIX SUFFIX s MIDDLE p m. The end is cut off if the sample gets too long. Ends of document
 * stay. Draws are a function of (seed, number of the sample, number of the stretch in it);
 * Megatron's FIM dataset draws in reading order, and splits between characters.
 */

#include "dataset/sample/feed.h"

struct fim {
    struct feed of;
    double rate, spm_rate;
    int32_t prefix, middle, suffix, eod; /* eod -1: a sample is one stretch */
    uint64_t seed;
};

/* `f` must outlive the feed. */
struct feed fim_feed(const struct fim *f);

#endif

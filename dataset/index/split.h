/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DATASET_INDEX_SPLIT_H
#define DATASET_INDEX_SPLIT_H

/*
 * `--split 969,30,1`: which sequences are for training, validation and test, by Megatron-LM core's
 * rule: shares are divided by their sum, boundaries are the rounded (half to even) cumulative
 * shares. Pure functions.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/core/err.h"

enum part { PART_TRAIN, PART_VALID, PART_TEST, PARTS };

/* As a number of samples of a part: no number requested, each comes once. */
#define SAMPLES_ALL UINT64_MAX

/* "train", "valid", "test", as in file names. */
const char *part_name(enum part p);

struct split {
    double bound[PARTS + 1]; /* cumulative, from 0 */
    double share[PARTS];
};

/* One to three numbers with ',' or '/' between them; missing ones are 0. ERR_USAGE otherwise. */
int split_parse(const char *text, struct split *ret, struct err *e);

/*
 * Sequences [*ret_first, *ret_end) of a part. False if the part's share is zero. True with an empty
 * range if the share is not zero but too small for one sequence; the caller reports that.
 */
bool split_range(const struct split *s, enum part p, uint64_t nseq, uint64_t *ret_first,
                 uint64_t *ret_end);

/* A split in whole numbers, "98,1,1", that gives every part with a share in `s` at least one of
 * nseq sequences; false if there is none. */
bool split_suggest(const struct split *s, uint64_t nseq, char ret[16]);

/*
 * The rule before core (v1 to 23.04, Megatron-DeepSpeed): each share is rounded by itself, and the
 * difference between their sum and nseq shifts all bounds. False if the range is empty.
 */
bool split_range_old(const struct split *s, enum part p, uint64_t nseq, uint64_t *ret_first,
                     uint64_t *ret_end);

#endif

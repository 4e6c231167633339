/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DATASET_INDEX_H
#define DATASET_INDEX_H

/*
 * `prep index`: the maps of every share of a shard, written beside it from the .idx alone.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "dataset/split.h"

struct index_request {
    const char *prefix;
    const char *split;   /* "969,30,1" */
    uint32_t seq_length; /* >= 1 */
    uint32_t seed;
    uint64_t samples[PARTS]; /* 0: that share's maps are not wanted */
    bool rebuild;            /* even if the files fit */
};

enum index_state {
    INDEX_ABSENT, /* share of zero, or no samples wanted */
    INDEX_EMPTY,  /* the share is there but comes out without text: to be named to the user */
    INDEX_REUSED, /* the files were there and fit */
    INDEX_BUILT
};

struct index_part {
    enum index_state state;
    uint64_t first, end; /* sequences */
    uint64_t tokens, epochs, samples;
    bool separate;
    char why[256]; /* INDEX_BUILT: what was wrong with the files that were there; "" if none were */
    char *path[3]; /* document, sample, shuffle map; owned by the report */
};

struct index_report {
    uint64_t sequences, documents;
    struct index_part part[PARTS];
};

/* `ret` is to be finished in either case. */
int index_run(const struct index_request *q, struct index_report *ret, struct err *e);
void index_report_finish(struct index_report *r);

#endif

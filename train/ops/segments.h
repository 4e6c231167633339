/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_OPS_SEGMENTS_H
#define TRAIN_OPS_SEGMENTS_H

/*
 * What an optimizer does with the elements of a flat range: a table in the device's memory, a
 * tensor I32 [n, SEGMENT_INTS] of struct update_segment in the order of `begin`. A segment ends
 * where the next one begins, the last one never does; the first begins at 0. The same table serves
 * every part of the range: a call says where its first element lies. Without a table every element
 * decays.
 */

#include <stdint.h>

#include "train/ops/ops.h"

/* Left as it is; updated without weight decay; with it. */
enum { SEGMENT_STILL, SEGMENT_PLAIN, SEGMENT_DECAYS };

struct update_segment {
    int64_t begin;
    int32_t kind, zero;
};

enum { SEGMENT_INTS = sizeof(struct update_segment) / sizeof(int32_t) };

/* A run of elements from `at` on, at most up to `end`, that are alike. */
struct segment_run {
    int64_t end;
    int kind;
};

/* For the host's entries: at < end, which count from the first element of the call. */
static inline struct segment_run segment_run(struct tensor table, int64_t first, int64_t at,
                                             int64_t end)
{
    const struct update_segment *s = (const struct update_segment *)table.data;
    struct segment_run ret = {end, SEGMENT_DECAYS};
    int64_t low = 0, high = tensor_none(table) ? 0 : table.size[0];
    if (!high)
        return ret;
    while (high - low > 1) {
        int64_t middle = (low + high) / 2;
        if (s[middle].begin <= first + at)
            low = middle;
        else
            high = middle;
    }
    ret.kind = s[low].kind;
    if (low + 1 < table.size[0] && s[low + 1].begin - first < end)
        ret.end = s[low + 1].begin - first;
    return ret;
}

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_DATASET_STEPS_H
#define TESTS_DATASET_STEPS_H

/* Shards as the programs read and write them, step by step. */

#include "base/core/buf.h"
#include "dataset/shard/shard.h"
#include "dataset/shard/write.h"

/* The .idx alone, ready to be read. */
static inline int open_idx(struct shard *s, const char *prefix, struct err *e)
{
    int code = shard_open_late(s, prefix, true, e);
    if (!code)
        code = shard_touch(s, e);
    if (code)
        shard_close(s);
    return code;
}

/* Appends one sequence in the steps in which `prep build` does. */
static inline int add_sequence(struct shard_writer *w, const int32_t *id, size_t n, struct err *e)
{
    struct shard_watch none = {.id = -1};
    struct buf place = {0};
    int code = shard_writer_sequence(w, n, e);
    if (code)
        return code;
    shard_writer_place(w, n, &place);
    const struct shard_run *run = (const struct shard_run *)(const void *)place.data;
    size_t runs = place.len / sizeof(*run);
    code = shard_runs_store(run, runs, id, &none) ? shard_runs_take(run, runs, e)
                                                  : shard_writer_check(w, id, n, e);
    buf_finish(&place);
    return code;
}

#endif

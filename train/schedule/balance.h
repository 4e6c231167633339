/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_SCHEDULE_BALANCE_H
#define TRAIN_SCHEDULE_BALANCE_H

/*
 * Which layers each pipeline stage has: one function from what the user asked for. The embedding is
 * always on the first stage, the final norm and the head on the last. Stage s is chunk s / pp of
 * the pipeline rank s % pp. A stage may have no layers.
 *
 * The arithmetic is that of Megatron-LM core_v0.12.3 (transformer_block.py), of 0.13 for the layout
 * string (pipeline_parallel_layer_layout.py), of tdpp for --balance, and of Megatron-DeepSpeed for
 * --pp-partition-method.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/core/err.h"

/* At most one way to share out unevenly may be given: list, first and last, embedding and loss,
 * method, layout. */
struct balance {
    int64_t layers;
    int pp, chunks;       /* chunks: virtual stages of each rank; 0: 1, or what the layout says */
    const char *list;     /* --balance 0-11-8-8-5: layers of each rank; NULL: not given */
    int64_t first, last;  /* --decoder-first-, --decoder-last-pipeline-num-layers: of the first and
                           * the last rank, all chunks together; -1: not given */
    bool embedding, loss; /* --account-for-embedding-, --account-for-loss-in-pipeline-split: counts
                           * as a layer of the first or the last stage */
    const char *method;   /* --pp-partition-method: type:transformer, or type:transformer|embedding,
                           * which counts the embedding and the head as layers; NULL: not given */
    const char *layout; /* --pipeline-model-parallel-layout "Et*3|(tt|)*29,t|L"; NULL: not given */
};

struct layer_range {
    int64_t begin, count;
};

/* Whether anything but even shares is asked for. */
bool balance_uneven(const struct balance *b);

/*
 * The layers of all stages into fresh memory (free), pp * *ret_chunks of them in stage order.
 * ERR_USAGE names the option and the number that does not fit.
 */
int balance_layers(const struct balance *b, struct layer_range **ret, int *ret_chunks,
                   struct err *e);

#endif

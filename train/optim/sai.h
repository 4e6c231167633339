/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_OPTIM_SAI_H
#define TRAIN_OPTIM_SAI_H

/*
 * SGD-SaI (Xu et al. 2024, arXiv 2412.11768; package sgd-sai 1.0.3): SGD with momentum whose
 * learning rate is scaled once, at the first step, for each block: by its gsnr, |g| / (s + eps), s
 * being the standard deviation of the block's gradients. A block is one of Megatron-LM's tensors:
 * the fused projections of queries, keys and values, gate with up, one expert.
 *
 * The statistics are those of the whole block, without padding, whatever the layout: in double, the
 * mean first, then the deviations from it. The gsnr has a number for each block of the model, on
 * every rank. With sai_settings.shard they are, as upstream, those of what a tensor-parallel rank
 * holds, padding included: a column for each of these ranks.
 *
 * The package's gsnr is not divided by the greatest one, as the paper's is: sai_settings.max.
 * Without momentum m = g.
 */

#include <stdbool.h>

#include "train/ops/ops.h"
#include "train/spec/param.h"

struct optim;

struct sai_settings {
    int max;   /* 1: gsnr by the greatest of all blocks */
    int shard; /* 1: and of what a tensor-parallel rank holds, as upstream */
};

/* Its options: rows for a struct S with the member m, a struct optim_tuning. `v`: the verbs that
 * take them; `i`: those of them on which what changes no memory has no effect. */
#define SAI_ROWS(S, m, v, i)                                                                       \
    OPT_ROW(.name = "sai-normalize", .type = OPT_CHOICE, .offset = offsetof(S, m.sai.max),         \
            .def = "none", .meta = "none|max", .group = "training", .verbs = v, .idle = i,         \
            .needs = "optimizer=sgd-sai", .resumed = RESUMED_WARNED,                               \
            .brief = "scales of sgd-sai by the greatest",                                          \
            .help = "scales of --optimizer sgd-sai: none as its package has them, max divided by " \
                    "the greatest, as in its paper"),                                              \
        OPT_ROW(.name = "sai-statistics", .type = OPT_CHOICE, .offset = offsetof(S, m.sai.shard),  \
                .def = "block", .meta = "block|shard", .group = "training", .verbs = v,            \
                .needs = "optimizer=sgd-sai", .resumed = RESUMED_WARNED,                           \
                .brief = "what sgd-sai measures",                                                  \
                .help = "what --optimizer sgd-sai measures: block whole tensors, the same in any " \
                        "layout; shard, as its package, the part of a tensor-parallel process")

/* What struct optim keeps for it: the model's numbers, of columns. */
struct sai {
    int columns, column;
    bool second, last_stage;
    struct tensor gsnr, stats;   /* F64 [blocks * columns]; [3 blocks * columns] */
    struct param_source *source; /* [params.n] as entries of a checkpoint */
};

/* Where a parameter's number is in the gsnr, on this rank. */
struct tensor sai_gsnr(const struct optim *o, const struct param *q);

#endif

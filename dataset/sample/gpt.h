/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DATASET_SAMPLE_GPT_H
#define DATASET_SAMPLE_GPT_H

/*
 * A GPT dataset: sample k of a share is seq_length + 1 tokens of concatenated documents, found
 * through the maps as in Megatron-LM's GPTDataset. `struct gpt_data` holds a shard and the datasets
 * of its three shares.
 *
 * Open data is immutable; any number of threads may fetch samples.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/core/err.h"
#include "dataset/sample/feed.h"
#include "dataset/sample/map_pool.h"
#include "dataset/index/maps.h"
#include "dataset/sample/rules.h"
#include "dataset/shard/shard.h"
#include "dataset/index/split.h"

/* Samples of each share by Megatron's rule. ERR_USAGE if it overflows or eval_interval is 0. */
int gpt_samples(uint64_t train_iters, uint64_t eval_interval, uint64_t eval_iters,
                uint64_t global_batch, uint64_t ret[PARTS], struct err *e);

struct gpt {
    const struct shard *shard; /* not owned */
    struct maps_spec spec;
    struct maps maps;
    int64_t limit;     /* ids must be below it */
    int32_t pad;       /* after a short last sample, masked; -1 if the tokenizer has none */
    struct maps_at at; /* its maps' files */
    struct maps_found found;
    /* of shard and maps, if the number of mapped files is limited; else NULL */
    struct map_pool *pool;
    struct pooled_maps *of_shard, *of_maps;
};

/* Samples that can be fetched. */
static inline uint64_t gpt_count(const struct gpt *g)
{
    return g->maps.nsample;
}

/*
 * Sample k < gpt_count into ret[seq_length + extra], padded with `pad` after the text of a short
 * last sample. Ids outside [0, limit), and anything inconsistent in files that changed since they
 * were opened, are ERR_DATA.
 */
int gpt_sample(const struct gpt *g, uint64_t k, int32_t *ret, struct err *e);

/* As `ahead` of a feed. */
void gpt_ahead(const struct gpt *g, uint64_t k, enum feed_step step);

/* Its samples, for batches. */
struct feed gpt_feed(const struct gpt *g);

struct gpt_config {
    const char *prefix;
    const char *split;         /* NULL: each wanted share is the whole dataset */
    const char *cache;         /* folder of maps under core's names; NULL: beside the data */
    struct core_folder *found; /* of `cache`, shared by several datasets; NULL: not shared */
    const struct core_tokenizer *tokenizer; /* for those names; may be NULL */
    enum data_rules rules;
    /* the split in RULES_DEEPSPEED's file names, even if it is not applied */
    const char *named_split;
    uint32_t seq_length;
    uint32_t seed;
    uint64_t samples[PARTS]; /* 0: skip the share; SAMPLES_ALL: one epoch */
    int64_t limit;           /* ids must be below; the padded vocabulary size */
    int32_t pad;             /* -1: none */
    bool save;               /* save maps that had to be built */
    bool trial;              /* with save: check that they could be saved, and write nothing */
    bool rebuild;            /* ignore existing ones */
    bool idx_only;           /* no .bin: maps are available, samples are not */
    bool plan_only;          /* no maps either: gpt_plan only */
};

enum { GPT_POOLED = 1 + PARTS };

struct gpt_data {
    struct shard shard;
    struct gpt part[PARTS];
    bool ready[PARTS];
    bool empty[PARTS]; /* its share is not zero but has no sequence */
    struct pooled_maps pooled[GPT_POOLED];
};

/*
 * Existing maps are used if valid, else built. Maps that have no name beside the data (of one
 * epoch) go to core's default place without a cache, PREFIX/cache/GPTDataset_indices. An empty
 * share is not an error here: the caller reports it (blend_set_need); of one epoch, files with no
 * samples are saved, as core does. `d` must not move until gpt_close.
 */
int gpt_open(struct gpt_data *d, const struct gpt_config *c, struct err *e);
void gpt_close(struct gpt_data *d); /* accepts a zeroed or closed one */

/*
 * The number of files mapped once everything is read, and a pool to limit it, set before the first
 * sample: the pool has space for GPT_POOLED entries per dataset and is destroyed before it is
 * closed.
 */
uint32_t gpt_files(const struct gpt_data *d);
void gpt_limit(struct gpt_data *d, struct map_pool *pool);

#endif

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

/* N of each share by Megatron's rule. ERR_USAGE if it overflows or eval_interval is 0. */
int gpt_samples(uint64_t train_iters, uint64_t eval_interval, uint64_t eval_iters,
                uint64_t global_batch, uint64_t ret[PARTS], struct err *e);

struct gpt {
    const struct shard *shard; /* not owned */
    struct maps_spec spec;
    struct maps maps;
    int64_t limit;     /* ids are below it */
    int32_t pad;       /* behind a short last sample, and masked; -1 if the tokenizer has none */
    struct maps_at at; /* its maps' files */
    bool reused;       /* they were there and fit */
    char why[256];     /* what was wrong with those that were there; "" if none were */
    /* of the shard and of the maps, if no more than so many may be mapped at once; else NULL */
    struct holds *holds;
    struct map_pool *of_shard, *of_maps;
};

/* Samples that can be fetched. */
static inline uint64_t gpt_count(const struct gpt *g)
{
    return g->maps.nsample;
}

/*
 * Sample k < gpt_count into ret[seq_length + extra]; places behind the text of a short last sample
 * are `pad`. Ids outside [0, limit) and whatever does not fit in files that changed under us are
 * ERR_DATA.
 */
int gpt_sample(const struct gpt *g, uint64_t k, int32_t *ret, struct err *e);

/* As `ahead` of a feed. */
void gpt_ahead(const struct gpt *g, uint64_t k, enum feed_step step);

/* Its samples, for batches. */
struct feed gpt_feed(const struct gpt *g);

struct gpt_config {
    const char *prefix;
    const char *split;         /* NULL: each share that is wanted is all of it */
    const char *cache;         /* folder of maps under core's names; NULL: beside the data */
    struct core_folder *found; /* of `cache`, for many that are opened; NULL: for this one alone */
    const struct core_tokenizer *tokenizer; /* for those names; may be NULL */
    enum data_rules rules;
    const char *named_split; /* stands in names of RULES_DEEPSPEED, though it may cut nothing */
    uint32_t seq_length;
    uint32_t seed;
    uint64_t samples[PARTS]; /* 0: the share is not wanted; SAMPLES_ALL: one epoch */
    int64_t limit;           /* ids must be below; the padded vocabulary size */
    int32_t pad;             /* -1: none */
    bool save;               /* leave maps that had to be built */
    bool rebuild;            /* do not look at those that are there */
    bool idx_only;           /* no .bin: maps can be had, samples cannot */
    bool plan_only;          /* no maps either: gpt_plan alone */
};

enum { GPT_HOLDS = 1 + PARTS };

struct gpt_data {
    struct shard shard;
    struct gpt part[PARTS];
    bool ready[PARTS];
    bool empty[PARTS]; /* wanted, its share is not zero, but there is no sequence in it */
    struct map_pool hold[GPT_HOLDS];
};

/*
 * Maps that are there are used if they fit, else built. Maps that have no name beside the data (of
 * one epoch) go to core's own place without a cache, PREFIX/cache/GPTDataset_indices. An empty
 * share is no failure here: the caller names it (blend_set_need); of one epoch, files of no samples
 * are saved, as core does. `d` must stay where it is until gpt_close.
 */
int gpt_open(struct gpt_data *d, const struct gpt_config *c, struct err *e);
void gpt_close(struct gpt_data *d); /* accepts a zeroed or closed one */

/*
 * Files that are mapped once all is read, and a limit to them, set before a sample is asked for:
 * `holds` has room for GPT_HOLDS of each data set and is destroyed before it is closed.
 */
uint32_t gpt_files(const struct gpt_data *d);
void gpt_limit(struct gpt_data *d, struct holds *holds);

#endif

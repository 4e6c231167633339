/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DATASET_SAMPLE_BLEND_SET_H
#define DATASET_SAMPLE_BLEND_SET_H

/*
 * The data of a run: for each part (training, validation, test) one dataset in its order, or a
 * blend of several as Megatron core's BlendedMegatronDatasetBuilder builds it, or as older versions
 * did (rules.h). With a cache folder its index files are core's or Megatron-DeepSpeed's; without
 * one the maps are where gpt.h says, and the blend's own indices are built at each start.
 *
 * Open data is immutable; any number of threads may use its feeds.
 */

#include "dataset/sample/blend.h"
#include "dataset/sample/gpt.h"

struct blend_set_config {
    const struct blend_list *shared;     /* one list, divided by `split`, */
    const struct blend_list *own[PARTS]; /* or one per part; NULL: none */
    const char *split;                   /* of shared */
    const char *cache;                   /* NULL: none */
    const struct core_tokenizer *tokenizer;
    enum data_rules rules;
    uint32_t seq_length, seed;
    uint64_t samples[PARTS]; /* 0: skip the part; SAMPLES_ALL: every sample once */
    int64_t limit;
    int32_t pad;
    bool save, trial, rebuild, idx_only, plan_only; /* as in struct gpt_config */
    bool spare_test;           /* a test share that cannot be served is left out (blend_set_need) */
    uint64_t maps;             /* files mapped at once; 0: the system's limit */
    struct core_folder *found; /* private to blend_set_open */
};

/* Maps of the process (map_most) that are reserved for other uses. */
enum { BLEND_SET_SPARE = 8 << 10 };

struct blend_set_share {
    enum part part;
    struct gpt **set; /* into the sources */
    size_t n;
    double *weight;        /* as given, normalised; NULL: by size */
    uint64_t count;        /* samples that can be fetched */
    uint64_t *taken;       /* of each dataset, among `count` samples */
    bool blended;          /* else the single dataset's own order */
    const int16_t *which;  /* [count]: dataset of each sample; not after plan_only */
    const uint8_t *narrow; /* or this, from Megatron-DeepSpeed's file */
    const int64_t *sample; /* [count]: its number in that dataset */
    /* files of the two, and their memory; the paths are NULL without a cache */
    char *path[2], *stamp, *description;
    bool reused;
    void *own[2];
    struct npy file[2];
};

struct blend_set {
    struct gpt_data *source; /* every dataset of every list */
    size_t nsource;
    struct map_pool *pool; /* NULL: all files may be mapped at once */
    struct blend_set_share part[PARTS];
    bool ready[PARTS];
    const char *empty[PARTS]; /* wanted, but this dataset has nothing for it */
    struct err lacking;       /* why the test share was left out; code 0: it was not */
    const char *split;        /* the config's */
};

/* `m` must not move until blend_set_close. An empty share is not an error here (blend_set_need). */
int blend_set_open(struct blend_set *m, const struct blend_set_config *c, struct err *e);
void blend_set_close(struct blend_set *m); /* accepts a zeroed or closed one */

/* ERR_USAGE with the reason if part p, which the run needs, is not ready. */
int blend_set_need(const struct blend_set *m, enum part p, struct err *e);

/* The samples of a part that is ready. */
struct feed blend_set_feed(const struct blend_set *m, enum part p);
/* How many samples from the first on contain no token twice. */
uint64_t blend_set_once(const struct blend_set_share *p);
/* The same of its datasets, whatever number of samples was asked for. */
uint64_t blend_set_there(const struct blend_set_share *p);
/* The dataset of the sample at place k, and its number there. */
struct gpt *blend_set_at(const struct blend_set_share *p, uint64_t k, uint64_t *ret_sample);

#endif

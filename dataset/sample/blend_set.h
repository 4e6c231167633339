/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DATASET_SAMPLE_BLEND_SET_H
#define DATASET_SAMPLE_BLEND_SET_H

/*
 * The data of a run: for each part (training, validation, test) one data set in its order, or
 * several that are blended, as Megatron core's BlendedMegatronDatasetBuilder makes them, or as
 * those before it did (rules.h). Its index files are core's, or Megatron-DeepSpeed's, with a cache
 * folder; without one the maps lie as gpt.h says, and the blend's own indices are made at each
 * start.
 *
 * Open data is immutable; any number of threads may ask its feeds.
 */

#include "dataset/sample/blend.h"
#include "dataset/sample/gpt.h"

struct blend_set_config {
    const struct blend_list *shared;     /* one list, cut by `split`, */
    const struct blend_list *own[PARTS]; /* or one for each part that has any; NULL: none */
    const char *split;                   /* of shared */
    const char *cache;                   /* NULL: none */
    const struct core_tokenizer *tokenizer;
    enum data_rules rules;
    uint32_t seq_length, seed;
    uint64_t samples[PARTS]; /* 0: the part is not wanted; SAMPLES_ALL: every sample once */
    int64_t limit;
    int32_t pad;
    bool save, rebuild, idx_only, plan_only; /* as in struct gpt_config */
    uint64_t maps;                           /* files mapped at once; 0: all there may be */
    struct core_folder *found;               /* blend_set_open's own */
};

/* Maps of the process (map_most) that are not for the data. */
enum { BLEND_SET_SPARE = 8 << 10 };

struct blend_set_share {
    enum part part;
    struct gpt **set; /* into the sources */
    size_t n;
    double *weight;        /* as given, normalised; NULL: by size */
    uint64_t count;        /* samples that can be fetched */
    uint64_t *taken;       /* of each set by `count` samples */
    bool blended;          /* else the one set's own order */
    const int16_t *which;  /* [count]: set of each sample; not after plan_only */
    const uint8_t *narrow; /* or this, from a file of Megatron-DeepSpeed's */
    const int64_t *sample; /* [count]: its number in that set */
    /* files of the two, and their memory; the paths are NULL without a cache */
    char *path[2], *seal, *description;
    bool reused;
    void *own[2];
    struct npy file[2];
};

struct blend_set {
    struct gpt_data *source; /* every data set of every list */
    size_t nsource;
    struct holds *holds; /* NULL: all their files may be mapped at once */
    struct blend_set_share part[PARTS];
    bool ready[PARTS];
    const char *empty[PARTS]; /* wanted, but this data set has nothing for it */
    const char *split;        /* the config's */
};

/* `m` must stay where it is until blend_set_close. An empty share is no failure here
 * (blend_set_need). */
int blend_set_open(struct blend_set *m, const struct blend_set_config *c, struct err *e);
void blend_set_close(struct blend_set *m); /* accepts a zeroed or closed one */

/* ERR_USAGE with the sentence for a run that needs a part which is not ready. */
int blend_set_need(const struct blend_set *m, enum part p, struct err *e);

/* Samples of a part that is ready, and the one at place k: which set, and its number there. */
struct feed blend_set_feed(const struct blend_set *m, enum part p);
/* The first samples of a part in which no token comes twice. */
uint64_t blend_set_once(const struct blend_set_share *p);
struct gpt *blend_set_at(const struct blend_set_share *p, uint64_t k, uint64_t *ret_sample);

#endif

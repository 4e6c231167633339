/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DATASET_INDEX_MAPS_H
#define DATASET_INDEX_MAPS_H

/*
 * Document, sample and shuffle maps: how a share of a shard's sequences becomes samples of
 * seq_length tokens in a shuffled order, bit for bit as Megatron-LM (v2 to core) builds them from
 * the .idx alone. Rules: FORMAT.md.
 *
 * A `struct maps` is built in memory or mapped from three .npy files under one of two names: those
 * that Megatron v1 to v3 leave beside the data,
 *   {prefix}_{train|valid|test}_indexmap_{N}ns_{L}sl_{seed}s_{doc_idx|sample_idx|shuffle_idx}.npy
 * or those of Megatron core in a folder (core_name.h).
 * Immutable once made, except that files are mapped on first use (maps_touch); any number of
 * threads may read it.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/core/buf.h"
#include "base/core/err.h"
#include "dataset/index/core_find.h"
#include "dataset/index/core_name.h"
#include "dataset/index/npy.h"
#include "dataset/shard/shard.h"
#include "dataset/index/split.h"

struct maps_spec {
    enum part part;
    uint64_t first, end; /* sequences of the share, as split_range gives them */
    uint64_t samples;    /* N; ignored if one_epoch */
    bool one_epoch;      /* no number requested: each token once */
    uint32_t seq_length; /* L */
    uint32_t seed;
    uint32_t extra; /* 1: samples overlap by one token (the rule); 0: they do not */
    bool keep_last; /* a last, shorter sample too (validation by option) */
    bool all_mixed; /* all epochs are shuffled together (v1) */
    bool wide;      /* the sample map always has 64 bits (Megatron-DeepSpeed) */
};

struct maps_late;

struct maps {
    struct maps_late *late; /* private */
    uint64_t tokens;        /* of one epoch */
    uint64_t epochs;
    bool separate;                  /* the last epoch is shuffled by itself */
    uint64_t ndoc;                  /* entries of doc: epochs * sequences of the share */
    uint64_t nsample;               /* samples; sample has one row more */
    bool wide_sample, wide_shuffle; /* 64 bits instead of 32 */

    /* of files: valid after maps_touch */
    const int32_t *doc;  /* sequence number */
    const void *sample;  /* rows (place in doc, token in that sequence): i32 or i64 */
    const void *shuffle; /* order of the samples: u32 or i64 */

    void *own[3];       /* built here */
    struct npy file[3]; /* or mapped */
};

/*
 * Builds in memory, after checking all of the .idx: ERR_DATA. A share without tokens is ERR_USAGE,
 * except for one_epoch, which gives no samples; too little memory is ERR_RESOURCE. With keep_last
 * the number of samples is computed in single precision, as Megatron-LM does.
 */
int maps_build(const struct maps_spec *spec, const struct shard *s, struct maps *ret,
               struct err *e);
void maps_close(struct maps *m); /* accepts a zeroed or closed one */

/* Tokens of the sequences [first, end), one epoch. Linear; maps_tokens_between reads two offsets.
 */
int maps_tokens(const struct shard *s, uint64_t first, uint64_t end, uint64_t *ret, struct err *e);
int maps_tokens_between(const struct shard *s, uint64_t first, uint64_t end, uint64_t *ret,
                        struct err *e);

enum maps_file { MAPS_DOC, MAPS_SAMPLE, MAPS_SHUFFLE, MAPS_FILES };

/* The name of one of the files, in new memory. one_epoch, extra = 0 and keep_last have no files. */
char *maps_path(const struct maps_spec *spec, const char *prefix, enum maps_file f);

/* Where the files of one set of maps are. `folder` and `description`: NULL beside the data. */
struct maps_at {
    char *path[MAPS_FILES];
    char *stamp; /* of our own (cache_stamp.h) */
    char *folder, *description;
    struct buf text; /* of the description */
};

void maps_beside(const struct maps_spec *spec, const char *prefix, struct maps_at *ret);

/* text: the description (core_gpt_text). */
void maps_in_cache(struct core_folder *in, enum part part, const struct buf *text,
                   struct maps_at *ret);

/* Megatron-DeepSpeed's: in the folder index-cache beside the data, if the files exist there or
 * `cache` is NULL; else in `cache`. text: deepspeed_gpt_text. */
void maps_of_deepspeed(const char *prefix, const char *cache, const struct buf *text,
                       struct maps_at *ret);
void maps_at_finish(struct maps_at *at);

/* Writes the three files; each appears whole or not at all. */
int maps_save_at(const struct maps *m, const struct maps_at *at, struct err *e);

/*
 * The cached files if they are valid, else maps built now: what train and prep use. Files are
 * checked against the .idx: types and shapes, each document as often as it must occur, each row of
 * the sample map recomputed, the shuffle map a permutation; linear, with 2 bytes of memory per
 * sequence. `save` writes maps that were built; `rebuild` ignores the files. Files with a valid
 * stamp (cache_stamp.h) are not read again. Any number of ranks may call this at once: with `save`
 * one builds and the others wait for it. Files, also those just saved, are not mapped before
 * maps_touch.
 */
struct maps_wish {
    bool save, rebuild;
    bool trial; /* with save: only whether they could be saved, nothing is written */
};
struct maps_found {
    bool reused;   /* the files existed and are valid */
    char why[256]; /* what was wrong with existing ones; "" if there were none or they are valid */
};
int maps_obtain_at(const struct maps_spec *spec, const struct shard *s, const struct maps_at *at,
                   struct maps_wish wish, struct maps *ret, struct maps_found *ret_found,
                   struct err *e);

/* Call before reading the arrays. ERR_IO if a file was replaced since it was opened. */
int maps_touch(const struct maps *m, struct err *e);
void maps_leave(struct maps *m); /* undoes maps_touch; no thread may be reading */

/* Row r <= nsample of the sample map, and the k-th sample of the shuffled order, k < nsample. */
static inline void maps_row(const struct maps *m, uint64_t r, int64_t *ret_place,
                            int64_t *ret_token)
{
    if (m->wide_sample) {
        *ret_place = ((const int64_t *)m->sample)[2 * r];
        *ret_token = ((const int64_t *)m->sample)[2 * r + 1];
    } else {
        *ret_place = ((const int32_t *)m->sample)[2 * r];
        *ret_token = ((const int32_t *)m->sample)[2 * r + 1];
    }
}

static inline int64_t maps_order(const struct maps *m, uint64_t k)
{
    return m->wide_shuffle ? ((const int64_t *)m->shuffle)[k]
                           : (int64_t)((const uint32_t *)m->shuffle)[k];
}

#endif

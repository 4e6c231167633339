/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DATASET_INDEX_CORE_NAME_H
#define DATASET_INDEX_CORE_NAME_H

/*
 * Names of Megatron core's index caches (core_v0.12.3). A dataset is described by a text, Python's
 * json.dumps(indent=4) of its settings; the MD5 of that text starts the names of its files:
 *
 *     FOLDER/{md5}-GPTDataset-{part}-{description.txt,document_index.npy,sample_index.npy,...}
 *
 * Pure functions; core_find.h looks into the folder.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/core/buf.h"
#include "base/core/err.h"
#include "base/core/hash.h"
#include "dataset/index/split.h"

/* How Megatron-LM's tokenizer class describes itself. The caller owns the strings. */
struct core_tokenizer {
    const char *name;    /* Python class; NULL: no tokenizer is known */
    const char *path[2]; /* NULL: null */
    size_t npath;
    struct {
        const char *key;
        char value[24];
    } option[2];
    size_t noptions;
};

/* From Megatron's name of the type ("GPT2BPETokenizer"), the files as given, and the
 * --vocab-size of the NullTokenizer. */
void core_tokenizer_of(const char *type, const char *path, const char *merges, int64_t vocab_size,
                       struct core_tokenizer *ret);

struct core_gpt {
    const char *path; /* of the dataset, as given */
    uint64_t samples; /* SAMPLES_ALL: null */
    enum part part;
    uint32_t seed, seq_length;
    const char *split; /* as given; NULL: each part has a dataset of its own */
    const struct core_tokenizer *tokenizer;
};

/* Appended to `ret`. ERR_USAGE for an invalid split. */
int core_gpt_text(const struct core_gpt *g, struct buf *ret, struct err *e);

/* A blend: `set` has the texts of its n datasets. Without `size` it is exhaustive and `count` has
 * its weights; else `weight` has them. */
struct core_blend {
    const struct buf *set;
    size_t n;
    enum part part;
    const double *weight; /* normalised twice */
    const uint64_t *count;
    bool exhaustive;
    uint64_t size;
};
void core_blend_text(const struct core_blend *b, struct buf *ret);

/* FOLDER/{md5}-{class}-{part}-{what} in new memory. */
char *core_path(const char *folder, const char *md5, const char *class, enum part part,
                const char *what);

/* A number as Python prints it. */
void core_put_real(struct buf *b, double v);

#endif

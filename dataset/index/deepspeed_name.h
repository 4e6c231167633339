/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DATASET_INDEX_DEEPSPEED_NAME_H
#define DATASET_INDEX_DEEPSPEED_NAME_H

/*
 * Names of Megatron-DeepSpeed's index caches. A dataset is described by lines of text; the MD5 of
 * that text starts the names of its files, FOLDER/{md5}{.dsc,_doc_idx.npy,...}. Megatron-DeepSpeed
 * looks in the folder index-cache beside the data, then in the run's cache folder, and builds
 * missing files in the last one.
 */

#include <stdint.h>

#include "base/core/buf.h"
#include "dataset/index/split.h"

struct deepspeed_gpt {
    const char *path; /* of the dataset, as given */
    enum part part;
    uint64_t samples, epochs;
    uint32_t seq_length, seed;
    const char *split; /* as given, or the default */
};

/* Appended to `ret`. */
void deepspeed_gpt_text(const struct deepspeed_gpt *g, struct buf *ret);

/* For a blend of n datasets with these texts; weights are normalised. */
void deepspeed_blend_text(const struct buf *set, size_t n, const double *weight, uint64_t size,
                          struct buf *ret);

/* An array as numpy prints it: eight digits, lines of 75 characters. n is at most 1000. */
void deepspeed_put_array(const double *a, size_t n, struct buf *ret);

/* FOLDER/{md5 of text}{suffix} in new memory. */
char *deepspeed_path(const char *folder, const struct buf *text, const char *suffix);

#endif

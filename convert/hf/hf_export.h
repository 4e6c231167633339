/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CONVERT_HF_HF_EXPORT_H
#define CONVERT_HF_HF_EXPORT_H

/*
 * A checkpoint's weights as a folder of Hugging Face: model.safetensors, or shards and their index,
 * as safetensors and transformers write them; config.json and generation_config.json. The folder
 * appears whole, or not at all.
 */

#include "train/ckpt/ckpt.h"
#include "convert/copy/copy.h"
#include "convert/hf/hf_folder.h"
#include "convert/hf/hf_rows.h"
#include "convert/hf/hf_write.h"

#define HF_SHARD_SIZE UINT64_C(5000000000) /* the default of transformers: 5 GB */

struct hf_export_options {
    const char *like;     /* a folder whose files, names, cut and types are kept; NULL: none */
    uint64_t shard_size;  /* bytes of tensors in a file; 0: HF_SHARD_SIZE */
    int dtype;            /* enum dtype of all tensors; -1: each as it is */
    bool overwrite;       /* a folder of that name is replaced */
    const char *identity; /* tells this conversion from others (copy_journal.h) */
    struct hf_ids ids;    /* for a configuration that is made anew */
    const struct hf_rows *rows; /* the vocabulary changes on the way; NULL: it stays */
    struct copy_options copy;
    /* Writes what else belongs into the folder, before it appears; may be NULL. */
    int (*further)(void *arg, const char *folder, struct err *e);
    /* Tries the folder when all is in it, before it gets its name, and may add files; may be NULL.
     * One that fails is left as `refused`, which must be free. */
    int (*trial)(void *arg, const char *folder, struct err *e);
    const char *refused;
    void *arg;
};

/* A file of weights that is going to be. */
struct hf_export_file {
    const char *name;
    struct st_plan *item;
    size_t n, cap;
    struct st_pair *pair; /* metadata */
    size_t npairs;
    uint64_t bytes; /* of tensors */
    struct copy_target *target;
    struct copy_step *step;
    size_t nsteps, steps_cap;
};

/* Everything that is known before the first byte is written. */
struct hf_export {
    struct ckpt *ckpt; /* what is read of it is noted there, for ckpt_check */
    struct hf_model model;
    struct hf_map map;
    struct hf_folder *like;
    struct buf config, generation;
    bool index; /* sharded */
    struct hf_export_file *file;
    size_t files;
    uint64_t bytes;
    struct copy_source *source; /* of map.global */
    struct copy_source *plain;  /* the same before rows are mapped */
    struct copy_mapped mapped[2];
    size_t nmapped;
    struct copy_source *passed; /* of like->passed */
    enum dtype dtype;           /* of the embedding: for config.json */
    struct arena arena;
};

/*
 * Plans the export and checks it as a whole. ERR_INTEGRITY for a checkpoint that lacks tensors of
 * its model or has others; ERR_USAGE for a model that no family has; ERR_DATA for a `like` that is
 * another model. The checkpoint must live on; the caller finishes *ret.
 */
int hf_export_plan(struct hf_export *ret, struct ckpt *c, const struct hf_export_options *o,
                   struct err *e);
void hf_export_finish(struct hf_export *x);

/* ERR_USAGE: something stands under `dst` that is not to be replaced. Changes nothing. */
int hf_export_check(const char *dst, const struct hf_export_options *o, struct err *e);

/* Writes it. One that was interrupted, or failed for want of space, is continued by the next call
 * with the same identity. */
int hf_export_run(const struct hf_export *x, const char *dst, const struct hf_export_options *o,
                  struct err *e);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CONVERT_HF_HF_FOLDER_H
#define CONVERT_HF_HF_FOLDER_H

/*
 * A model as transformers keeps it: a folder with config.json and model.safetensors, or shards and
 * model.safetensors.index.json; else with pytorch_model.bin, its shards and index, or a .pt of the
 * same tensors (convert/torch). A folder of Meta's with params.json and consolidated.NN.pth is
 * opened too, and its config.json is made. Opening it holds the tensors against the configuration:
 * each that the model needs is there, once and in its shape, and none that nobody knows. Only
 * headers are read; data only where a tied head comes twice.
 *
 * Knows neither engine nor device. One thread opens and closes; any may read.
 */

#include "base/core/buf.h"
#include "base/core/hash.h"
#include "train/ckpt/safetensors.h"
#include "convert/copy/copy.h"
#include "train/spec/hf.h"

struct hf_shard {
    char *path;
    const char *name; /* its last part */
    struct st_file st;
    bool *outside; /* of each entry: beside the model (hf_unwrap.h); NULL: none is */
};

/* Where a tensor is. */
struct hf_found {
    size_t shard;
    const struct st_entry *entry;
};

/* A tensor that is not taken, and why: a sentence's end. */
struct hf_passed {
    struct hf_found at;
    const char *why;
};

struct hf_folder {
    char *path;
    struct buf config; /* config.json, verbatim */
    struct hf_model model;
    struct hf_map map;
    struct hf_found *found; /* of map.tensor[i] */
    struct hf_shard *shard;
    size_t shards;
    struct hf_passed *passed;
    size_t npassed;
    bool sharded;               /* by an index */
    bool meta;                  /* Meta's params.json and consolidated.NN.pth instead */
    bool pytorch;               /* files of torch.save, not safetensors */
    bool wrapped;               /* names of tensors were changed (hf_unwrap.h) */
    struct arena names;         /* of those */
    uint64_t bytes;             /* of the tensors that are taken */
    struct hf_adapter *adapter; /* merged by the steps; NULL: none (hf_adapter.h) */
};

/* An import as steps of the copy engine: their targets are map.global. */
struct hf_steps {
    struct copy_source *source;
    struct copy_step *step;
    size_t n;
    int64_t *order[2]; /* of rows, for steps to point at */
};

/* True for a folder with a config.json and weights of any kind. */
bool hf_folder_is(const char *path);

/*
 * ERR_DATA (3) for a configuration, header, shape or type that is wrong and for tensors that nobody
 * knows; ERR_INTEGRITY (7) for missing and stale shards and missing tensors; ERR_IO for no folder.
 * The caller closes *ret.
 */
int hf_folder_open(const char *path, const struct hf_ignore *ignore, struct hf_folder **ret,
                   struct err *e);
void hf_folder_close(struct hf_folder *f);

/* How every global tensor is made; valid as long as the folder. The caller finishes it. */
int hf_folder_steps(const struct hf_folder *f, struct hf_steps *ret, struct err *e);
void hf_steps_finish(struct hf_steps *s);

/* The dtype of each of map.global, as its tensor has it; free the array. */
enum dtype *hf_folder_dtypes(const struct hf_folder *f);

/*
 * Fills to.data with the box to.box of a global tensor, cast to to.dtype. ERR_USAGE when the model
 * has no such tensor, or of another shape.
 */
int hf_folder_read(const struct hf_folder *f, const char *name, int rank, const int64_t *size,
                   struct box_mem to, struct err *e);

/* SHA-256 of the configuration, of names, types and sizes of the tensors, and of some bytes of
 * each: two models of one kind are told apart without reading all of them. ERR_IO. */
int hf_folder_digest(const struct hf_folder *f, char ret[SHA_TEXT], struct err *e);

/*
 * Whether what was read so far is what was written, where the format of the files has sums
 * (PyTorch's): ERR_INTEGRITY names file and tensor. After all reads, by one thread.
 */
int hf_folder_check(const struct hf_folder *f, struct err *e);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CONVERT_HF_HF_INDEX_H
#define CONVERT_HF_HF_INDEX_H

/*
 * model.safetensors.index.json, pytorch_model.bin.index.json: which file of a sharded model has
 * which tensor. Format: an object with `weight_map`, an object of file names by tensor name, and
 * `metadata`.
 */

#include <stddef.h>

#include "base/core/buf.h"
#include "base/core/err.h"

struct hf_place {
    const char *tensor, *file;
};

struct hf_index {
    struct hf_place *place; /* by tensor name in byte order */
    size_t n;
    const char **file; /* by name in byte order, each once */
    size_t files;
    void *doc; /* private: owns the texts */
};

/*
 * ERR_DATA for what is malformed and for names of files with a path in them; `name` stands in
 * messages. On failure nothing is left to finish.
 */
int hf_index_parse(struct hf_index *ret, const char *name, const char *text, size_t n,
                   struct err *e);
void hf_index_finish(struct hf_index *x);

/* The file of a tensor, NULL: none. */
const char *hf_index_find(const struct hf_index *x, const char *tensor);

/* The text that transformers writes for n places, in byte order of the tensors' names. */
void hf_index_write(const struct hf_place *place, size_t n, unsigned long long total_size,
                    struct buf *out);

#endif

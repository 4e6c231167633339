/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CONVERT_HF_HF_FOLDER_INTERNAL_H
#define CONVERT_HF_HF_FOLDER_INTERNAL_H

/* What the readers of a folder share: hf_folder.c and hf_meta.c. */

#include "convert/hf/hf_folder.h"

typedef int hf_open_fn(struct st_file *ret, const char *path, struct err *e);

/* Opens a file of weights of the folder and appends it to f->shard. */
int hf_shard_open(struct hf_folder *f, const char *name, hf_open_fn *open, struct err *e);

/* Whether two tensors have the same type, shape and bytes; of the folder, and of any files. */
int hf_same_bytes(const struct hf_folder *f, struct hf_found a, struct hf_found b, bool *ret,
                  struct err *e);
int hf_same_entries(const struct st_file *s, const struct st_entry *a, const struct st_file *t,
                    const struct st_entry *b, bool *ret, struct err *e);

/* Notes a tensor that is not taken. */
void hf_pass(struct hf_folder *f, struct hf_found at, const char *why);

/* Sizes as "[2, 3]". */
void hf_add_shape(struct buf *b, int rank, const int64_t *size);

/* ERR_DATA when the tensor of the file is not of numbers that weights can be. */
int hf_check_type(const char *file, const struct st_entry *t, struct err *e);

/* A folder of Meta's: params.json and consolidated.NN.pth. */
bool hf_meta_is(const char *path);
int hf_meta_fill(struct hf_folder *f, const struct hf_ignore *ignore, struct err *e);
int hf_meta_steps(const struct hf_folder *f, struct hf_steps *ret, struct err *e);

#endif

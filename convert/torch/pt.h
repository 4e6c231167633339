/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CONVERT_TORCH_PT_H
#define CONVERT_TORCH_PT_H

/*
 * Files that torch.save writes (pytorch_model.bin, .pt, .pth): a zip archive with a pickle and one
 * stored member for each storage (FORMAT.md). Nothing of the pickle is executed, see pickle.h. A
 * file is a struct st_file like any other: st_find, st_read and st_close work on it, and data are
 * read from the archive box by box, views with any strides too.
 *
 * A tensor's name is its key; in nested dictionaries and lists the keys with dots between them. A
 * dictionary that holds nothing but one other dictionary of tensors, such as {"state_dict": ...},
 * stands for that one.
 */

#include <stdbool.h>

#include "train/ckpt/safetensors.h"

/*
 * ERR_DATA for what is malformed, for the formats before PyTorch 1.6, for TorchScript, and for
 * pickles that name anything that a file of tensors does not need: the sentence has that name.
 * ERR_IO. An entry's begin counts from the start of the file, and end - begin are the bytes of its
 * elements, also where these lie apart or tensors share memory.
 */
int pt_open(struct st_file *ret, const char *path, struct err *e);
/* The same over bytes in memory; data cannot be read of it. `name` stands in messages. */
int pt_parse(struct st_file *ret, const char *name, const unsigned char *p, size_t n,
             struct err *e);

/* A file, by its first bytes, in a format of PyTorch, whether pt_open reads it or not. */
bool pt_is(const char *path);

#endif

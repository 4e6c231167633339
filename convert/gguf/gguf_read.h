/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CONVERT_GGUF_GGUF_READ_H
#define CONVERT_GGUF_GGUF_READ_H

/*
 * GGUF files, versions 2 and 3, as a struct st_file: tensors of the types that weft calculates with
 * can be read, those of quantized types are listed (dtype -1, bits 0). Sizes are in the order of
 * other formats, the last one fastest. `metadata` has the keys as texts; of an array how many
 * values it has. Nothing of the file is trusted.
 */

#include <stdbool.h>

#include "train/ckpt/safetensors.h"

/* ERR_DATA names what is wrong and where; ERR_IO. On failure nothing is left open. */
int gguf_open(struct st_file *ret, const char *path, struct err *e);
/* The same over bytes in memory; data cannot be read of it. `name` stands in messages. */
int gguf_parse(struct st_file *ret, const char *name, const unsigned char *p, size_t n,
               struct err *e);

/* A file that begins as they do. */
bool gguf_is(const char *path);

#endif

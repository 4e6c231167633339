/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CONVERT_GGUF_GGUF_TYPE_H
#define CONVERT_GGUF_GGUF_TYPE_H

/*
 * Types of tensors in GGUF files: those of dtype.h that have a number there, and types of blocks of
 * numbers with a scale, which only GGUF has.
 */

#include <stdbool.h>
#include <stdint.h>

#include "train/tensor/dtype.h"

enum { GGUF_Q8_0 = 8, GGUF_Q8_0_BLOCK = 32, GGUF_Q8_0_BYTES = 2 + GGUF_Q8_0_BLOCK };

struct gguf_type {
    const char *name;
    uint32_t number, block, bytes; /* of a block; its elements are a multiple of a row's */
    int file;                      /* its number under general.file_type; -1: weft writes none */
    const struct dtype_row *row;   /* NULL: of blocks */
};

/* False: no type has the number, or the name in any case. */
bool gguf_type_find(uint32_t number, struct gguf_type *ret);
bool gguf_type_find_name(const char *name, struct gguf_type *ret);

/* The number of a dtype that GGUF has. */
uint32_t gguf_type_of(enum dtype d);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_TENSOR_DTYPE_H
#define TRAIN_TENSOR_DTYPE_H

/*
 * Types of numbers. One table (dtype.c) has a row for each: what it is and its name in every format
 * that weft reads or writes. Those that weft calculates with are in `enum dtype` and come first;
 * tensors of the others are listed and copied. How numbers are converted is the backends' matter:
 * cast.c, ops/cuda, comm.
 */

#include <stdbool.h>
#include <stddef.h>

enum dtype { DTYPE_F32, DTYPE_F64, DTYPE_I32, DTYPE_BF16, DTYPE_F16, DTYPE_COUNT };

enum dtype_kind { DTYPE_FLOAT, DTYPE_INT, DTYPE_OTHER };

struct dtype_row {
    const char *name; /* in safetensors, manifests and reports: "BF16" */
    int bits;
    enum dtype_kind kind;
    int digits;          /* of DTYPE_FLOAT in `enum dtype`: binary, the leading one included */
    int order;           /* where safetensors' writer puts it: the largest first */
    const char *word;    /* torch's name, in config.json and options, too: "bfloat16"; or NULL */
    const char *storage; /* torch's class of older files: "BFloat16Storage"; or NULL */
    int gguf, gguf_file; /* numbers of a tensor's type and of general.file_type in GGUF; -1: none */
};

/* [DTYPE_COUNT] of `enum dtype`, then the others; a row without a name is the end. */
extern const struct dtype_row dtype_rows[];

/* NULL: no type has the name. */
const struct dtype_row *dtype_find_name(const char *name);
const struct dtype_row *dtype_find_word(const char *word);
/* -1: a type that weft does not calculate with. */
int dtype_of_row(const struct dtype_row *row);

size_t dtype_size(enum dtype d);
const char *dtype_name(enum dtype d);
const char *dtype_word(enum dtype d);
/* Of a type, or -1, which is none. */
bool dtype_is_float(int d);
/* Those of `enum dtype`, for a sentence: "F32, F64, ... or BF16". */
extern const char dtype_floats[];
/* A floating type that is narrower than F32. */
bool dtype_is_narrow(enum dtype d);

#endif

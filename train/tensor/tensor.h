/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_TENSOR_TENSOR_H
#define TRAIN_TENSOR_TENSOR_H

/*
 * A tensor is a value: the address of its numbers, their type and shape. It owns nothing. The inner
 * dimensions are contiguous; `stride` is the distance, in elements, between neighbours in the
 * first. So a matrix may be a range of rows or of columns of a larger one, and [tokens, heads, dim]
 * may be a part of a packed row, and nothing more general is supported. A zeroed tensor is "none".
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "train/tensor/dtype.h"

struct tensor {
    void *data;
    enum dtype dtype;
    int rank; /* 1 to 4; 0: none */
    int64_t size[4];
    int64_t stride; /* elements; rank 1: 1 */
    float *scale;   /* narrow types: on the device; NULL elsewhere */
};

/* Contiguous. */
struct tensor tensor_1d(void *data, enum dtype d, int64_t n);
struct tensor tensor_2d(void *data, enum dtype d, int64_t rows, int64_t cols);
struct tensor tensor_nd(void *data, enum dtype d, int rank, const int64_t *size);

static inline bool tensor_none(struct tensor t)
{
    return t.rank == 0;
}

int64_t tensor_count(struct tensor t); /* elements */
size_t tensor_bytes(struct tensor t);  /* of the elements, without the gaps */
bool tensor_contiguous(struct tensor t);

/* Rows begin .. begin + n - 1 of the first dimension. */
struct tensor tensor_rows(struct tensor t, int64_t begin, int64_t n);
/* Columns of a matrix. */
struct tensor tensor_cols(struct tensor t, int64_t begin, int64_t n);
/* A matrix [n, heads * dim] seen as [n, heads, dim]. */
struct tensor tensor_heads(struct tensor t, int64_t heads);
/* A contiguous tensor as one row of numbers. */
struct tensor tensor_flat(struct tensor t);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_OPS_CUDA_GEMM_LT_H
#define TRAIN_OPS_CUDA_GEMM_LT_H

/*
 * Matrix products through cuBLASLt, which is opened at run time. A product is prepared once for its
 * shape and then run any number of times; preparing may fail, running records a fault.
 *
 *     y[m,n] = op(a) op(b)       or, accumulating,  y += op(a) op(b)
 *
 * Matrices are stored by rows; op(a) is [m,k], op(b) [k,n]; ta, tb: the matrix is stored
 * transposed. Sums are in fp32; with tf32 so are products of F32 whose factors are rounded to TF32,
 * of 10 bits behind the point, as tensor cores take them.
 */

#include "train/tensor/dev.h"
#include "train/tensor/tensor.h"

enum lt_epilogue {
    LT_NONE,
    LT_BIAS,     /* + bias[n] */
    LT_GELU,     /* aux = product + bias; y = gelu(aux), by tanh */
    LT_GELU_BWD, /* y = product * gelu'(aux) */
    LT_BGRAD     /* for a weight gradient: bias[m] = the sums of op(a)'s rows */
};

struct lt_shape {
    int64_t m, n, k;
    int64_t lda, ldb, ldy, ld_aux; /* elements between rows; ld_aux 0: none */
    enum dtype in, out;            /* of a and b; of y. F32, BF16, F16 */
    enum lt_epilogue epilogue;     /* bias and aux have the type of a */
    int ta, tb, accumulate, tf32;
    int alignment; /* bytes, a power of 2, of every address */
};

/* From the alignment of the matrices that will be used. */
int lt_alignment(const void *a, const void *b, const void *y);

struct lt;
struct lt_plan;

/* An algorithm with its settings, as the library writes it; good for its version alone. */
enum { LT_WORDS = 8 };
struct lt_algorithm {
    uint64_t word[LT_WORDS];
};

/* library_path: see library.h. `workspace` bytes are what any product may ask for. */
int lt_open(struct lt **ret, struct dev *d, const char *library_path, size_t workspace,
            struct err *e);
void lt_close(struct lt *l);
const char *lt_version(const struct lt *l); /* "13.1.0" */

/*
 * The library's `choice`-th proposal for the shape, 0 being its first. The plan belongs to `l` and
 * is found again for an equal shape. ERR_RESOURCE: it has none.
 */
int lt_prepare(struct lt *l, const struct lt_shape *s, int choice, const struct lt_plan **ret,
               struct err *e);

/*
 * The plan with an algorithm that lt_algorithm gave, maybe another process. ERR_RESOURCE: the
 * library does not take it for the shape.
 */
int lt_restore(struct lt *l, const struct lt_shape *s, const struct lt_algorithm *a,
               const struct lt_plan **ret, struct err *e);
struct lt_algorithm lt_algorithm(const struct lt_plan *p);

/* On STREAM_COMPUTE; `workspace`: as large as lt_open was told. bias, aux: as the epilogue wants
 * them. */
void lt_run(struct lt *l, const struct lt_plan *p, void *y, const void *a, const void *b,
            void *bias, void *aux, void *workspace);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_OPS_CUDA_GEMM_GEMMS_H
#define TRAIN_OPS_CUDA_GEMM_GEMMS_H

/*
 * Which of cuBLASLt's algorithms does which product: one that was given (struct ops_choice, from a
 * file or a checkpoint), else, where it is asked for, the fastest of a few that are timed while the
 * step is planned, else the library's first proposal. By default nothing is timed, because two runs
 * would then differ.
 */

#include "train/ops/cuda/gemm/lt.h"
#include "train/ops/ops.h"

struct gemms;

/* `c` has what is given and whether to time; the choices are copied. */
struct gemms *gemms_open(struct lt *l, struct dev *d, const struct ops_config *c);
void gemms_close(struct gemms *g);

/* Whether the shape was decided; its plan, NULL if the library has none. */
bool gemms_find(const struct gemms *g, const struct lt_shape *s, const struct lt_plan **ret);

/* Addresses of a product, which may be overwritten, as lt_run takes them. */
struct gemms_call {
    void *y;
    const void *a, *b;
    void *bias, *aux, *workspace;
};

/*
 * Decides. `call`: the memory to time with, NULL: nothing is timed. ERR_RESOURCE: the library has
 * no algorithm for the shape.
 */
int gemms_decide(struct gemms *g, const struct lt_shape *s, const struct gemms_call *call,
                 const struct lt_plan **ret, struct err *e);

/* As in struct ops. */
bool gemms_choice(const struct gemms *g, size_t i, struct ops_choice *ret);

#endif

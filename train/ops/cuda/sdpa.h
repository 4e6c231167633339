/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_OPS_CUDA_SDPA_H
#define TRAIN_OPS_CUDA_SDPA_H

/*
 * Attention over sequences of one length through cuDNN's graph interface, in C: softmax(scale q
 * k^T) v and its gradient, in bf16 or fp16 with sums in fp32. cuDNN (9.11 or newer) is opened at
 * run time and compiles its kernels while a shape is prepared, up to a second each, so that is done
 * before the first step. Preparing may fail; running records a fault of the device.
 *
 * Matrices are [batch * tokens, heads, dim] with `stride` elements between rows, so q, k and v may
 * be parts of one packed row. With fewer key heads than query heads, heads / groups neighbouring
 * query heads share one.
 */

#include <stdbool.h>

#include "train/tensor/dev.h"
#include "train/tensor/tensor.h"

struct sdpa_shape {
    int64_t batch, tokens, heads, groups, dim; /* dim a multiple of 8, at most 256 */
    struct {
        int64_t q, k, v, o; /* forward */
        int64_t dout, dq, dk, dv;
    } stride;
    enum dtype type; /* BF16, F16 */
    float scale;
    float cap;      /* a score s becomes cap tanh(s / cap) before the mask; 0: s */
    int64_t window; /* with causal: of the last `window` keys up to the query's own; 0: all */
    bool causal;
    bool deterministic; /* backward: dq without atomic adds, for batch * heads * tokens^2 * 2 bytes
                           of workspace */
    bool backward;      /* prepare the backward too */
};

struct sdpa_tensors {
    const void *q, *k, *v;
    void *o;
    float *lse; /* [batch, heads, tokens]: log of the sum of exponentials */
    /* backward only */
    const void *dout;
    void *dq, *dk, *dv;
};

struct sdpa;
struct sdpa_plan;

/*
 * library_path: see library.h. `d` is the device that runs the plans, or NULL: plans can then be
 * prepared for the device that `properties` describes (JSON, as cuDNN reads it), but not run.
 */
int sdpa_open(struct sdpa **ret, struct dev *d, const char *library_path, const char *properties,
              struct err *e);
void sdpa_close(struct sdpa *s);
const char *sdpa_version(const struct sdpa *s); /* "9.19.0" */

/* ERR_RESOURCE: cuDNN has no kernel for the shape, or cannot compile it. */
int sdpa_prepare(struct sdpa *s, const struct sdpa_shape *shape, struct sdpa_plan **ret,
                 struct err *e);
void sdpa_plan_free(struct sdpa *s, struct sdpa_plan *p);
/* Bytes that either direction needs. */
size_t sdpa_workspace(const struct sdpa_plan *p);

/* On STREAM_COMPUTE. */
void sdpa_forward(struct sdpa *s, const struct sdpa_plan *p, const struct sdpa_tensors *t,
                  void *workspace);
void sdpa_backward(struct sdpa *s, const struct sdpa_plan *p, const struct sdpa_tensors *t,
                   void *workspace);

#endif

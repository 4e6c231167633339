/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_OPS_CUDA_GRAPH_H
#define TRAIN_OPS_CUDA_GRAPH_H

/*
 * Graphs of cuDNN's backend interface: tensors of four dimensions, operations on them in the order
 * in which they are added, and the plan that runs them. The first error stays in the graph, and
 * everything after it does nothing; graph_plan tells it.
 */

#include <cudnn.h>
#include <stdbool.h>

#include "base/core/err.h"
#include "train/tensor/cuda/library.h"

/* In the order of the names in graph.c. */
struct cudnn {
    cudnnStatus_t (*create)(cudnnHandle_t *);
    cudnnStatus_t (*destroy)(cudnnHandle_t);
    cudnnStatus_t (*set_stream)(cudnnHandle_t, cudaStream_t);
    size_t (*version)(void);
    const char *(*status)(cudnnStatus_t);
    void (*last_error)(char *, size_t);
    cudnnStatus_t (*desc_create)(cudnnBackendDescriptorType_t, cudnnBackendDescriptor_t *);
    cudnnStatus_t (*desc_destroy)(cudnnBackendDescriptor_t);
    cudnnStatus_t (*finalize)(cudnnBackendDescriptor_t);
    cudnnStatus_t (*set)(cudnnBackendDescriptor_t, cudnnBackendAttributeName_t,
                         cudnnBackendAttributeType_t, int64_t, const void *);
    cudnnStatus_t (*get)(cudnnBackendDescriptor_t, cudnnBackendAttributeName_t,
                         cudnnBackendAttributeType_t, int64_t, int64_t *, void *);
    cudnnStatus_t (*execute)(cudnnHandle_t, cudnnBackendDescriptor_t, cudnnBackendDescriptor_t);
};

int cudnn_functions(const struct library *l, struct cudnn *ret, struct err *e);

enum { GRAPH_DESCRIPTORS = 256, GRAPH_OPS = 40 };

struct graph {
    const struct cudnn *fn;
    cudnnBackendDescriptor_t owned[GRAPH_DESCRIPTORS], op[GRAPH_OPS];
    int owns, ops;
    int64_t next_id; /* of tensors that have no memory */
    cudnnStatus_t status;
    const char *failed; /* what was being built */
};

struct shape4 {
    int64_t size[4], stride[4];
};

/* Contiguous. */
struct shape4 shape4(int64_t a, int64_t b, int64_t c, int64_t d);
/* The last two dimensions exchanged, over the same memory. */
struct shape4 shape4_turned(struct shape4 s);

/* A tensor of a graph; its shape and type are kept to make others like it. */
struct node {
    cudnnBackendDescriptor_t desc;
    struct shape4 shape;
    cudnnDataType_t type;
};

void graph_init(struct graph *g, const struct cudnn *fn);
void graph_free(struct graph *g);

/* In memory that is named by `id` when the plan runs; by value: one float on the host. */
struct node graph_memory(struct graph *g, int64_t id, struct shape4 s, cudnnDataType_t type);
struct node graph_value(struct graph *g, int64_t id);
struct node graph_virtual(struct graph *g, struct shape4 s, cudnnDataType_t type);

/* Operations. The short forms make the output, virtual and in fp32, in the shape of x. */
void graph_pointwise_to(struct graph *g, cudnnPointwiseMode_t mode, const struct node *x,
                        const struct node *b, const struct node *t, const struct node *y);
struct node graph_pointwise(struct graph *g, cudnnPointwiseMode_t mode, struct node x,
                            struct node b);
struct node graph_unary(struct graph *g, cudnnPointwiseMode_t mode, struct node x);
/* Scores where query row >= key column, `otherwise` elsewhere. */
struct node graph_causal(struct graph *g, struct node scores, struct node otherwise);
/* Scores where key column + window > query row; `window` is a value. */
struct node graph_window(struct graph *g, struct node scores, struct node window,
                         struct node otherwise);
/* The derivative of a function of x (a mode that ends in _BWD) times dy. */
struct node graph_derivative(struct graph *g, cudnnPointwiseMode_t mode, struct node x,
                             struct node dy);
void graph_matmul(struct graph *g, struct node a, struct node b, struct node c);
void graph_reduce(struct graph *g, cudnnReduceTensorOp_t how, struct node x, struct node y);
void graph_reshape(struct graph *g, struct node x, struct node y);

/* What a plan is made for: the device of a handle, or one that is only described. */
struct target {
    cudnnHandle_t handle;
    cudnnBackendDescriptor_t properties;
};

/*
 * The first configuration of the heuristics that can be compiled, as a finalized plan that the
 * caller destroys, and its workspace in bytes. For a described device, where there is no GPU, the
 * plan is compiled but cannot be loaded, and NULL is given.
 */
int graph_plan(struct graph *g, struct target on, cudnnBackendDescriptor_t *ret_plan,
               size_t *ret_workspace, struct err *e);

#endif

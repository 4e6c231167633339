/* SPDX-License-Identifier: Apache-2.0 */
#include "train/ops/cuda/sdpa.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/mem.h"
#include "train/ops/cuda/graph.h"
#include "train/tensor/cuda/dev_cuda.h"

enum { OLDEST = 91100 };

/* Names of the tensors that have memory or a value. */
enum id {
    ID_Q = 1,
    ID_K,
    ID_V,
    ID_O,
    ID_LSE,
    ID_DOUT,
    ID_DQ,
    ID_DK,
    ID_DV,
    ID_SUMS,   /* fp32 [batch, heads, tokens]: of dout and o */
    ID_DQ_SUM, /* fp32: dq while it is summed up by atomic adds */
    ID_SCALE,
    ID_NOTHING, /* -INFINITY */
    ID_ONE,
    ID_CAP,
    ID_WINDOW,
    ID_END
};

struct sdpa {
    struct library library;
    struct library compiler; /* of kernels: cuDNN opens it by its name, and finds it open */
    struct cudnn fn;
    cudnnHandle_t handle; /* NULL without a device */
    cudnnBackendDescriptor_t properties;
    struct dev *dev;
    char version[32];
};

struct sdpa_plan {
    struct sdpa_shape shape;
    float window; /* of the shape, as cuDNN takes it */
    cudnnBackendDescriptor_t forward, backward;
    size_t forward_bytes, backward_bytes; /* of cuDNN's workspace */
};

/* ---- the library -------------------------------------------------------------------------------
 */

static int describe_device(struct sdpa *s, const char *properties, struct err *e)
{
    cudnnStatus_t status = s->fn.desc_create(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, &s->properties);
    if (!status)
        status = s->fn.set(s->properties, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION,
                           CUDNN_TYPE_CHAR, (int64_t)strlen(properties), properties);
    if (!status)
        status = s->fn.finalize(s->properties);
    return status ? err_set(e, ERR_RESOURCE, "cuDNN %s: the device's description: %s", s->version,
                            s->fn.status(status))
                  : 0;
}

static int connect(struct sdpa *s, const char *properties, struct err *e)
{
    size_t v = s->fn.version();
    cudnnStatus_t status = CUDNN_STATUS_SUCCESS;
    snprintf(s->version, sizeof(s->version), "%zu.%zu.%zu", v / 10000, v / 100 % 100, v % 100);
    if (v < OLDEST)
        return err_set(e, ERR_RESOURCE, "cuDNN %s is too old, 9.11 or newer is needed", s->version);
    if (!s->dev)
        return describe_device(s, properties, e);
    status = s->fn.create(&s->handle);
    if (!status)
        status = s->fn.set_stream(s->handle, dev_cuda_stream(s->dev, STREAM_COMPUTE));
    return status ? err_set(e, ERR_RESOURCE, "cuDNN %s: no handle: %s", s->version,
                            s->fn.status(status))
                  : 0;
}

int sdpa_open(struct sdpa **ret, struct dev *d, const char *library_path, const char *properties,
              struct err *e)
{
    static const char *const files[] = {"libcudnn.so.9", NULL};
    static const char *const compilers[] = {"libnvrtc.so.13", "libnvrtc.so.12", NULL};
    struct sdpa *s = mem_new(1, sizeof(*s));
    int code;
    *s = (struct sdpa){.dev = d};
    *ret = s;
    library_open(&s->compiler, library_path, compilers, NULL); /* else cuDNN looks for it */
    if ((code = library_open(&s->library, library_path, files, e)) ||
        (code = cudnn_functions(&s->library, &s->fn, e)) || (code = connect(s, properties, e))) {
        sdpa_close(s);
        *ret = NULL;
    }
    return code;
}

void sdpa_close(struct sdpa *s)
{
    if (!s)
        return;
    if (s->properties)
        s->fn.desc_destroy(s->properties);
    if (s->handle)
        s->fn.destroy(s->handle);
    library_close(&s->library);
    library_close(&s->compiler);
    free(s);
}

const char *sdpa_version(const struct sdpa *s)
{
    return s->version;
}

/* ---- graphs ------------------------------------------------------------------------------------
 */

struct build {
    struct graph g;
    const struct sdpa_shape *s;
    cudnnDataType_t type;
    struct node scale, nothing, cap;
};

/* [batch, heads, tokens, dim] of rows that are `stride` apart. */
static struct node rows(struct build *b, enum id id, int64_t heads, int64_t stride, bool turned)
{
    const struct sdpa_shape *s = b->s;
    struct shape4 t = {{s->batch, heads, s->tokens, s->dim},
                       {s->tokens * stride, s->dim, stride, 1}};
    return graph_memory(&b->g, id, turned ? shape4_turned(t) : t, b->type);
}

static struct shape4 per_query(const struct sdpa_shape *s)
{
    return shape4(s->batch, s->heads, s->tokens, 1);
}

static struct shape4 pairs(const struct sdpa_shape *s)
{
    return shape4(s->batch, s->heads, s->tokens, s->tokens);
}

static void begin(struct build *b, const struct cudnn *fn, const struct sdpa_shape *s)
{
    memset(b, 0, sizeof(*b));
    graph_init(&b->g, fn);
    b->s = s;
    b->type = s->type == DTYPE_BF16 ? CUDNN_DATA_BFLOAT16 : CUDNN_DATA_HALF;
    b->scale = graph_value(&b->g, ID_SCALE);
    if (s->causal)
        b->nothing = graph_value(&b->g, ID_NOTHING);
    if (s->cap > 0)
        b->cap = graph_value(&b->g, ID_CAP);
}

/* What the softmax takes: products scaled, capped and masked. *ret_capped is what the cap's tanh
 * takes. */
static struct node scores(struct build *b, struct node raw, struct node *ret_capped)
{
    const struct sdpa_shape *s = b->s;
    struct graph *g = &b->g;
    struct node score = graph_pointwise(g, CUDNN_POINTWISE_MUL, raw, b->scale);
    if (s->cap > 0) {
        *ret_capped = graph_pointwise(g, CUDNN_POINTWISE_DIV, score, b->cap);
        struct node capped = graph_unary(g, CUDNN_POINTWISE_TANH_FWD, *ret_capped);
        score = graph_pointwise(g, CUDNN_POINTWISE_MUL, capped, b->cap);
    }
    if (s->causal)
        score = graph_causal(g, score, b->nothing);
    if (s->window)
        score = graph_window(g, score, graph_value(g, ID_WINDOW), b->nothing);
    return score;
}

/*
 * The pattern that cuDNN knows as attention: scores, their scaling and mask, the softmax by its
 * maximum and sum, whose logarithm is kept, and the product with v.
 */
static void forward_graph(struct build *b)
{
    const struct sdpa_shape *s = b->s;
    struct graph *g = &b->g;
    struct node q = rows(b, ID_Q, s->heads, s->stride.q, false);
    struct node k = rows(b, ID_K, s->groups, s->stride.k, true);
    struct node v = rows(b, ID_V, s->groups, s->stride.v, false);
    struct node o = rows(b, ID_O, s->heads, s->stride.o, false);
    struct node lse = graph_memory(g, ID_LSE, per_query(s), CUDNN_DATA_FLOAT);
    struct node raw = graph_virtual(g, pairs(s), CUDNN_DATA_FLOAT);
    graph_matmul(g, q, k, raw);
    struct node before_cap, score = scores(b, raw, &before_cap);
    struct node max = graph_virtual(g, per_query(s), CUDNN_DATA_FLOAT);
    graph_reduce(g, CUDNN_REDUCE_TENSOR_MAX, score, max);
    struct node less = graph_pointwise(g, CUDNN_POINTWISE_SUB, score, max);
    struct node power = graph_unary(g, CUDNN_POINTWISE_EXP, less);
    struct node sum = graph_virtual(g, per_query(s), CUDNN_DATA_FLOAT);
    graph_reduce(g, CUDNN_REDUCE_TENSOR_ADD, power, sum);
    struct node log = graph_unary(g, CUDNN_POINTWISE_LOG, sum);
    graph_pointwise_to(g, CUDNN_POINTWISE_ADD, &max, &log, NULL, &lse);
    struct node p = graph_virtual(g, pairs(s), b->type);
    graph_pointwise_to(g, CUDNN_POINTWISE_DIV, &power, &sum, NULL, &p);
    graph_matmul(g, p, v, o);
}

/* x turned, in the type of the inputs: what a product takes. */
static struct node turned(struct build *b, struct node x)
{
    struct node y = graph_virtual(&b->g, shape4_turned(x.shape), b->type);
    graph_reshape(&b->g, x, y);
    return y;
}

/* The gradient of keys or values: a product for each query head, summed over those of a group. */
static void key_gradient(struct build *b, struct node left, struct node right, struct node to)
{
    const struct sdpa_shape *s = b->s;
    if (s->heads == s->groups) {
        graph_matmul(&b->g, left, right, to);
        return;
    }
    /* in fp32 cuDNN takes it and computes something else */
    struct node each = graph_virtual(&b->g, shape4(s->batch, s->heads, s->tokens, s->dim), b->type);
    graph_matmul(&b->g, left, right, each);
    graph_reduce(&b->g, CUDNN_REDUCE_TENSOR_ADD, each, to);
}

/* The sums of dout * o by query. Without the product with 1 they would not be written. */
static struct node dout_sums(struct build *b, struct node dout, struct node o)
{
    const struct sdpa_shape *s = b->s;
    struct graph *g = &b->g;
    struct node sums = graph_memory(g, ID_SUMS, per_query(s), CUDNN_DATA_FLOAT);
    struct node one = graph_value(g, ID_ONE);
    struct node product = graph_pointwise(g, CUDNN_POINTWISE_MUL, dout, o);
    struct node sum = graph_virtual(g, per_query(s), CUDNN_DATA_FLOAT);
    graph_reduce(g, CUDNN_REDUCE_TENSOR_ADD, product, sum);
    graph_pointwise_to(g, CUDNN_POINTWISE_MUL, &sum, &one, NULL, &sums);
    return sums;
}

static void query_gradient(struct build *b, struct node ds, struct node k, struct node dq)
{
    const struct sdpa_shape *s = b->s;
    struct graph *g = &b->g;
    struct node upright = turned(b, k);
    if (s->deterministic) {
        graph_matmul(g, ds, upright, dq);
        return;
    }
    struct shape4 t = shape4(s->batch, s->heads, s->tokens, s->dim);
    struct node sum = graph_memory(g, ID_DQ_SUM, t, CUDNN_DATA_FLOAT);
    graph_matmul(g, ds, upright, sum);
    graph_pointwise_to(g, CUDNN_POINTWISE_IDENTITY, &sum, NULL, NULL, &dq);
}

static void backward_graph(struct build *b)
{
    const struct sdpa_shape *s = b->s;
    struct graph *g = &b->g;
    struct node q = rows(b, ID_Q, s->heads, s->stride.q, false);
    struct node k = rows(b, ID_K, s->groups, s->stride.k, true);
    struct node v = rows(b, ID_V, s->groups, s->stride.v, true);
    struct node o = rows(b, ID_O, s->heads, s->stride.o, false);
    struct node dout = rows(b, ID_DOUT, s->heads, s->stride.dout, false);
    struct node dq = rows(b, ID_DQ, s->heads, s->stride.dq, false);
    struct node dk = rows(b, ID_DK, s->groups, s->stride.dk, false);
    struct node dv = rows(b, ID_DV, s->groups, s->stride.dv, false);
    struct node lse = graph_memory(g, ID_LSE, per_query(s), CUDNN_DATA_FLOAT);
    struct node sums = dout_sums(b, dout, o);
    struct node raw = graph_virtual(g, pairs(s), CUDNN_DATA_FLOAT);
    graph_matmul(g, q, k, raw);
    struct node before_cap, score = scores(b, raw, &before_cap);
    struct node less = graph_pointwise(g, CUDNN_POINTWISE_SUB, score, lse);
    struct node p = graph_unary(g, CUDNN_POINTWISE_EXP, less);
    key_gradient(b, turned(b, p), dout, dv);
    struct node dp = graph_virtual(g, pairs(s), CUDNN_DATA_FLOAT);
    graph_matmul(g, dout, v, dp);
    struct node off = graph_pointwise(g, CUDNN_POINTWISE_SUB, dp, sums);
    struct node slope = graph_pointwise(g, CUDNN_POINTWISE_MUL, off, p);
    if (s->cap > 0) {
        struct node times = graph_pointwise(g, CUDNN_POINTWISE_MUL, slope, b->cap);
        times = graph_derivative(g, CUDNN_POINTWISE_TANH_BWD, before_cap, times);
        slope = graph_pointwise(g, CUDNN_POINTWISE_DIV, times, b->cap);
    }
    struct node ds = graph_pointwise(g, CUDNN_POINTWISE_MUL, slope, b->scale);
    key_gradient(b, turned(b, ds), q, dk);
    query_gradient(b, ds, k, dq);
}

/* ---- plans -------------------------------------------------------------------------------------
 */

static int build_plan(struct sdpa *s, const struct sdpa_shape *shape, void (*graph)(struct build *),
                      cudnnBackendDescriptor_t *ret, size_t *ret_bytes, struct err *e)
{
    struct build b;
    begin(&b, &s->fn, shape);
    graph(&b);
    int code = graph_plan(&b.g, (struct target){s->handle, s->properties}, ret, ret_bytes, e);
    graph_free(&b.g);
    return code;
}

int sdpa_prepare(struct sdpa *s, const struct sdpa_shape *shape, struct sdpa_plan **ret,
                 struct err *e)
{
    struct sdpa_plan *p = mem_new(1, sizeof(*p));
    *p = (struct sdpa_plan){.shape = *shape, .window = (float)shape->window};
    *ret = NULL;
    BUG_ON(shape->type != DTYPE_BF16 && shape->type != DTYPE_F16, "sdpa in %s",
           dtype_name(shape->type));
    int code = build_plan(s, shape, forward_graph, &p->forward, &p->forward_bytes, e);
    if (!code && shape->backward)
        code = build_plan(s, shape, backward_graph, &p->backward, &p->backward_bytes, e);
    if (code) {
        sdpa_plan_free(s, p);
        return err_wrap(e, "attention %s, %lld x %lld tokens, %lld heads on %lld of %lld",
                        dtype_name(shape->type), (long long)shape->batch, (long long)shape->tokens,
                        (long long)shape->heads, (long long)shape->groups, (long long)shape->dim);
    }
    *ret = p;
    return 0;
}

void sdpa_plan_free(struct sdpa *s, struct sdpa_plan *p)
{
    if (p && p->forward)
        s->fn.desc_destroy(p->forward);
    if (p && p->backward)
        s->fn.desc_destroy(p->backward);
    free(p);
}

static size_t aligned(size_t bytes)
{
    return (bytes + 255) / 256 * 256;
}

static size_t sums_bytes(const struct sdpa_shape *s)
{
    return aligned((size_t)(s->batch * s->heads * s->tokens) * sizeof(float));
}

static size_t dq_sum_bytes(const struct sdpa_shape *s)
{
    return s->deterministic ? 0 : sums_bytes(s) * (size_t)s->dim;
}

size_t sdpa_workspace(const struct sdpa_plan *p)
{
    size_t backward = 0;
    if (p->shape.backward)
        backward = sums_bytes(&p->shape) + dq_sum_bytes(&p->shape) + p->backward_bytes;
    return backward > p->forward_bytes ? backward : p->forward_bytes;
}

/* ---- running -----------------------------------------------------------------------------------
 */

struct bindings {
    int64_t id[ID_END];
    void *p[ID_END];
    int n;
};

static void bind(struct bindings *b, enum id id, const void *p)
{
    b->id[b->n] = id;
    b->p[b->n++] = (void *)p;
}

static void execute(struct sdpa *s, cudnnBackendDescriptor_t plan, const struct bindings *b,
                    void *workspace, const char *what)
{
    cudnnBackendDescriptor_t pack = NULL;
    cudnnStatus_t status = s->fn.desc_create(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, &pack);
    if (!status)
        status = s->fn.set(pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, b->n, b->id);
    if (!status)
        status =
            s->fn.set(pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, b->n, b->p);
    if (!status)
        status =
            s->fn.set(pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &workspace);
    if (!status)
        status = s->fn.finalize(pack);
    if (!status)
        status = s->fn.execute(s->handle, plan, pack);
    if (pack)
        s->fn.desc_destroy(pack);
    if (status)
        dev_cuda_fail(s->dev, what, s->fn.status(status));
}

static const float nothing = -INFINITY, one = 1;

static void bind_forward(struct bindings *b, const struct sdpa_plan *p,
                         const struct sdpa_tensors *t)
{
    bind(b, ID_Q, t->q);
    bind(b, ID_K, t->k);
    bind(b, ID_V, t->v);
    bind(b, ID_O, t->o);
    bind(b, ID_LSE, t->lse);
    bind(b, ID_SCALE, &p->shape.scale);
    if (p->shape.causal)
        bind(b, ID_NOTHING, &nothing);
    if (p->shape.cap > 0)
        bind(b, ID_CAP, &p->shape.cap);
    if (p->shape.window)
        bind(b, ID_WINDOW, &p->window);
}

void sdpa_forward(struct sdpa *s, const struct sdpa_plan *p, const struct sdpa_tensors *t,
                  void *workspace)
{
    struct bindings b = {.n = 0};
    bind_forward(&b, p, t);
    execute(s, p->forward, &b, workspace, "attention");
}

void sdpa_backward(struct sdpa *s, const struct sdpa_plan *p, const struct sdpa_tensors *t,
                   void *workspace)
{
    struct bindings b = {.n = 0};
    char *at = workspace;
    bind_forward(&b, p, t);
    bind(&b, ID_DOUT, t->dout);
    bind(&b, ID_DQ, t->dq);
    bind(&b, ID_DK, t->dk);
    bind(&b, ID_DV, t->dv);
    bind(&b, ID_ONE, &one);
    bind(&b, ID_SUMS, at);
    at += sums_bytes(&p->shape);
    if (!p->shape.deterministic)
        bind(&b, ID_DQ_SUM, at);
    at += dq_sum_bytes(&p->shape);
    execute(s, p->backward, &b, at, "attention_bwd");
}

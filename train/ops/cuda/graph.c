/* SPDX-License-Identifier: Apache-2.0 */
#include "train/ops/cuda/graph.h"

#include <string.h>

enum { CONFIGS = 8 };

static const char *const names[] = {
    "cudnnCreate",
    "cudnnDestroy",
    "cudnnSetStream",
    "cudnnGetVersion",
    "cudnnGetErrorString",
    "cudnnGetLastErrorString",
    "cudnnBackendCreateDescriptor",
    "cudnnBackendDestroyDescriptor",
    "cudnnBackendFinalize",
    "cudnnBackendSetAttribute",
    "cudnnBackendGetAttribute",
    "cudnnBackendExecute",
};

int cudnn_functions(const struct library *l, struct cudnn *ret, struct err *e)
{
    return library_functions(l, names, (int)(sizeof(names) / sizeof(names[0])), ret, e);
}

struct shape4 shape4(int64_t a, int64_t b, int64_t c, int64_t d)
{
    return (struct shape4){{a, b, c, d}, {b * c * d, c * d, d, 1}};
}

struct shape4 shape4_turned(struct shape4 s)
{
    return (struct shape4){{s.size[0], s.size[1], s.size[3], s.size[2]},
                           {s.stride[0], s.stride[1], s.stride[3], s.stride[2]}};
}

void graph_init(struct graph *g, const struct cudnn *fn)
{
    memset(g, 0, sizeof(*g));
    g->fn = fn;
    g->next_id = 1000;
}

void graph_free(struct graph *g)
{
    while (g->owns)
        g->fn->desc_destroy(g->owned[--g->owns]);
}

/* False once something has failed. */
static bool note(struct graph *g, const char *what, cudnnStatus_t status)
{
    if (status && !g->status) {
        g->status = status;
        g->failed = what;
    }
    return !g->status;
}

static cudnnBackendDescriptor_t create(struct graph *g, cudnnBackendDescriptorType_t type)
{
    cudnnBackendDescriptor_t d = NULL;
    BUG_ON(g->owns == GRAPH_DESCRIPTORS, "a graph of more than %d descriptors", g->owns);
    if (!g->status && note(g, "descriptor", g->fn->desc_create(type, &d)))
        g->owned[g->owns++] = d;
    return d;
}

static void set(struct graph *g, cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name,
                cudnnBackendAttributeType_t type, int64_t n, const void *value)
{
    if (!g->status)
        note(g, "attribute", g->fn->set(d, name, type, n, value));
}

static void set_desc(struct graph *g, cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name,
                     cudnnBackendDescriptor_t value)
{
    set(g, d, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &value);
}

static void set_type(struct graph *g, cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name,
                     cudnnDataType_t type)
{
    set(g, d, name, CUDNN_TYPE_DATA_TYPE, 1, &type);
}

static void finish(struct graph *g, cudnnBackendDescriptor_t d, const char *what)
{
    if (!g->status)
        note(g, what, g->fn->finalize(d));
}

/* ---- tensors -----------------------------------------------------------------------------------
 */

static struct node tensor(struct graph *g, int64_t id, struct shape4 s, cudnnDataType_t type,
                          bool is_virtual, bool by_value)
{
    const int64_t alignment = 16;
    struct node t = {create(g, CUDNN_BACKEND_TENSOR_DESCRIPTOR), s, type};
    set_type(g, t.desc, CUDNN_ATTR_TENSOR_DATA_TYPE, type);
    set(g, t.desc, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, s.size);
    set(g, t.desc, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4, s.stride);
    set(g, t.desc, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &id);
    set(g, t.desc, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, &alignment);
    set(g, t.desc, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, &is_virtual);
    set(g, t.desc, CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, 1, &by_value);
    finish(g, t.desc, "tensor");
    return t;
}

struct node graph_memory(struct graph *g, int64_t id, struct shape4 s, cudnnDataType_t type)
{
    return tensor(g, id, s, type, false, false);
}

struct node graph_value(struct graph *g, int64_t id)
{
    return tensor(g, id, shape4(1, 1, 1, 1), CUDNN_DATA_FLOAT, false, true);
}

struct node graph_virtual(struct graph *g, struct shape4 s, cudnnDataType_t type)
{
    return tensor(g, g->next_id++, s, type, true, false);
}

/* ---- operations --------------------------------------------------------------------------------
 */

static void add(struct graph *g, cudnnBackendDescriptor_t op, const char *what)
{
    finish(g, op, what);
    BUG_ON(g->ops == GRAPH_OPS, "a graph of more than %d operations", g->ops);
    if (!g->status)
        g->op[g->ops++] = op;
}

static cudnnBackendDescriptor_t mode_desc(struct graph *g, cudnnPointwiseMode_t mode,
                                          cudnnDataType_t precision, int64_t axis)
{
    cudnnBackendDescriptor_t d = create(g, CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
    set(g, d, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &mode);
    set_type(g, d, CUDNN_ATTR_POINTWISE_MATH_PREC, precision);
    if (axis >= 0)
        set(g, d, CUDNN_ATTR_POINTWISE_AXIS, CUDNN_TYPE_INT64, 1, &axis);
    finish(g, d, "pointwise mode");
    return d;
}

static void pointwise(struct graph *g, cudnnBackendDescriptor_t mode, const struct node *x,
                      const struct node *b, const struct node *t, const struct node *y)
{
    cudnnBackendDescriptor_t op = create(g, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    set_desc(g, op, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, mode);
    set_desc(g, op, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x->desc);
    if (b)
        set_desc(g, op, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, b->desc);
    if (t)
        set_desc(g, op, CUDNN_ATTR_OPERATION_POINTWISE_TDESC, t->desc);
    set_desc(g, op, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y->desc);
    add(g, op, "pointwise operation");
}

void graph_pointwise_to(struct graph *g, cudnnPointwiseMode_t mode, const struct node *x,
                        const struct node *b, const struct node *t, const struct node *y)
{
    pointwise(g, mode_desc(g, mode, CUDNN_DATA_FLOAT, -1), x, b, t, y);
}

struct node graph_pointwise(struct graph *g, cudnnPointwiseMode_t mode, struct node x,
                            struct node b)
{
    const int64_t *s = x.shape.size;
    struct node y = graph_virtual(g, shape4(s[0], s[1], s[2], s[3]), CUDNN_DATA_FLOAT);
    graph_pointwise_to(g, mode, &x, &b, NULL, &y);
    return y;
}

struct node graph_unary(struct graph *g, cudnnPointwiseMode_t mode, struct node x)
{
    struct node y = graph_virtual(g, x.shape, CUDNN_DATA_FLOAT);
    graph_pointwise_to(g, mode, &x, NULL, NULL, &y);
    return y;
}

static struct node index_along(struct graph *g, struct node like, int64_t axis)
{
    struct node y = graph_virtual(g, like.shape, CUDNN_DATA_INT32);
    pointwise(g, mode_desc(g, CUDNN_POINTWISE_GEN_INDEX, CUDNN_DATA_INT32, axis), &like, NULL, NULL,
              &y);
    return y;
}

struct node graph_causal(struct graph *g, struct node scores, struct node otherwise)
{
    struct node row = index_along(g, scores, 2), column = index_along(g, scores, 3);
    struct node mask = graph_virtual(g, scores.shape, CUDNN_DATA_BOOLEAN);
    struct node y = graph_virtual(g, scores.shape, CUDNN_DATA_FLOAT);
    pointwise(g, mode_desc(g, CUDNN_POINTWISE_CMP_GE, CUDNN_DATA_BOOLEAN, -1), &row, &column, NULL,
              &mask);
    graph_pointwise_to(g, CUDNN_POINTWISE_BINARY_SELECT, &scores, &otherwise, &mask, &y);
    return y;
}

struct node graph_window(struct graph *g, struct node scores, struct node window,
                         struct node otherwise)
{
    struct node row = index_along(g, scores, 2), column = index_along(g, scores, 3);
    struct node end = graph_virtual(g, scores.shape, CUDNN_DATA_FLOAT);
    struct node mask = graph_virtual(g, scores.shape, CUDNN_DATA_BOOLEAN);
    struct node y = graph_virtual(g, scores.shape, CUDNN_DATA_FLOAT);
    graph_pointwise_to(g, CUDNN_POINTWISE_ADD, &column, &window, NULL, &end);
    pointwise(g, mode_desc(g, CUDNN_POINTWISE_CMP_GT, CUDNN_DATA_BOOLEAN, -1), &end, &row, NULL,
              &mask);
    graph_pointwise_to(g, CUDNN_POINTWISE_BINARY_SELECT, &scores, &otherwise, &mask, &y);
    return y;
}

struct node graph_derivative(struct graph *g, cudnnPointwiseMode_t mode, struct node x,
                             struct node dy)
{
    struct node dx = graph_virtual(g, x.shape, CUDNN_DATA_FLOAT);
    cudnnBackendDescriptor_t how = mode_desc(g, mode, CUDNN_DATA_FLOAT, -1);
    cudnnBackendDescriptor_t op = create(g, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    set_desc(g, op, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, how);
    set_desc(g, op, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x.desc);
    set_desc(g, op, CUDNN_ATTR_OPERATION_POINTWISE_DYDESC, dy.desc);
    set_desc(g, op, CUDNN_ATTR_OPERATION_POINTWISE_DXDESC, dx.desc);
    add(g, op, "derivative");
    return dx;
}

void graph_matmul(struct graph *g, struct node a, struct node b, struct node c)
{
    cudnnBackendDescriptor_t how = create(g, CUDNN_BACKEND_MATMUL_DESCRIPTOR);
    set_type(g, how, CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_DATA_FLOAT);
    finish(g, how, "product");
    cudnnBackendDescriptor_t op = create(g, CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
    set_desc(g, op, CUDNN_ATTR_OPERATION_MATMUL_DESC, how);
    set_desc(g, op, CUDNN_ATTR_OPERATION_MATMUL_ADESC, a.desc);
    set_desc(g, op, CUDNN_ATTR_OPERATION_MATMUL_BDESC, b.desc);
    set_desc(g, op, CUDNN_ATTR_OPERATION_MATMUL_CDESC, c.desc);
    add(g, op, "product");
}

void graph_reduce(struct graph *g, cudnnReduceTensorOp_t how, struct node x, struct node y)
{
    cudnnBackendDescriptor_t d = create(g, CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
    set(g, d, CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, 1, &how);
    set_type(g, d, CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_DATA_FLOAT);
    finish(g, d, "reduction");
    cudnnBackendDescriptor_t op = create(g, CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
    set_desc(g, op, CUDNN_ATTR_OPERATION_REDUCTION_DESC, d);
    set_desc(g, op, CUDNN_ATTR_OPERATION_REDUCTION_XDESC, x.desc);
    set_desc(g, op, CUDNN_ATTR_OPERATION_REDUCTION_YDESC, y.desc);
    add(g, op, "reduction");
}

void graph_reshape(struct graph *g, struct node x, struct node y)
{
    cudnnBackendDescriptor_t op = create(g, CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR);
    set_desc(g, op, CUDNN_ATTR_OPERATION_RESHAPE_XDESC, x.desc);
    set_desc(g, op, CUDNN_ATTR_OPERATION_RESHAPE_YDESC, y.desc);
    add(g, op, "reshape");
}

/* ---- plans -------------------------------------------------------------------------------------
 */

/* The configurations that one mode of the heuristics proposes; owned by the graph. */
static int propose(struct graph *g, cudnnBackendDescriptor_t whole,
                   cudnnBackendDescriptor_t properties, cudnnBackendHeurMode_t mode,
                   cudnnBackendDescriptor_t ret[CONFIGS])
{
    int64_t n = 0;
    cudnnBackendDescriptor_t h = create(g, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
    set_desc(g, h, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, whole);
    set(g, h, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
    if (properties)
        set_desc(g, h, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, properties);
    finish(g, h, "heuristics");
    for (int i = 0; i < CONFIGS; i++)
        ret[i] = create(g, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    if (!g->status)
        note(g, "heuristics",
             g->fn->get(h, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, CONFIGS,
                        &n, ret));
    return g->status ? 0 : (int)(n < CONFIGS ? n : CONFIGS);
}

static cudnnStatus_t compile(struct graph *g, cudnnBackendDescriptor_t config, struct target on,
                             cudnnBackendDescriptor_t *ret, size_t *ret_workspace)
{
    cudnnBackendDescriptor_t p = NULL;
    int64_t bytes = 0, n;
    cudnnStatus_t status = g->fn->desc_create(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, &p);
    if (!status)
        status = g->fn->set(p, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG,
                            CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &config);
    if (!status && on.properties)
        status = g->fn->set(p, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                            1, &on.properties);
    if (!status && on.handle)
        status = g->fn->set(p, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &on.handle);
    if (!status)
        status = g->fn->finalize(p);
    if (status == CUDNN_STATUS_EXECUTION_FAILED_CUDA_DRIVER && on.properties) {
        g->fn->desc_destroy(p); /* compiled for a described device; there is none to load it */
        *ret = NULL;
        *ret_workspace = 0;
        return CUDNN_STATUS_SUCCESS;
    }
    if (!status)
        status = g->fn->get(p, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &n,
                            &bytes);
    if (status && p)
        g->fn->desc_destroy(p);
    *ret = status ? NULL : p;
    *ret_workspace = (size_t)bytes;
    return status;
}

int graph_plan(struct graph *g, struct target on, cudnnBackendDescriptor_t *ret_plan,
               size_t *ret_workspace, struct err *e)
{
    static const cudnnBackendHeurMode_t modes[] = {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK};
    cudnnBackendDescriptor_t config[CONFIGS], whole;
    cudnnStatus_t last = CUDNN_STATUS_NOT_SUPPORTED;
    char why[512] = "";
    *ret_plan = NULL;
    whole = create(g, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    set(g, whole, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, g->ops, g->op);
    if (on.handle)
        set(g, whole, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &on.handle);
    finish(g, whole, "graph");
    for (int m = 0; m < 2 && !g->status; m++) {
        int n = propose(g, whole, on.properties, modes[m], config);
        for (int i = 0; i < n; i++) {
            last = compile(g, config[i], on, ret_plan, ret_workspace);
            if (!last)
                return 0;
        }
    }
    g->fn->last_error(why, sizeof(why));
    return err_set(e, ERR_RESOURCE, "cuDNN: %s: %s (%d): %s", g->failed ? g->failed : "no plan",
                   g->fn->status(g->status ? g->status : last), (int)(g->status ? g->status : last),
                   why);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "train/ops/cuda/ops_cuda.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/log.h"
#include "base/core/mem.h"
#include "train/ops/cuda/attend.h"
#include "train/ops/cuda/attention_table.h"
#include "train/ops/cuda/gemm/gemms.h"
#include "train/ops/cuda/kernels.h"
#include "train/ops/cuda/gemm/lt.h"
#include "train/tensor/cuda/dev_cuda.h"

enum { LT_WORKSPACE = 32 << 20, ALIGN = 256 };

/* The table's state. */
struct cuda_ops {
    struct lt *lt; /* this and the next two: NULL while the device is not open */
    struct attend *attend;
    struct gemms *gemms;
    struct attention_uses uses;
    bool tf32; /* products of F32, those of attention too */
    bool tune;
};

static struct cuda_ops *state_of(const struct ops *o)
{
    return o->state;
}

/* A matrix that cuBLASLt is not asked about: without elements, or a sum of none. */
static bool trivial(const struct matmul_args *a)
{
    return !tensor_count(a->y) || !a->a.size[a->ta ? 0 : 1];
}

/* What the library does with a product of 16 bits before it is written; the rest is
 * cuda_epilogue's. Its GELU is that by tanh. */
static enum lt_epilogue epilogue_of(const struct matmul_args *a)
{
    bool aligned = ((uintptr_t)a->pre.data | (uintptr_t)a->bias.data) % 16 == 0;
    if (dtype_size(a->a.dtype) != 2 || !aligned)
        return LT_NONE;
    if (a->act == ACT_GELU_TANH && a->act_bwd)
        return LT_GELU_BWD;
    if (a->act == ACT_GELU_TANH && !tensor_none(a->pre) && !tensor_none(a->bias))
        return LT_GELU;
    return a->act == ACT_NONE && !tensor_none(a->bias) ? LT_BIAS : LT_NONE;
}

static struct lt_shape shape_of(const struct matmul_args *a, bool tf32)
{
    struct lt_shape s;
    memset(&s, 0, sizeof(s));
    s.m = a->y.size[0];
    s.n = a->y.size[1];
    s.k = a->a.size[a->ta ? 0 : 1];
    s.lda = a->a.stride;
    s.ldb = a->b.stride;
    s.ldy = a->y.stride;
    s.in = a->a.dtype;
    s.out = a->y.dtype;
    s.ta = a->ta;
    s.tb = a->tb;
    s.accumulate = a->accumulate;
    s.tf32 = tf32 && a->a.dtype == DTYPE_F32;
    s.epilogue = epilogue_of(a);
    s.ld_aux = s.epilogue == LT_GELU || s.epilogue == LT_GELU_BWD ? a->pre.stride : 0;
    s.alignment = lt_alignment(a->a.data, a->b.data, a->y.data);
    return s;
}

static size_t cuda_matmul_scratch(const struct dev_desc *d, const void *args)
{
    (void)d;
    return LT_WORKSPACE + cuda_dbias_scratch(args);
}

/*
 * The plan of a product, with the epilogue if the library has one for the shape (`*ret_fused`),
 * else without. It was made if the step was planned; a decoder's prompts have lengths of their own.
 */
static int plan_product(struct ops *o, const struct matmul_args *a, const struct gemms_call *call,
                        const struct lt_plan **ret, bool *ret_fused, struct err *e)
{
    struct gemms *g = state_of(o)->gemms;
    struct lt_shape shape = shape_of(a, state_of(o)->tf32);
    *ret_fused = shape.epilogue != LT_NONE;
    if (*ret_fused) {
        if (!gemms_find(g, &shape, ret) && gemms_decide(g, &shape, call, ret, e))
            *ret = NULL;
        if (*ret)
            return 0;
        shape.epilogue = LT_NONE;
        shape.ld_aux = 0;
        *ret_fused = false;
    }
    return gemms_find(g, &shape, ret) && *ret ? 0 : gemms_decide(g, &shape, call, ret, e);
}

/* Memory of the step's own to time with, which holds nothing yet: tensors and workspace. */
static int tune_matmul(struct ops *o, const struct matmul_args *a, struct err *e)
{
    size_t mark = slab_mark(o->workspace);
    const struct gemms_call call = {.y = a->y.data,
                                    .a = a->a.data,
                                    .b = a->b.data,
                                    .bias = a->bias.data,
                                    .aux = a->pre.data,
                                    .workspace = slab_bytes(o->workspace, LT_WORKSPACE)};
    const struct lt_plan *plan;
    bool fused;
    cuda_noise(o, a->a);
    cuda_noise(o, a->b);
    int code = plan_product(o, a, &call, &plan, &fused, e);
    slab_reset(o->workspace, mark);
    return code;
}

static int prepare_matmul(struct ops *o, const void *args, struct err *e)
{
    const struct lt_plan *plan;
    struct lt_shape shape;
    bool fused;
    if (trivial(args))
        return 0;
    shape = shape_of(args, state_of(o)->tf32);
    if (state_of(o)->tune && !gemms_find(state_of(o)->gemms, &shape, &plan))
        return tune_matmul(o, args, e);
    return plan_product(o, args, NULL, &plan, &fused, e);
}

static bool matmul_choice(const struct ops *o, size_t i, struct ops_choice *ret)
{
    return gemms_choice(state_of(o)->gemms, i, ret);
}

/* True if bias and activation are done with it. */
static bool product(struct ops *o, const struct matmul_args *a, void *workspace)
{
    const struct lt_plan *plan;
    bool fused;
    struct err e;
    if (plan_product(o, a, NULL, &plan, &fused, &e))
        dev_cuda_fail(o->dev, "cuBLASLt", e.msg);
    else
        lt_run(state_of(o)->lt, plan, a->y.data, a->a.data, a->b.data, fused ? a->bias.data : NULL,
               fused ? a->pre.data : NULL, workspace);
    return fused;
}

static void cuda_matmul(struct ops *o, const void *args, void *scratch)
{
    const struct matmul_args *a = args;
    bool fused = false;
    if (!trivial(a))
        fused = product(o, a, scratch);
    else if (!a->accumulate && tensor_count(a->y))
        cuda_fill(o, &(struct fill_args){.y = a->y}, NULL);
    if (!fused)
        cuda_epilogue(o, a);
    cuda_dbias(o, a, (char *)scratch + LT_WORKSPACE);
    dev_cuda_check(o->dev, "launch");
}

/* ---- attention: cuDNN's, else our own ----------------------------------------------------------
 */

static void run_attention(struct ops *o, const void *args, void *scratch)
{
    const struct attention_call c = {.desc = &o->dev->desc, .fwd = args, .tf32 = state_of(o)->tf32};
    if (!attend_forward(state_of(o)->attend, args, scratch))
        attention_row_of(&c, ATTENTION_OWN)->forward(o, args, scratch);
}

static void run_attention_bwd(struct ops *o, const void *args, void *scratch)
{
    const struct attention_bwd_args *b = args;
    const struct attention_call c = {
        .desc = &o->dev->desc, .fwd = &b->fwd, .bwd = b, .tf32 = state_of(o)->tf32};
    if (!attend_backward(state_of(o)->attend, args, scratch))
        attention_row_of(&c, ATTENTION_OWN)->backward(o, args, scratch);
}

/* From the shape alone: what cuDNN may need also where it is absent. */
static size_t attention_scratch(const struct dev_desc *d, const void *args)
{
    const struct attention_call c = {.desc = d, .fwd = args};
    struct attend_parts p;
    bool asked = attention_row_is_cudnn(attention_row_of(&c, ATTENTION_CUDNN));
    return asked && attend_cut(d, args, &p) ? p.bytes : 0;
}

static size_t attention_bwd_scratch(const struct dev_desc *d, const void *args)
{
    const struct attention_bwd_args *b = args;
    size_t own = attention_own_scratch(d, args), other = attention_scratch(d, &b->fwd);
    return own > other ? own : other;
}

static int prepare_attention(struct ops *o, const void *args, struct err *e)
{
    struct cuda_ops *s = state_of(o);
    const struct attention_call c = {.desc = &o->dev->desc, .fwd = args, .tf32 = s->tf32};
    const struct attention_row *r = attention_row_of(&c, ATTENTION_CUDNN);
    const char *why = NULL;
    (void)e;
    if (attention_row_is_cudnn(r) && s->attend && !attend_prepare(s->attend, args, &why))
        r = attention_row_of(&c, ATTENTION_OWN);
    attention_uses_add(&s->uses, r, &c, o->layer, s->attend ? attend_name(s->attend) : NULL, why);
    o->entry[OP_ATTENTION].backend = o->entry[OP_ATTENTION_BWD].backend = s->uses.names;
    return 0;
}

static bool attention_served(const struct ops *o, size_t i, struct ops_served *ret)
{
    return attention_uses_get(&state_of(o)->uses, i, ret);
}

static void cuda_ops_close(struct ops *o)
{
    struct cuda_ops *s = o->state;
    if (s->lt) {
        gemms_close(s->gemms);
        lt_close(s->lt);
    }
    attend_close(s->attend);
    attention_uses_finish(&s->uses);
    free(s);
    o->state = NULL;
}

static const struct op_entry entries[OP_COUNT] = {
    [OP_EMBED] = {cuda_embed, NULL, "cuda"},
    [OP_EMBED_BWD] = {cuda_embed_bwd, cuda_embed_bwd_scratch, "cuda"},
    [OP_NORM] = {cuda_norm, NULL, "cuda"},
    [OP_NORM_BWD] = {cuda_norm_bwd, cuda_norm_bwd_scratch, "cuda"},
    [OP_MATMUL] = {cuda_matmul, cuda_matmul_scratch, "cublasLt", prepare_matmul},
    [OP_GLU] = {cuda_glu, NULL, "cuda"},
    [OP_GLU_BWD] = {cuda_glu_bwd, NULL, "cuda"},
    [OP_ROPE] = {cuda_rope, NULL, "cuda"},
    [OP_ATTENTION] = {run_attention, attention_scratch, "own", prepare_attention},
    [OP_ATTENTION_BWD] = {run_attention_bwd, attention_bwd_scratch, "own"},
    [OP_XENT_STATS] = {cuda_xent_stats, NULL, "cuda"},
    [OP_XENT_LOSS] = {cuda_xent_loss, NULL, "cuda"},
    [OP_ADAMW] = {cuda_adamw, NULL, "cuda"},
    [OP_SGD] = {cuda_sgd, NULL, "cuda"},
    [OP_MOMENTS] = {cuda_moments, cuda_moments_scratch, "cuda"},
    [OP_GSNR] = {cuda_gsnr, NULL, "cuda"},
    [OP_MOMENTUM] = {cuda_momentum, NULL, "cuda"},
    [OP_DECAYED] = {cuda_decayed, NULL, "cuda"},
    [OP_COMBINE] = {cuda_combine, NULL, "cuda"},
    [OP_UNIT] = {cuda_unit, cuda_unit_scratch, "cuda"},
    [OP_SUMSQ] = {cuda_sumsq, cuda_sumsq_scratch, "cuda"},
    [OP_CLIP] = {cuda_clip, NULL, "cuda"},
    [OP_SELECT] = {cuda_select, NULL, "cuda"},
    [OP_FILL] = {cuda_fill, NULL, "cuda"},
    [OP_COPY] = {cuda_copy, NULL, "cuda"},
    [OP_ROUTE] = {cuda_route, NULL, "cuda"},
    [OP_ROUTE_BWD] = {cuda_route_bwd, NULL, "cuda"},
    [OP_ROUTE_LOSS] = {cuda_route_loss, cuda_route_loss_scratch, "cuda"},
    [OP_PERMUTE] = {cuda_permute, NULL, "cuda"},
    [OP_PERMUTE_BWD] = {cuda_permute_bwd, NULL, "cuda"},
    [OP_UNPERMUTE] = {cuda_unpermute, NULL, "cuda"},
    [OP_UNPERMUTE_BWD] = {cuda_unpermute_bwd, NULL, "cuda"},
    [OP_GROUPED] = {cuda_grouped, NULL, "cuda"},
    [OP_GROUPED_BWD] = {cuda_grouped_bwd, NULL, "cuda"},
    [OP_GATE] = {cuda_gate, NULL, "cuda"},
    [OP_GATE_BWD] = {cuda_gate_bwd, NULL, "cuda"},
    [OP_CAP] = {cuda_cap, NULL, "cuda"},
    [OP_HEAD_NORM] = {cuda_head_norm, NULL, "cuda"},
    [OP_HEAD_NORM_BWD] = {cuda_head_norm_bwd, cuda_head_norm_bwd_scratch, "cuda"},
};

static int open_table(struct ops *o, struct dev *d, struct slab *workspace,
                      const struct ops_config *c, struct err *e)
{
    struct cuda_ops *state = mem_new(1, sizeof(*state));
    *o = (struct ops){.dev = d, .workspace = workspace, .layer = -1, .call = ops_run};
    ops_set_types(o, c->real, c->narrow);
    memcpy(o->entry, entries, sizeof(entries));
    if (c->tf32 && c->real == DTYPE_F32)
        o->entry[OP_MATMUL].backend = "cublasLt in TF32";
    state->tf32 = c->tf32 && c->real == DTYPE_F32;
    o->served = attention_served;
    o->state = state;
    o->close = cuda_ops_close;
    if (!d->fn) { /* nothing runs before the device is open, nor is a library asked */
        o->entry[OP_MATMUL].prepare = NULL;
        return 0;
    }
    int code = lt_open(&state->lt, d, c->library_path, LT_WORKSPACE, e);
    if (code) {
        ops_close(o);
        err_wrap(e, "%s", d->desc.name);
        return err_hint(e, "--library-path names the folder of libcublasLt.so");
    }
    state->attend = attend_open(d, c->library_path);
    state->gemms = gemms_open(state->lt, d, c);
    state->tune = c->tune;
    o->choice = matmul_choice;
    if (*attend_why(state->attend))
        log_debug("attention by own kernels: %s", attend_why(state->attend));
    return 0;
}

int ops_cuda_open(struct ops *o, struct dev *d, struct slab *workspace, const struct ops_config *c,
                  struct err *e)
{
    if (c->kernels)
        return err_set(e, ERR_USAGE, "--kernels %s: a GPU has one set of kernels", c->kernels);
    BUG_ON(c->real != DTYPE_F32 && c->real != DTYPE_BF16 && c->real != DTYPE_F16,
           "ops in %s on a GPU", dtype_name(c->real));
    BUG_ON((c->narrow.grad || c->narrow.master) && c->real != DTYPE_BF16,
           "gradients or master weights in bf16 beside %s", dtype_name(c->real));
    return open_table(o, d, workspace, c, e);
}

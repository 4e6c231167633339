/* SPDX-License-Identifier: Apache-2.0 */
#include "train/ops/ops.h"

#include <stdio.h>

#include "train/ops/check.h"
#include "train/ops/segments.h"
#include "train/ops/values.h"
#include "train/ops/widen.h"

static const char *const names[OP_COUNT] = {
    [OP_EMBED] = "embed",
    [OP_EMBED_BWD] = "embed_bwd",
    [OP_NORM] = "norm",
    [OP_NORM_BWD] = "norm_bwd",
    [OP_MATMUL] = "matmul",
    [OP_GLU] = "glu",
    [OP_GLU_BWD] = "glu_bwd",
    [OP_ROPE] = "rope",
    [OP_ATTENTION] = "attention",
    [OP_ATTENTION_BWD] = "attention_bwd",
    [OP_MERGE] = "merge",
    [OP_XENT_STATS] = "xent_stats",
    [OP_XENT_LOSS] = "xent_loss",
    [OP_ADAMW] = "adamw",
    [OP_SGD] = "sgd",
    [OP_SUMSQ] = "sumsq",
    [OP_CLIP] = "clip",
    [OP_FILL] = "fill",
    [OP_COPY] = "copy",
    [OP_ROUTE] = "route",
    [OP_ROUTE_BWD] = "route_bwd",
    [OP_ROUTE_LOSS] = "route_loss",
    [OP_PERMUTE] = "permute",
    [OP_PERMUTE_BWD] = "permute_bwd",
    [OP_UNPERMUTE] = "unpermute",
    [OP_UNPERMUTE_BWD] = "unpermute_bwd",
    [OP_GROUPED] = "grouped",
    [OP_GROUPED_BWD] = "grouped_bwd",
    [OP_GATE] = "gate",
    [OP_GATE_BWD] = "gate_bwd",
    [OP_CAP] = "cap",
    [OP_HEAD_NORM] = "head_norm",
    [OP_HEAD_NORM_BWD] = "head_norm_bwd",
    [OP_MOMENTS] = "moments",
    [OP_GSNR] = "gsnr",
    [OP_MOMENTUM] = "momentum",
    [OP_DECAYED] = "decayed",
    [OP_COMBINE] = "combine",
    [OP_UNIT] = "unit",
    [OP_SELECT] = "select",
};

const char *op_name(enum op op)
{
    BUG_ON(op >= OP_COUNT, "op %d", (int)op);
    return names[op];
}

void ops_close(struct ops *o)
{
    if (o->close)
        o->close(o);
    o->close = NULL;
}

static void name_fault(const struct ops *o, enum op op)
{
    char where[48];
    if (o->layer < 0)
        snprintf(where, sizeof(where), "%s", op_name(op));
    else
        snprintf(where, sizeof(where), "%s of layer %d", op_name(op), o->layer);
    dev_fault_where(o->dev, where);
}

void ops_run(struct ops *o, enum op op, const void *args)
{
    const struct op_entry *entry = &o->entry[op];
    size_t mark = slab_mark(o->workspace);
    bool live = o->workspace->base && !o->dry;
    BUG_ON(!entry->run, "%s: there is no entry for %s", op_name(op), o->dev->desc.name);
    const char *form = o->dev->desc.host ? NULL : ops_host_form(op, args);
    BUG_ON(o->workspace->base && form, "%s: no %s on %s", op_name(op), form, o->dev->desc.name);
    int before = o->dev->fault;
    if (o->widens) {
        widen_run(o, op, args, live);
    } else {
        size_t bytes = entry->scratch ? entry->scratch(&o->dev->desc, args) : 0;
        void *scratch = bytes ? slab_bytes(o->workspace, bytes) : NULL;
        if (live)
            entry->run(o, args, scratch);
    }
    if (o->dev->fault && !before)
        name_fault(o, op);
    slab_reset(o->workspace, mark);
}

/* ---- checks: what a call's tensors must be; a mistake ends in BUG ---------------------------- */

void ops_set_types(struct ops *o, enum dtype real, struct ops_narrow narrow)
{
    enum dtype wide = real == DTYPE_F64 ? DTYPE_F64 : DTYPE_F32;
    o->real = real;
    o->stat = wide;
    o->grad = narrow.grad ? DTYPE_BF16 : wide;
    o->master = narrow.master ? DTYPE_BF16 : wide;
    for (int i = 0; i < 2; i++)
        o->moment[i] = narrow.moment[i] ? DTYPE_BF16 : wide;
}

static bool is_type_of(const struct ops *o, enum dtype d)
{
    return d == o->real || d == o->grad || d == o->master || d == o->moment[0] || d == o->moment[1];
}

static void need_1d(struct check c, const char *what, struct tensor t, int64_t n)
{
    ops_need(c, what, t, c.o->real, 1, &n);
}

static void need_stat(struct check c, const char *what, struct tensor t, int64_t n)
{
    ops_need(c, what, t, c.o->stat, 1, &n);
}

static void need_grad(struct check c, const char *what, struct tensor t, int64_t n)
{
    ops_need(c, what, t, c.o->grad, 1, &n);
}

/* A matrix of a type that is not `real`. */
static void need_matrix(struct check c, const char *what, struct tensor t, enum dtype d,
                        const int64_t size[2])
{
    ops_need(c, what, t, d, 2, size);
}

static void need_2d(struct check c, const char *what, struct tensor t, int64_t rows, int64_t cols)
{
    ops_need(c, what, t, c.o->real, 2, (const int64_t[]){rows, cols});
}

static void need_typed(struct check c, const char *what, struct tensor t, enum dtype d, int64_t n)
{
    ops_need(c, what, t, d, 1, &n);
}

/* A number in memory, or none. */
static void need_number(struct check c, const char *what, struct tensor t)
{
    if (!tensor_none(t))
        need_typed(c, what, t, DTYPE_F64, 1);
}

static void need_wide(struct check c, struct tensor t)
{
    BUG_ON(t.dtype != DTYPE_F32 && t.dtype != DTYPE_F64 && t.dtype != DTYPE_I32 &&
               !is_type_of(c.o, t.dtype),
           "%s: %s", op_name(c.op), dtype_name(t.dtype));
}

static void need_contiguous(struct check c, const char *what, struct tensor t)
{
    BUG_ON(!tensor_contiguous(t), "%s: %s has gaps", op_name(c.op), what);
}

/* ---- calls ----------------------------------------------------------------------------------- */

void op_embed(struct ops *o, const struct embed_args *a)
{
    struct check c = CHECK_OF(OP_EMBED);
    int64_t n = a->y.size[0], width = a->y.size[1];
    need_2d(c, "y", a->y, n, width);
    need_typed(c, "id", a->id, DTYPE_I32, n);
    need_2d(c, "tok", a->tok, a->tok.size[0], width);
    if (tensor_none(a->pos)) {
        ops_need_none(c, "position", a->position, "without pos");
    } else {
        need_2d(c, "pos", a->pos, a->pos.size[0], width);
        need_typed(c, "position", a->position, DTYPE_I32, n);
    }
    ops_need_drop(c, a->drop, n);
    BUG_ON(!(a->noise >= 0), "%s: noise of %g", op_name(c.op), (double)a->noise);
    o->call(o, OP_EMBED, a);
}

void op_embed_bwd(struct ops *o, const struct embed_bwd_args *a)
{
    struct check c = CHECK_OF(OP_EMBED_BWD);
    int64_t n = a->dy.size[0], width = a->dy.size[1];
    need_2d(c, "dy", a->dy, n, width);
    if (!tensor_none(a->dtok)) {
        need_matrix(c, "dtok", a->dtok, c.o->grad, (const int64_t[]){a->dtok.size[0], width});
        need_typed(c, "id", a->id, DTYPE_I32, n);
    }
    if (!tensor_none(a->dpos)) {
        need_matrix(c, "dpos", a->dpos, c.o->grad, (const int64_t[]){a->dpos.size[0], width});
        need_typed(c, "position", a->position, DTYPE_I32, n);
    }
    ops_need_drop(c, a->drop, n);
    o->call(o, OP_EMBED_BWD, a);
}

void op_norm(struct ops *o, const struct norm_args *a)
{
    struct check c = CHECK_OF(OP_NORM);
    int64_t n = a->y.size[0], width = a->y.size[1];
    need_2d(c, "y", a->y, n, width);
    need_2d(c, "x", a->x, n, width);
    need_1d(c, "w", a->w, width);
    need_stat(c, "rstd", a->rstd, n);
    if (a->kind == NORM_LAYER)
        need_stat(c, "mean", a->mean, n);
    else
        ops_need_none(c, "mean", a->mean, "to an RMS norm");
    if (!tensor_none(a->b))
        need_1d(c, "b", a->b, width);
    if (tensor_none(a->a)) {
        ops_need_none(c, "r", a->r, "without a");
        ops_need_none(c, "bias", a->bias, "without a");
    } else {
        need_2d(c, "a", a->a, n, width);
        need_2d(c, "r", a->r, n, width);
        if (!tensor_none(a->bias))
            need_1d(c, "bias", a->bias, width);
    }
    ops_need_drop(c, a->drop, n);
    o->call(o, OP_NORM, a);
}

void op_norm_bwd(struct ops *o, const struct norm_bwd_args *a)
{
    struct check c = CHECK_OF(OP_NORM_BWD);
    int64_t n = a->dy.size[0], width = a->dy.size[1];
    need_2d(c, "dy", a->dy, n, width);
    need_2d(c, "dr", a->dr, n, width);
    need_2d(c, "r", a->r, n, width);
    need_stat(c, "rstd", a->rstd, n);
    if (a->kind == NORM_LAYER)
        need_stat(c, "mean", a->mean, n);
    else
        ops_need_none(c, "mean", a->mean, "to an RMS norm");
    need_1d(c, "w", a->w, width);
    need_grad(c, "dw", a->dw, width);
    if (!tensor_none(a->db))
        need_grad(c, "db", a->db, width);
    if (tensor_none(a->da)) {
        ops_need_none(c, "dbias", a->dbias, "without da");
    } else {
        need_2d(c, "da", a->da, n, width);
        BUG_ON(a->da.data == a->dr.data && a->drop.p > 0 && n, "norm_bwd: da is dr, with dropout");
        if (!tensor_none(a->dbias))
            need_grad(c, "dbias", a->dbias, width);
    }
    ops_need_drop(c, a->drop, n);
    o->call(o, OP_NORM_BWD, a);
}

void op_matmul(struct ops *o, const struct matmul_args *a)
{
    struct check c = CHECK_OF(OP_MATMUL);
    int64_t m = a->y.size[0], n = a->y.size[1], k = a->a.size[a->ta ? 0 : 1];
    enum dtype d = a->a.dtype == o->master && !a->accumulate ? o->master : o->real;
    need_matrix(c, "y", a->y, a->accumulate ? c.o->grad : d, (const int64_t[]){m, n});
    ops_need_2d(c, "a", a->a, d, a->ta ? k : m, a->ta ? m : k);
    ops_need_2d(c, "b", a->b, d, a->tb ? n : k, a->tb ? k : n);
    BUG_ON(m > INT32_MAX || n > INT32_MAX || k > INT32_MAX, "matmul: %lld x %lld x %lld",
           (long long)m, (long long)n, (long long)k);
    if (a->accumulate) {
        BUG_ON(a->act != ACT_NONE, "matmul: accumulates through an activation");
        ops_need_none(c, "bias", a->bias, "while accumulating");
    }
    if (!tensor_none(a->bias))
        need_1d(c, "bias", a->bias, n);
    if (a->act == ACT_NONE)
        ops_need_none(c, "pre", a->pre, "without an activation");
    if (a->act_bwd) {
        BUG_ON(a->act == ACT_NONE, "matmul: act_bwd without an activation");
        ops_need_none(c, "bias", a->bias, "with act_bwd");
    }
    if (a->act_bwd || !tensor_none(a->pre))
        need_2d(c, "pre", a->pre, m, n);
    if (!tensor_none(a->dbias)) {
        BUG_ON(!a->ta || !a->accumulate, "matmul: dbias outside of a weight gradient");
        need_grad(c, "dbias", a->dbias, m);
    }
    o->call(o, OP_MATMUL, a);
}

void op_glu(struct ops *o, const struct glu_args *a)
{
    struct check c = CHECK_OF(OP_GLU);
    int64_t n = a->y.size[0], width = a->y.size[1];
    need_2d(c, "y", a->y, n, width);
    need_2d(c, "x", a->x, n, 2 * width);
    o->call(o, OP_GLU, a);
}

void op_glu_bwd(struct ops *o, const struct glu_bwd_args *a)
{
    struct check c = CHECK_OF(OP_GLU_BWD);
    int64_t n = a->dy.size[0], width = a->dy.size[1];
    need_2d(c, "dy", a->dy, n, width);
    need_2d(c, "x", a->x, n, 2 * width);
    need_2d(c, "dx", a->dx, n, 2 * width);
    o->call(o, OP_GLU_BWD, a);
}

void op_rope(struct ops *o, const struct rope_args *a)
{
    struct check c = CHECK_OF(OP_ROPE);
    int64_t n = a->x.size[0], table = a->cos.size[0];
    ops_need_3d(c, "x", a->x, n, a->x.size[1], a->x.size[2]);
    BUG_ON(a->rotary < 2 || a->rotary % 2 || a->rotary > a->x.size[2],
           "rope: %lld rotary of %lld dimensions", (long long)a->rotary, (long long)a->x.size[2]);
    need_matrix(c, "cos", a->cos, c.o->stat, (const int64_t[]){table, a->rotary / 2});
    need_matrix(c, "sin", a->sin, c.o->stat, (const int64_t[]){table, a->rotary / 2});
    need_typed(c, "position", a->position, DTYPE_I32, n);
    o->call(o, OP_ROPE, a);
}

void op_xent_stats(struct ops *o, const struct xent_stats_args *a)
{
    struct check c = CHECK_OF(OP_XENT_STATS);
    int64_t n = a->logits.size[0];
    need_2d(c, "logits", a->logits, n, a->logits.size[1]);
    need_typed(c, "label", a->label, DTYPE_I32, n);
    need_stat(c, "max", a->max, n);
    need_stat(c, "sum", a->sum, n);
    need_stat(c, "target", a->target, n);
    o->call(o, OP_XENT_STATS, a);
}

void op_xent_loss(struct ops *o, const struct xent_loss_args *a)
{
    struct check c = CHECK_OF(OP_XENT_LOSS);
    int64_t n = a->logits.size[0];
    need_2d(c, "logits", a->logits, n, a->logits.size[1]);
    need_typed(c, "label", a->label, DTYPE_I32, n);
    need_stat(c, "max", a->max, n);
    need_stat(c, "sum", a->sum, n);
    need_stat(c, "target", a->target, n);
    need_typed(c, "mask", a->mask, DTYPE_F32, n);
    need_stat(c, "loss", a->loss, n);
    need_typed(c, "total", a->total, DTYPE_F64, 1);
    need_number(c, "factor", a->factor);
    need_number(c, "divisor", a->divisor);
    o->call(o, OP_XENT_LOSS, a);
}

static void need_segments(struct check c, struct tensor t, int64_t first)
{
    BUG_ON(first < 0, "%s: from element %lld on", op_name(c.op), (long long)first);
    if (tensor_none(t))
        return;
    ops_need_2d(c, "segments", t, DTYPE_I32, t.size[0], SEGMENT_INTS);
    need_contiguous(c, "segments", t);
}

/* A tensor of the parameters' shape. */
static void need_like(struct check c, const char *what, struct tensor t, enum dtype type,
                      struct tensor p)
{
    ops_need(c, what, t, type, p.rank, p.size);
    need_contiguous(c, what, t);
}

/* What AdamW and SGD have in common: all but the moments. */
static void need_update(struct check c, const struct sgd_args *a)
{
    need_like(c, "p", a->p, c.o->master, a->p);
    need_like(c, "g", a->g, c.o->grad, a->p);
    if (!tensor_none(a->copy)) {
        need_like(c, "copy", a->copy, c.o->real, a->p);
        BUG_ON(c.o->real == c.o->master, "%s: a copy of the same type", op_name(c.op));
    }
    need_typed(c, "values", a->values, DTYPE_F64, STEP_VALUES);
    need_segments(c, a->segments, a->first);
    need_number(c, "factor", a->factor);
    if (!tensor_none(a->skip))
        need_typed(c, "skip", a->skip, DTYPE_I32, 1);
    ops_need_rounding(c, a->round);
}

void op_adamw(struct ops *o, const struct adamw_args *a)
{
    struct check c = CHECK_OF(OP_ADAMW);
    need_update(c, &(struct sgd_args){.p = a->p,
                                      .g = a->g,
                                      .factor = a->factor,
                                      .skip = a->skip,
                                      .copy = a->copy,
                                      .values = a->values,
                                      .segments = a->segments,
                                      .first = a->first,
                                      .round = a->round});
    need_like(c, "m", a->m, o->moment[0], a->p);
    need_like(c, "v", a->v, o->moment[1], a->p);
    o->call(o, OP_ADAMW, a);
}

void op_sgd(struct ops *o, const struct sgd_args *a)
{
    struct check c = CHECK_OF(OP_SGD);
    need_update(c, a);
    if (!tensor_none(a->m))
        need_like(c, "m", a->m, o->master, a->p);
    o->call(o, OP_SGD, a);
}

void op_sumsq(struct ops *o, const struct sumsq_args *a)
{
    struct check c = CHECK_OF(OP_SUMSQ);
    need_typed(c, "total", a->total, DTYPE_F64, 1);
    ops_need(c, "x", a->x, c.o->grad, a->x.rank, a->x.size);
    need_contiguous(c, "x", a->x);
    o->call(o, OP_SUMSQ, a);
}

void op_clip(struct ops *o, const struct clip_args *a)
{
    struct check c = CHECK_OF(OP_CLIP);
    need_typed(c, "total", a->total, DTYPE_F64, 1);
    need_typed(c, "norm", a->norm, DTYPE_F64, 1);
    need_typed(c, "factor", a->factor, DTYPE_F64, 1);
    need_typed(c, "skip", a->skip, DTYPE_I32, 1);
    need_number(c, "count", a->count);
    need_number(c, "scale", a->scale);
    BUG_ON(!(a->max_norm >= 0), "clip: to %g", a->max_norm);
    o->call(o, OP_CLIP, a);
}

void op_cap(struct ops *o, const struct cap_args *a)
{
    struct check c = CHECK_OF(OP_CAP);
    need_2d(c, "x", a->x, a->x.size[0], a->x.size[1]);
    BUG_ON(!(a->cap > 0), "cap: to %g", (double)a->cap);
    o->call(o, OP_CAP, a);
}

void op_fill(struct ops *o, const struct fill_args *a)
{
    struct check c = CHECK_OF(OP_FILL);
    need_wide(c, a->y);
    ops_need(c, "y", a->y, a->y.dtype, a->y.rank, a->y.size);
    o->call(o, OP_FILL, a);
}

void op_copy(struct ops *o, const struct copy_args *a)
{
    struct check c = CHECK_OF(OP_COPY);
    need_wide(c, a->y);
    bool gradient = a->y.dtype == c.o->grad;
    enum dtype d = a->accumulate && !gradient ? c.o->real : a->y.dtype;
    bool narrows = d == c.o->real && a->x.dtype == DTYPE_F32;
    bool cast =
        a->x.dtype != d && !a->accumulate && (o->widens ? is_type_of(o, a->x.dtype) : narrows);
    ops_need(c, "y", a->y, d, a->y.rank, a->y.size);
    ops_need(c, "x", a->x, cast ? a->x.dtype : d, a->y.rank, a->y.size);
    if (cast && !o->widens) {
        need_contiguous(c, "y", a->y);
        need_contiguous(c, "x", a->x);
    }
    o->call(o, OP_COPY, a);
}

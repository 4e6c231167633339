/* SPDX-License-Identifier: Apache-2.0 */
#include "train/ops/head_norm.h"

#include "train/ops/check.h"

static void need_heads(struct check c, const char *what, struct tensor t, struct tensor like)
{
    ops_need(c, what, t, c.o->real, 3, like.size);
}

void op_head_norm(struct ops *o, const struct head_norm_args *a)
{
    struct check c = CHECK_OF(OP_HEAD_NORM);
    need_heads(c, "x", a->x, a->x);
    ops_need_1d(c, "w", a->w, o->real, a->x.size[2]);
    BUG_ON(tensor_none(a->pre) != tensor_none(a->rstd), "head_norm: one of pre and rstd");
    if (!tensor_none(a->pre)) {
        need_heads(c, "pre", a->pre, a->x);
        ops_need_2d(c, "rstd", a->rstd, o->stat, a->x.size[0], a->x.size[1]);
    }
    o->call(o, OP_HEAD_NORM, a);
}

void op_head_norm_bwd(struct ops *o, const struct head_norm_bwd_args *a)
{
    struct check c = CHECK_OF(OP_HEAD_NORM_BWD);
    need_heads(c, "dx", a->dx, a->dx);
    need_heads(c, "pre", a->pre, a->dx);
    ops_need_2d(c, "rstd", a->rstd, o->stat, a->dx.size[0], a->dx.size[1]);
    ops_need_1d(c, "w", a->w, o->real, a->dx.size[2]);
    ops_need_1d(c, "dw", a->dw, o->grad, a->dx.size[2]);
    o->call(o, OP_HEAD_NORM_BWD, a);
}

static double head_norm_bytes(struct tensor t)
{
    return tensor_none(t) ? 0 : (double)tensor_bytes(t);
}

struct op_cost head_norm_cost(enum op op, const void *args)
{
    if (op == OP_HEAD_NORM) {
        const struct head_norm_args *a = args;
        return (struct op_cost){4 * (double)tensor_count(a->x),
                                2 * head_norm_bytes(a->x) + head_norm_bytes(a->pre) +
                                    head_norm_bytes(a->rstd) + head_norm_bytes(a->w)};
    }
    const struct head_norm_bwd_args *a = args;
    return (struct op_cost){10 * (double)tensor_count(a->dx),
                            2 * head_norm_bytes(a->dx) + head_norm_bytes(a->pre) +
                                head_norm_bytes(a->rstd) + head_norm_bytes(a->w) +
                                2 * head_norm_bytes(a->dw)};
}

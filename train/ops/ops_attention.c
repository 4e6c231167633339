/* SPDX-License-Identifier: Apache-2.0 */
#include "train/ops/check.h"
#include "train/ops/ops.h"

static void need_ahead(struct check c, const struct ops *o, const struct attention_args *a)
{
    int64_t heads = a->all_heads ? a->all_heads : a->q.size[1];
    BUG_ON(a->head0 < 0 || a->head0 + a->q.size[1] > heads, "%s: heads %lld + %lld of %lld",
           op_name(c.op), (long long)a->head0, (long long)a->q.size[1], (long long)heads);
    if (tensor_none(a->ahead)) {
        ops_need_none(c, "drop_row", a->drop_row, "without ahead");
        ops_need_none(c, "drop_key", a->drop_key, "without ahead");
        return;
    }
    ops_need_host(o, c.op, "a part of the keys");
    ops_need_1d(c, "ahead", a->ahead, DTYPE_I32, a->k_len.size[0]);
    ops_need_1d(c, "drop_row", a->drop_row, DTYPE_I32, a->k_len.size[0]);
    ops_need_1d(c, "drop_key", a->drop_key, DTYPE_I32, a->k_len.size[0]);
}

static void need_attention(struct check c, const struct ops *o, const struct attention_args *a)
{
    int64_t n = a->q.size[0], heads = a->q.size[1], dim = a->q.size[2], groups = a->k.size[1];
    int64_t sequences = a->k_len.size[0];
    ops_need_3d(c, "q", a->q, n, heads, dim);
    ops_need_3d(c, "o", a->o, n, heads, dim);
    ops_need_3d(c, "k", a->k, a->k.size[0], groups, dim);
    ops_need_3d(c, "v", a->v, a->k.size[0], groups, dim);
    BUG_ON(groups < 1 || heads % groups, "%s: %lld query heads over %lld key heads", op_name(c.op),
           (long long)heads, (long long)groups);
    if (!tensor_none(a->lse))
        ops_need_2d(c, "lse", a->lse, c.o->stat, heads, n);
    ops_need_1d(c, "q_start", a->q_start, DTYPE_I32, sequences + 1);
    ops_need_1d(c, "k_start", a->k_start, DTYPE_I32, sequences);
    ops_need_1d(c, "k_len", a->k_len, DTYPE_I32, sequences);
    BUG_ON(a->max_len < 1 || a->window < 0, "%s: max_len %lld, window %lld", op_name(c.op),
           (long long)a->max_len, (long long)a->window);
    need_ahead(c, o, a);
    ops_need_drop(c, a->drop, 0);
    BUG_ON(a->even && (!tensor_none(a->ahead) || n != sequences * a->max_len || a->k.size[0] != n),
           "%s: %lld queries and %lld keys are not %lld sequences of %lld", op_name(c.op),
           (long long)n, (long long)a->k.size[0], (long long)sequences, (long long)a->max_len);
}

void op_attention(struct ops *o, const struct attention_args *a)
{
    need_attention(CHECK_OF(OP_ATTENTION), o, a);
    o->call(o, OP_ATTENTION, a);
}

void op_attention_bwd(struct ops *o, const struct attention_bwd_args *a)
{
    struct check c = CHECK_OF(OP_ATTENTION_BWD);
    const struct tensor q = a->fwd.q, k = a->fwd.k;
    need_attention(c, o, &a->fwd);
    ops_need_2d(c, "lse", a->fwd.lse, c.o->stat, q.size[1], q.size[0]);
    ops_need_3d(c, "dout", a->dout, q.size[0], q.size[1], q.size[2]);
    ops_need_3d(c, "dq", a->dq, q.size[0], q.size[1], q.size[2]);
    ops_need_3d(c, "dk", a->dk, k.size[0], k.size[1], k.size[2]);
    ops_need_3d(c, "dv", a->dv, k.size[0], k.size[1], k.size[2]);
    BUG_ON(a->fwd.even && (a->dout.stride != a->fwd.o.stride || a->dq.stride != q.stride ||
                           a->dk.stride != k.stride || a->dv.stride != a->fwd.v.stride),
           "%s: even, but gradients have other strides", op_name(c.op));
    o->call(o, OP_ATTENTION_BWD, a);
}

void op_merge(struct ops *o, const struct merge_args *a)
{
    struct check c = CHECK_OF(OP_MERGE);
    int64_t n = a->o.size[0], heads = a->o.size[1];
    ops_need_3d(c, "o", a->o, n, heads, a->o.size[2]);
    ops_need_3d(c, "part_o", a->part_o, n, heads, a->o.size[2]);
    ops_need_2d(c, "lse", a->lse, c.o->stat, heads, n);
    ops_need_2d(c, "part_lse", a->part_lse, c.o->stat, heads, n);
    o->call(o, OP_MERGE, a);
}

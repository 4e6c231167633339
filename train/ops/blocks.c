/* SPDX-License-Identifier: Apache-2.0 */
#include "train/ops/blocks.h"

#include "train/ops/check.h"
#include "train/ops/values.h"

/* ---- checks ---------------------------------------------------------------------------------- */

void op_moments(struct ops *o, const struct moments_args *a)
{
    struct check c = CHECK_OF(OP_MOMENTS);
    ops_need_1d(c, "count", a->count, DTYPE_F64, 1);
    ops_need_1d(c, "sum", a->sum, DTYPE_F64, 1);
    if (!tensor_none(a->deviations))
        ops_need_1d(c, "deviations", a->deviations, DTYPE_F64, 1);
    ops_need_1d(c, "x", a->x, o->grad, a->x.size[0]);
    o->call(o, OP_MOMENTS, a);
}

void op_gsnr(struct ops *o, const struct gsnr_args *a)
{
    struct check c = CHECK_OF(OP_GSNR);
    int64_t n = a->y.size[0];
    ops_need_1d(c, "y", a->y, DTYPE_F64, n);
    ops_need_1d(c, "count", a->count, DTYPE_F64, n);
    ops_need_1d(c, "sum", a->sum, DTYPE_F64, n);
    ops_need_1d(c, "deviations", a->deviations, DTYPE_F64, n);
    ops_need_1d(c, "factor", a->factor, DTYPE_F64, 1);
    ops_need_1d(c, "skip", a->skip, DTYPE_I32, 1);
    o->call(o, OP_GSNR, a);
}

void op_momentum(struct ops *o, const struct momentum_args *a)
{
    struct check c = CHECK_OF(OP_MOMENTUM);
    int64_t n = a->y.size[0];
    ops_need_1d(c, "y", a->y, o->master, n);
    ops_need_1d(c, "g", a->g, o->grad, n);
    if (!tensor_none(a->m))
        ops_need_1d(c, "m", a->m, o->master, n);
    ops_need_1d(c, "factor", a->factor, DTYPE_F64, 1);
    ops_need_1d(c, "skip", a->skip, DTYPE_I32, 1);
    if (!tensor_none(a->number))
        ops_need_1d(c, "number", a->number, DTYPE_F64, 1);
    ops_need_rounding(c, a->round);
    o->call(o, OP_MOMENTUM, a);
}

void op_decayed(struct ops *o, const struct decayed_args *a)
{
    struct check c = CHECK_OF(OP_DECAYED);
    int64_t n = a->p.size[0];
    ops_need_1d(c, "p", a->p, o->master, n);
    ops_need_1d(c, "x", a->x, o->master, n);
    if (!tensor_none(a->gsnr))
        ops_need_1d(c, "gsnr", a->gsnr, DTYPE_F64, 1);
    ops_need_1d(c, "skip", a->skip, DTYPE_I32, 1);
    ops_need_1d(c, "values", a->values, DTYPE_F64, STEP_VALUES);
    ops_need_rounding(c, a->round);
    o->call(o, OP_DECAYED, a);
}

void op_combine(struct ops *o, const struct combine_args *a)
{
    struct check c = CHECK_OF(OP_COMBINE);
    ops_need_1d(c, "y", a->y, o->master, a->y.size[0]);
    ops_need_1d(c, "x", a->x, o->master, a->y.size[0]);
    o->call(o, OP_COMBINE, a);
}

void op_unit(struct ops *o, const struct unit_args *a)
{
    struct check c = CHECK_OF(OP_UNIT);
    ops_need_1d(c, "x", a->x, o->master, a->x.size[0]);
    o->call(o, OP_UNIT, a);
}

/* ---- costs ----------------------------------------------------------------------------------- */

static double bytes(struct tensor t)
{
    return (double)tensor_bytes(t);
}

struct op_cost blocks_cost(enum op op, const void *args)
{
    switch (op) {
    case OP_MOMENTS: {
        const struct moments_args *a = args;
        return (struct op_cost){(tensor_none(a->deviations) ? 1 : 3) * (double)tensor_count(a->x),
                                bytes(a->x)};
    }
    case OP_GSNR: {
        const struct gsnr_args *a = args;
        return (struct op_cost){8 * (double)tensor_count(a->y), 4 * bytes(a->y)};
    }
    case OP_MOMENTUM: {
        const struct momentum_args *a = args;
        return (struct op_cost){4 * (double)tensor_count(a->y),
                                bytes(a->y) + bytes(a->m) + bytes(a->g)};
    }
    case OP_DECAYED: {
        const struct decayed_args *a = args;
        return (struct op_cost){3 * (double)tensor_count(a->p), 2 * bytes(a->p) + bytes(a->x)};
    }
    case OP_COMBINE: {
        const struct combine_args *a = args;
        return (struct op_cost){3 * (double)tensor_count(a->y), 2 * bytes(a->y) + bytes(a->x)};
    }
    case OP_UNIT: {
        const struct unit_args *a = args;
        return (struct op_cost){3 * (double)tensor_count(a->x), 3 * bytes(a->x)};
    }
    default:
        break;
    }
    BUG("op %d", (int)op);
}

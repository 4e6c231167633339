/* SPDX-License-Identifier: Apache-2.0 */
#include "train/ops/experts.h"

#include "train/ops/check.h"

/* ---- checks ---------------------------------------------------------------------------------- */

void op_route(struct ops *o, const struct route_args *a)
{
    struct check c = CHECK_OF(OP_ROUTE);
    int64_t n = a->logits.size[0], E = a->logits.size[1], k = a->choice.size[1];
    BUG_ON(k < 1 || k > E, "route: %lld of %lld experts", (long long)k, (long long)E);
    ops_need_2d(c, "logits", a->logits, o->real, n, E);
    ops_need_2d(c, "prob", a->prob, o->stat, n, E);
    ops_need_1d(c, "lse", a->lse, o->stat, n);
    ops_need_2d(c, "weight", a->weight, o->stat, n, k);
    ops_need_2d(c, "choice", a->choice, DTYPE_I32, n, k);
    ops_need_2d(c, "slot", a->slot, DTYPE_I32, n, k);
    ops_need_1d(c, "count", a->count, DTYPE_I32, E);
    if (!tensor_none(a->start))
        ops_need_1d(c, "start", a->start, DTYPE_I32, E + 1);
    o->call(o, OP_ROUTE, a);
}

void op_route_bwd(struct ops *o, const struct route_bwd_args *a)
{
    struct check c = CHECK_OF(OP_ROUTE_BWD);
    int64_t n = a->dlogits.size[0], E = a->dlogits.size[1], k = a->choice.size[1];
    ops_need_2d(c, "dlogits", a->dlogits, o->real, n, E);
    ops_need_2d(c, "dweight", a->dweight, o->stat, n, k);
    ops_need_2d(c, "prob", a->prob, o->stat, n, E);
    ops_need_1d(c, "lse", a->lse, o->stat, n);
    ops_need_2d(c, "weight", a->weight, o->stat, n, k);
    ops_need_2d(c, "choice", a->choice, DTYPE_I32, n, k);
    ops_need_1d(c, "total", a->total, DTYPE_I32, E);
    if (!tensor_none(a->scale))
        ops_need_1d(c, "scale", a->scale, DTYPE_F64, 1);
    o->call(o, OP_ROUTE_BWD, a);
}

void op_route_loss(struct ops *o, const struct route_loss_args *a)
{
    struct check c = CHECK_OF(OP_ROUTE_LOSS);
    int64_t n = a->prob.size[0], E = a->prob.size[1];
    ops_need_1d(c, "sums", a->sums, DTYPE_F64, 2);
    ops_need_2d(c, "prob", a->prob, o->stat, n, E);
    ops_need_1d(c, "lse", a->lse, o->stat, n);
    ops_need_1d(c, "total", a->total, DTYPE_I32, E);
    o->call(o, OP_ROUTE_LOSS, a);
}

/* `slots` has a row for each pair of `slot`. */
static void need_slots(struct check c, const char *what, struct tensor slots, struct tensor slot,
                       int64_t n, int64_t width)
{
    ops_need_2d(c, "slot", slot, DTYPE_I32, n, slot.size[1]);
    ops_need_2d(c, what, slots, c.o->real, n * slot.size[1], width);
}

void op_permute(struct ops *o, const struct permute_args *a)
{
    struct check c = CHECK_OF(OP_PERMUTE);
    ops_need_2d(c, "x", a->x, o->real, a->x.size[0], a->x.size[1]);
    need_slots(c, "to", a->to, a->slot, a->x.size[0], a->x.size[1]);
    o->call(o, OP_PERMUTE, a);
}

void op_permute_bwd(struct ops *o, const struct permute_bwd_args *a)
{
    struct check c = CHECK_OF(OP_PERMUTE_BWD);
    ops_need_2d(c, "dx", a->dx, o->real, a->dx.size[0], a->dx.size[1]);
    need_slots(c, "dto", a->dto, a->slot, a->dx.size[0], a->dx.size[1]);
    o->call(o, OP_PERMUTE_BWD, a);
}

void op_unpermute(struct ops *o, const struct unpermute_args *a)
{
    struct check c = CHECK_OF(OP_UNPERMUTE);
    int64_t n = a->y.size[0], k = a->slot.size[1];
    ops_need_2d(c, "y", a->y, o->real, n, a->y.size[1]);
    ops_need_2d(c, "weight", a->weight, o->stat, n, k);
    need_slots(c, "from", a->from, a->slot, n, a->y.size[1]);
    o->call(o, OP_UNPERMUTE, a);
}

void op_unpermute_bwd(struct ops *o, const struct unpermute_bwd_args *a)
{
    struct check c = CHECK_OF(OP_UNPERMUTE_BWD);
    int64_t n = a->dy.size[0], k = a->slot.size[1];
    ops_need_2d(c, "dy", a->dy, o->real, n, a->dy.size[1]);
    ops_need_2d(c, "weight", a->weight, o->stat, n, k);
    ops_need_2d(c, "dweight", a->dweight, o->stat, n, k);
    need_slots(c, "from", a->from, a->slot, n, a->dy.size[1]);
    need_slots(c, "dfrom", a->dfrom, a->slot, n, a->dy.size[1]);
    o->call(o, OP_UNPERMUTE_BWD, a);
}

static void need_groups(struct check c, struct tensor start, struct tensor w)
{
    int64_t groups = start.size[0] - 1;
    ops_need_1d(c, "start", start, DTYPE_I32, groups + 1);
    BUG_ON(groups < 1 || groups % w.size[0], "%s: %lld groups of rows for %lld matrices",
           op_name(c.op), (long long)groups, (long long)w.size[0]);
}

void op_grouped(struct ops *o, const struct grouped_args *a)
{
    struct check c = CHECK_OF(OP_GROUPED);
    int64_t rows = a->y.size[0], O = a->w.size[1], I = a->w.size[2];
    ops_need(c, "w", a->w, o->real, 3, (const int64_t[]){a->w.size[0], O, I});
    ops_need_2d(c, "x", a->x, o->real, rows, a->backward ? O : I);
    ops_need_2d(c, "y", a->y, o->real, rows, a->backward ? I : O);
    need_groups(c, a->start, a->w);
    o->call(o, OP_GROUPED, a);
}

void op_grouped_bwd(struct ops *o, const struct grouped_bwd_args *a)
{
    struct check c = CHECK_OF(OP_GROUPED_BWD);
    int64_t rows = a->dy.size[0], O = a->dw.size[1], I = a->dw.size[2];
    ops_need(c, "dw", a->dw, o->grad, 3, (const int64_t[]){a->dw.size[0], O, I});
    ops_need_2d(c, "dy", a->dy, o->real, rows, O);
    ops_need_2d(c, "x", a->x, o->real, rows, I);
    need_groups(c, a->start, a->dw);
    o->call(o, OP_GROUPED_BWD, a);
}

void op_gate(struct ops *o, const struct gate_args *a)
{
    struct check c = CHECK_OF(OP_GATE);
    int64_t n = a->y.size[0], width = a->y.size[1];
    ops_need_2d(c, "y", a->y, o->real, n, width);
    ops_need_2d(c, "x", a->x, o->real, n, width);
    ops_need_2d(c, "logit", a->logit, o->real, n, 1);
    o->call(o, OP_GATE, a);
}

void op_gate_bwd(struct ops *o, const struct gate_bwd_args *a)
{
    struct check c = CHECK_OF(OP_GATE_BWD);
    int64_t n = a->dy.size[0], width = a->dy.size[1];
    ops_need_2d(c, "dx", a->dx, o->real, n, width);
    ops_need_2d(c, "dlogit", a->dlogit, o->real, n, 1);
    ops_need_2d(c, "dy", a->dy, o->real, n, width);
    ops_need_2d(c, "x", a->x, o->real, n, width);
    ops_need_2d(c, "logit", a->logit, o->real, n, 1);
    o->call(o, OP_GATE_BWD, a);
}

/* ---- costs ----------------------------------------------------------------------------------- */

static double elements(struct tensor t)
{
    return (double)tensor_count(t);
}

static double bytes(struct tensor t)
{
    return (double)tensor_bytes(t);
}

static struct op_cost cost_route(const struct route_args *a)
{
    return (struct op_cost){4 * elements(a->logits) + 2 * elements(a->weight),
                            bytes(a->logits) + bytes(a->prob) + bytes(a->lse) + bytes(a->weight) +
                                bytes(a->choice) + bytes(a->slot) + bytes(a->count)};
}

static struct op_cost cost_route_bwd(const struct route_bwd_args *a)
{
    return (struct op_cost){6 * elements(a->prob) + 4 * elements(a->weight),
                            bytes(a->dlogits) + bytes(a->dweight) + bytes(a->prob) + bytes(a->lse) +
                                bytes(a->weight) + bytes(a->choice) + bytes(a->total)};
}

/* Products of `rows` rows with matrices of w's size. */
static struct op_cost cost_grouped(struct tensor w, struct tensor x, int64_t expected)
{
    int64_t rows = expected ? expected : x.size[0];
    double row = (double)(w.size[1] + w.size[2]) * (double)dtype_size(x.dtype);
    return (struct op_cost){2.0 * (double)rows * (double)w.size[1] * (double)w.size[2],
                            (double)rows * row + bytes(w)};
}

struct op_cost experts_cost(enum op op, const void *args)
{
    switch (op) {
    case OP_ROUTE:
        return cost_route(args);
    case OP_ROUTE_BWD:
        return cost_route_bwd(args);
    case OP_ROUTE_LOSS: {
        const struct route_loss_args *a = args;
        return (struct op_cost){2 * elements(a->prob), bytes(a->prob) + bytes(a->lse)};
    }
    case OP_PERMUTE: {
        const struct permute_args *a = args;
        return (struct op_cost){0, bytes(a->x) + bytes(a->to) + bytes(a->slot)};
    }
    case OP_PERMUTE_BWD: {
        const struct permute_bwd_args *a = args;
        return (struct op_cost){elements(a->dto), bytes(a->dx) + bytes(a->dto) + bytes(a->slot)};
    }
    case OP_UNPERMUTE: {
        const struct unpermute_args *a = args;
        return (struct op_cost){2 * elements(a->from),
                                bytes(a->y) + bytes(a->from) + bytes(a->slot) + bytes(a->weight)};
    }
    case OP_UNPERMUTE_BWD: {
        const struct unpermute_bwd_args *a = args;
        return (struct op_cost){3 * elements(a->from), bytes(a->dy) + bytes(a->from) +
                                                           bytes(a->dfrom) + bytes(a->slot) +
                                                           2 * bytes(a->weight)};
    }
    case OP_GROUPED: {
        const struct grouped_args *a = args;
        return cost_grouped(a->w, a->x, a->expected);
    }
    case OP_GROUPED_BWD: {
        const struct grouped_bwd_args *a = args;
        struct op_cost c = cost_grouped(a->dw, a->x, a->expected);
        c.bytes += bytes(a->dw);
        return c;
    }
    case OP_GATE: {
        const struct gate_args *a = args;
        return (struct op_cost){elements(a->x), bytes(a->y) + bytes(a->x) + bytes(a->logit)};
    }
    case OP_GATE_BWD: {
        const struct gate_bwd_args *a = args;
        return (struct op_cost){3 * elements(a->x),
                                bytes(a->dx) + bytes(a->dy) + bytes(a->x) + 2 * bytes(a->logit)};
    }
    default:
        BUG("op %d", (int)op);
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "train/model/experts.h"

#include "base/core/fault.h"
#include "train/model/model.h"
#include "train/ops/values.h"

/*
 * The router's probabilities of a row are a softmax over all experts; the k largest are its
 * experts, and its output is the sum of theirs, each times its weight. Rows are sorted by expert,
 * sent to the ranks that have them, multiplied there, sent back, and added up. Backward goes the
 * same ways in reverse.
 *
 * Two losses are added to a micro-batch's mean (Fedus et al. 2021; Zoph et al. 2022), with
 * Megatron-LM's factors: balance E / (k R^2) sum over e of (sum of probabilities of e) (pairs of
 * e), and z / R sum of lse^2, R the rows of all ranks that share the micro-batch's sequences. The
 * pairs of an expert are counted over these ranks before the product; no gradient goes through
 * them.
 *
 * Tensor-parallel ranks that cut the experts' channels route the same rows each: their outputs are
 * partial sums, and so are the gradients of the router's weight and of its input. The losses'
 * gradients are then added on the first of them alone.
 */

/* Whether tensor-parallel ranks cut the experts, so that each has all rows. */
static bool experts_are_cut(const struct model *m)
{
    return comm_size(m->comm, GROUP_ETP) == comm_size(m->comm, GROUP_TP);
}

struct expert_shape experts_shape(const struct model *m, int64_t tokens)
{
    const struct spec *s = m->spec;
    int senders = comm_size(m->comm, GROUP_EP);
    struct expert_shape x = {.rows = experts_are_cut(m) ? tokens : stream_count(m, tokens),
                             .experts = s->experts / senders,
                             .ffn = s->expert_ffn / comm_size(m->comm, GROUP_ETP),
                             .senders = senders};
    int64_t here = s->topk < x.experts ? s->topk : x.experts;
    x.pairs = x.rows * s->topk;
    x.most = x.rows * senders * here;
    x.first = x.experts * comm_index(m->comm, GROUP_EP);
    return x;
}

void experts_take(const struct model *m, struct slab *s, struct expert_acts *a)
{
    const struct spec *spec = m->spec;
    struct expert_shape x = experts_shape(m, m->tokens);
    enum dtype d = m->ops->real, stat = m->ops->stat;
    int64_t E = spec->experts, C = spec->hidden, k = spec->topk, groups = x.senders * x.experts;
    a->prob = slab_2d(s, stat, x.rows, E);
    a->lse = slab_1d(s, stat, x.rows);
    a->weight = slab_2d(s, stat, x.rows, k);
    a->choice = slab_2d(s, DTYPE_I32, x.rows, k);
    a->slot = slab_2d(s, DTYPE_I32, x.rows, k);
    a->total = slab_1d(s, DTYPE_I32, E);
    a->in = slab_2d(s, d, x.most, C);
    a->pre = slab_2d(s, d, x.most, 2 * x.ffn);
    a->h = slab_2d(s, d, x.most, x.ffn);
    a->out = slab_2d(s, d, x.pairs, C);
    a->start = slab_1d(s, DTYPE_I32, groups + 1);
    if (a->counts)
        return;
    a->counts = arena_take(m->host, (size_t)(x.senders * E), sizeof(*a->counts));
    a->starts = arena_take(m->host, (size_t)groups + 1, sizeof(*a->starts));
    a->give = arena_take(m->host, (size_t)x.senders, sizeof(*a->give));
    a->take = arena_take(m->host, (size_t)x.senders, sizeof(*a->take));
}

/* ---- which rows go where ----------------------------------------------------------------- */

/* The sizes of a call in hand. */
struct routing {
    struct expert_shape shape;
    struct expert_acts a; /* of the rows in hand */
    int64_t got;          /* rows that this rank's experts have */
};

static struct routing routing_of(const struct model *m, const struct model_pass *p, int l)
{
    struct routing g = {.shape = experts_shape(m, p->n), .a = m->a.layer[l].experts};
    struct expert_acts *a = &g.a;
    int64_t r = g.shape.rows;
    a->prob = tensor_rows(a->prob, 0, r);
    a->lse = tensor_rows(a->lse, 0, r);
    a->weight = tensor_rows(a->weight, 0, r);
    a->choice = tensor_rows(a->choice, 0, r);
    a->slot = tensor_rows(a->slot, 0, r);
    a->out = tensor_rows(a->out, 0, g.shape.pairs);
    return g;
}

/* What was received, once it is known how many rows that is. */
static void cut_received(const struct model *m, struct routing *g)
{
    g->got = 0;
    for (int i = 0; i < g->shape.senders; i++)
        g->got += g->a.take[i];
    if (m->ops->dry)
        g->got = g->shape.most;
    g->a.in = tensor_rows(g->a.in, 0, g->got);
    g->a.pre = tensor_rows(g->a.pre, 0, g->got);
    g->a.h = tensor_rows(g->a.h, 0, g->got);
}

/* From `counts` the rows to and from each rank, and where each group of rows begins. */
static void count_rows(const struct model *m, struct routing *g)
{
    const struct expert_shape *x = &g->shape;
    int64_t E = m->spec->experts;
    int me = comm_index(m->comm, GROUP_EP);
    int32_t begin = 0;
    for (int i = 0; i < x->senders; i++) {
        g->a.give[i] = g->a.take[i] = 0;
        for (int64_t e = 0; e < x->experts; e++) {
            int32_t mine = g->a.counts[i * E + x->first + e];
            g->a.starts[i * x->experts + e] = begin;
            begin += mine;
            g->a.take[i] += mine;
            g->a.give[i] += g->a.counts[me * E + i * x->experts + e];
        }
    }
    g->a.starts[x->senders * x->experts] = begin;
}

/* What the planner takes for the rows that travel; of one rank all. */
static void count_as_balanced(struct routing *g)
{
    int n = g->shape.senders;
    for (int i = 0; i < n; i++)
        g->a.give[i] = g->a.take[i] = g->shape.pairs * (i + 1) / n - g->shape.pairs * i / n;
}

/* Of the whole sequence, for the balancing loss: only a step of training has that. */
static void sum_counts(struct model *m, const struct routing *g, struct tensor count)
{
    op_copy(m->ops, &(struct copy_args){.y = g->a.total, .x = count});
    if (!experts_are_cut(m))
        comm_wait(m->comm, comm_all_reduce(m->comm, GROUP_TP, g->a.total, REDUCE_SUM));
    comm_wait(m->comm, comm_all_reduce(m->comm, GROUP_CP, g->a.total, REDUCE_SUM));
}

/* The rows that the experts have; a rank that has all of them need not ask which these are. Else
 * the counts of all senders come to the host, which is waited for. */
static void exchange_counts(struct model *m, struct routing *g, struct tensor count)
{
    struct dev *dev = m->ops->dev;
    bool alone = g->shape.senders == 1;
    struct tensor all = count;
    if (!alone) {
        all = slab_1d(m->ops->workspace, DTYPE_I32, g->shape.senders * count.size[0]);
        comm_wait(m->comm, comm_all_gather(m->comm, GROUP_EP, all, count));
    }
    if (alone || m->ops->dry) {
        count_as_balanced(g);
        return;
    }
    dev->fn->copy(dev, STREAM_COMPUTE, g->a.counts, all.data, tensor_bytes(all));
    dev->fn->sync(dev, STREAM_COMPUTE);
    count_rows(m, g);
    dev->fn->copy(dev, STREAM_COMPUTE, g->a.start.data, g->a.starts, tensor_bytes(g->a.start));
}

/* Rows of pairs to the ranks of their experts, or back. A rank that has all experts leaves them
 * where they are: `take` is `give`. */
static void send_rows(struct model *m, const struct routing *g, struct tensor take,
                      struct tensor give, bool back)
{
    if (g->shape.senders == 1)
        return;
    const int64_t *to = back ? g->a.take : g->a.give, *from = back ? g->a.give : g->a.take;
    if (m->ops->dry) {
        take = tensor_rows(take, 0, g->shape.pairs);
        give = tensor_rows(give, 0, g->shape.pairs);
    }
    comm_wait(m->comm, comm_all_to_all(m->comm, GROUP_EP, take, from, give, to));
}

/* ---- forward ----------------------------------------------------------------------------- */

static void route(struct model *m, const struct model_pass *p, int l, struct routing *g,
                  struct tensor y)
{
    size_t mark = slab_mark(m->ops->workspace);
    struct tensor logits = slab_2d(m->ops->workspace, m->ops->real, y.size[0], m->spec->experts);
    struct tensor count = slab_1d(m->ops->workspace, DTYPE_I32, m->spec->experts);
    struct tensor start = {0};
    if (g->shape.senders == 1)
        start = g->a.start;
    op_matmul(m->ops,
              &(struct matmul_args){.y = logits, .a = y, .b = m->w.layer[l].router, .tb = true});
    op_route(m->ops, &(struct route_args){.logits = logits,
                                          .prob = g->a.prob,
                                          .lse = g->a.lse,
                                          .weight = g->a.weight,
                                          .choice = g->a.choice,
                                          .slot = g->a.slot,
                                          .count = count,
                                          .start = start,
                                          .normalize = !m->spec->route_before});
    if (p->train)
        sum_counts(m, g, count);
    exchange_counts(m, g, count);
    slab_reset(m->ops->workspace, mark);
}

/* The experts' rows in a.in become those of `out`. */
static void multiply(struct model *m, int l, const struct routing *g, struct tensor out)
{
    const struct layer_weights *w = &m->w.layer[l];
    op_grouped(m->ops, &(struct grouped_args){.y = g->a.pre,
                                              .x = g->a.in,
                                              .w = w->expert_up,
                                              .start = g->a.start,
                                              .expected = g->shape.pairs});
    op_glu(m->ops, &(struct glu_args){.y = g->a.h, .x = g->a.pre});
    op_grouped(m->ops, &(struct grouped_args){.y = out,
                                              .x = g->a.h,
                                              .w = w->expert_down,
                                              .start = g->a.start,
                                              .expected = g->shape.pairs});
}

void experts_forward(struct model *m, const struct model_pass *p, int l)
{
    struct slab *ws = m->ops->workspace;
    enum dtype d = m->ops->real;
    size_t mark = slab_mark(ws);
    struct routing g = routing_of(m, p, l);
    struct tensor y = stream_rows(m, p, m->a.layer[l].y2), sub = stream_rows(m, p, m->a.sub);
    struct tensor part = sub;
    bool cut = experts_are_cut(m);
    struct comm_ticket all = {0};

    if (cut) {
        y = stream_gather(m, y, &all);
        part = stream_partial(m, sub);
    }
    comm_wait(m->comm, all);
    route(m, p, l, &g, y);
    cut_received(m, &g);
    struct tensor given = g.a.in, out = g.a.out;
    if (g.shape.senders > 1) {
        given = slab_2d(ws, d, g.shape.pairs, y.size[1]);
        out = tensor_rows(slab_2d(ws, d, g.shape.most, y.size[1]), 0, g.got);
    }
    op_permute(m->ops, &(struct permute_args){.to = given, .x = y, .slot = g.a.slot});
    send_rows(m, &g, g.a.in, given, false);
    multiply(m, l, &g, out);
    send_rows(m, &g, g.a.out, out, true);
    op_unpermute(m->ops, &(struct unpermute_args){
                             .y = part, .from = g.a.out, .slot = g.a.slot, .weight = g.a.weight});
    if (cut)
        comm_wait(m->comm, stream_reduce(m, sub, part));
    slab_reset(ws, mark);
}

/* ---- the losses -------------------------------------------------------------------------- */

struct route_factors {
    double balance, z; /* of the sums of op_route_loss */
};

/* Of the losses themselves; zeros where another rank adds them. */
static struct route_factors factors(const struct model *m, const struct expert_shape *x)
{
    const struct spec *s = m->spec;
    bool cut = experts_are_cut(m);
    double rows = (double)x->rows * comm_size(m->comm, GROUP_CP);
    if (!cut)
        rows *= comm_size(m->comm, GROUP_TP);
    if (cut && comm_index(m->comm, GROUP_TP) && !FAULT("balance_twice"))
        return (struct route_factors){0};
    return (struct route_factors){(double)s->experts / ((double)s->topk * rows * rows), 1 / rows};
}

void experts_losses(struct model *m, const struct model_pass *p, int l)
{
    struct routing g = routing_of(m, p, l);
    struct route_factors f = factors(m, &g.shape);
    op_route_loss(m->ops, &(struct route_loss_args){.sums = m->route_sums,
                                                    .prob = g.a.prob,
                                                    .lse = g.a.lse,
                                                    .total = g.a.total,
                                                    .balance = f.balance,
                                                    .z = f.z});
}

/* ---- backward ---------------------------------------------------------------------------- */

/* The gradient of the router's weight; what flows on to its input is added to dy. */
static void route_backward(struct model *m, int l, const struct routing *g, struct tensor dweight,
                           struct tensor y, struct tensor dy)
{
    size_t mark = slab_mark(m->ops->workspace);
    struct slab *ws = m->ops->workspace;
    struct tensor dlogits = slab_2d(ws, m->ops->real, y.size[0], m->spec->experts);
    struct tensor more = slab_2d(ws, m->ops->real, y.size[0], y.size[1]);
    struct route_factors f = factors(m, &g->shape);
    op_route_bwd(m->ops, &(struct route_bwd_args){.dlogits = dlogits,
                                                  .dweight = dweight,
                                                  .prob = g->a.prob,
                                                  .lse = g->a.lse,
                                                  .weight = g->a.weight,
                                                  .choice = g->a.choice,
                                                  .total = g->a.total,
                                                  .normalize = !m->spec->route_before,
                                                  .scale = step_value(m->values, STEP_ROUTE),
                                                  .balance = m->spec->balance_coeff * f.balance,
                                                  .z = m->spec->z_coeff * f.z});
    op_matmul(m->ops,
              &(struct matmul_args){
                  .y = m->g.layer[l].router, .a = dlogits, .b = y, .ta = true, .accumulate = true});
    op_matmul(m->ops, &(struct matmul_args){.y = more, .a = dlogits, .b = m->w.layer[l].router});
    op_copy(m->ops, &(struct copy_args){.y = dy, .x = more, .accumulate = true});
    slab_reset(m->ops->workspace, mark);
}

/* dout of the experts' rows becomes din; gradients of their weights. */
static void multiply_backward(struct model *m, int l, const struct routing *g, struct tensor dout,
                              struct tensor din)
{
    const struct layer_weights *w = &m->w.layer[l], *grad = &m->g.layer[l];
    struct slab *ws = m->ops->workspace;
    struct tensor dh = slab_2d(ws, m->ops->real, g->shape.most, g->shape.ffn);
    struct tensor dpre = slab_2d(ws, m->ops->real, g->shape.most, 2 * g->shape.ffn);
    dh = tensor_rows(dh, 0, g->got);
    dpre = tensor_rows(dpre, 0, g->got);
    op_grouped(m->ops, &(struct grouped_args){.y = dh,
                                              .x = dout,
                                              .w = w->expert_down,
                                              .start = g->a.start,
                                              .backward = true,
                                              .expected = g->shape.pairs});
    op_grouped_bwd(m->ops, &(struct grouped_bwd_args){.dw = grad->expert_down,
                                                      .dy = dout,
                                                      .x = g->a.h,
                                                      .start = g->a.start,
                                                      .expected = g->shape.pairs});
    op_glu_bwd(m->ops, &(struct glu_bwd_args){.dx = dpre, .dy = dh, .x = g->a.pre});
    op_grouped_bwd(m->ops, &(struct grouped_bwd_args){.dw = grad->expert_up,
                                                      .dy = dpre,
                                                      .x = g->a.in,
                                                      .start = g->a.start,
                                                      .expected = g->shape.pairs});
    op_grouped(m->ops, &(struct grouped_args){.y = din,
                                              .x = dpre,
                                              .w = w->expert_up,
                                              .start = g->a.start,
                                              .backward = true,
                                              .expected = g->shape.pairs});
}

void experts_backward(struct model *m, const struct model_pass *p, int l)
{
    struct slab *ws = m->ops->workspace;
    enum dtype d = m->ops->real;
    size_t mark = slab_mark(ws);
    struct routing g = routing_of(m, p, l);
    struct tensor dsub = stream_rows(m, p, m->a.dsub), dy = stream_rows(m, p, m->a.dy);
    struct tensor y = stream_rows(m, p, m->a.layer[l].y2), part = dy;
    struct comm_ticket all = {0}, all_y = {0};
    bool cut = experts_are_cut(m);

    experts_losses(m, p, l);
    if (cut) {
        dsub = stream_gather(m, dsub, &all);
        y = stream_gather(m, y, &all_y);
        part = stream_partial(m, dy);
    }
    cut_received(m, &g);
    int64_t C = y.size[1];
    struct tensor dweight = slab_2d(ws, m->ops->stat, g.shape.rows, m->spec->topk);
    struct tensor dpair = slab_2d(ws, d, g.shape.pairs, C);
    struct tensor din = tensor_rows(slab_2d(ws, d, g.shape.most, C), 0, g.got);
    struct tensor dout = dpair, back = din;
    if (g.shape.senders > 1) {
        dout = tensor_rows(slab_2d(ws, d, g.shape.most, C), 0, g.got);
        back = dpair;
    }
    comm_wait(m->comm, all);
    op_unpermute_bwd(m->ops, &(struct unpermute_bwd_args){.dfrom = dpair,
                                                          .dweight = dweight,
                                                          .dy = dsub,
                                                          .from = g.a.out,
                                                          .slot = g.a.slot,
                                                          .weight = g.a.weight});
    send_rows(m, &g, dout, dpair, false);
    multiply_backward(m, l, &g, dout, din);
    send_rows(m, &g, back, din, true);
    op_permute_bwd(m->ops, &(struct permute_bwd_args){.dx = part, .dto = back, .slot = g.a.slot});
    comm_wait(m->comm, all_y);
    route_backward(m, l, &g, dweight, y, part);
    if (cut)
        comm_wait(m->comm, stream_reduce(m, dy, part));
    slab_reset(ws, mark);
}

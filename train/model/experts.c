/* SPDX-License-Identifier: Apache-2.0 */
#include "train/model/experts.h"

#include <math.h>

#include "base/core/fault.h"
#include "train/model/model.h"
#include "train/model/rounds.h"
#include "train/ops/values.h"

/*
 * The router's probabilities of a row are a softmax over all experts; the k largest are its
 * experts, and its output is the sum of theirs, each times its weight. Rows are sorted by expert,
 * sent to the ranks that have them, multiplied there, sent back, and added up, in as many rounds as
 * the fullest rank needs (rounds.h). Backward goes the same ways in reverse; what more than one
 * round has computed is computed there once more.
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
    double factor = m->expert_factor > 0 ? m->expert_factor : EXPERT_FACTOR;
    BUG_ON(factor < 1, "room for %g of an even share of the experts' rows", factor);
    x.pairs = x.rows * s->topk;
    x.room = x.rows * senders * here;
    if (ceil(factor * (double)x.pairs) < (double)x.room)
        x.room = (int64_t)ceil(factor * (double)x.pairs);
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
    a->in = slab_2d(s, d, x.room, C);
    a->pre = slab_2d(s, d, x.room, 2 * x.ffn);
    a->h = slab_2d(s, d, x.room, x.ffn);
    a->out = slab_2d(s, d, x.pairs, C);
    a->start = slab_1d(s, DTYPE_I32, groups + 1);
    if (a->counts)
        return;
    a->counts = arena_take(m->host, (size_t)(x.senders * E), sizeof(*a->counts));
    a->starts = arena_take(m->host, (size_t)groups + 1, sizeof(*a->starts));
    a->give = arena_take(m->host, (size_t)x.senders, sizeof(*a->give));
    a->take = arena_take(m->host, (size_t)x.senders, sizeof(*a->take));
    a->at = arena_take(m->host, (size_t)x.senders, sizeof(*a->at));
}

/* The sizes of a call in hand. */
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
    if (g.shape.senders > 1)
        g.shape.room = a->in.size[0]; /* of a short pass, too */
    return g;
}

/* Of the whole sequence, for the balancing loss: only a step of training has that. */
static void sum_counts(struct model *m, const struct routing *g, struct tensor count)
{
    op_copy(m->ops, &(struct copy_args){.y = g->a.total, .x = count});
    if (!experts_are_cut(m))
        comm_wait(m->comm, comm_all_reduce(m->comm, GROUP_TP, g->a.total, REDUCE_SUM));
    comm_wait(m->comm, comm_all_reduce(m->comm, GROUP_CP, g->a.total, REDUCE_SUM));
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
    rounds_exchange(m, g, count);
    slab_reset(m->ops->workspace, mark);
}

/* What the experts' rows of a round are before and behind the activation. */
static void multiply_up(struct model *m, int l, const struct routing *g)
{
    op_grouped(m->ops, &(struct grouped_args){.y = g->pre,
                                              .x = g->in,
                                              .w = m->w.layer[l].expert_up,
                                              .start = g->a.start,
                                              .expected = g->shape.pairs});
    op_glu(m->ops, &(struct glu_args){.y = g->h, .x = g->pre});
}

static void multiply_down(struct model *m, int l, const struct routing *g, struct tensor out)
{
    op_grouped(m->ops, &(struct grouped_args){.y = out,
                                              .x = g->h,
                                              .w = m->w.layer[l].expert_down,
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
    struct tensor given = tensor_rows(g.a.in, 0, g.shape.pairs), out = g.a.out;
    if (g.shape.senders > 1) {
        given = slab_2d(ws, d, g.shape.pairs, y.size[1]);
        out = slab_2d(ws, d, g.shape.room, y.size[1]);
    }
    m->crowded += g.rounds > 1 && p->train && !p->again;
    m->most_rounds = g.rounds > m->most_rounds ? g.rounds : m->most_rounds;
    op_permute(m->ops, &(struct permute_args){.to = given, .x = y, .slot = g.a.slot});
    for (int i = 0; i < g.rounds; i++) {
        rounds_begin(m, &g, i);
        rounds_send(m, &g, g.in, given, out);
        multiply_up(m, l, &g);
        multiply_down(m, l, &g, tensor_rows(out, 0, g.got));
        rounds_return(m, &g, g.a.out, tensor_rows(out, 0, g.got), g.a.in);
    }
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
    size_t mark = slab_mark(ws);
    struct tensor dh = slab_2d(ws, m->ops->real, g->shape.room, g->shape.ffn);
    struct tensor dpre = slab_2d(ws, m->ops->real, g->shape.room, 2 * g->shape.ffn);
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
                                                      .x = g->h,
                                                      .start = g->a.start,
                                                      .expected = g->shape.pairs});
    op_glu_bwd(m->ops, &(struct glu_bwd_args){.dx = dpre, .dy = dh, .x = g->pre});
    op_grouped_bwd(m->ops, &(struct grouped_bwd_args){.dw = grad->expert_up,
                                                      .dy = dpre,
                                                      .x = g->in,
                                                      .start = g->a.start,
                                                      .expected = g->shape.pairs});
    op_grouped(m->ops, &(struct grouped_args){.y = din,
                                              .x = dpre,
                                              .w = w->expert_up,
                                              .start = g->a.start,
                                              .backward = true,
                                              .expected = g->shape.pairs});
    slab_reset(ws, mark);
}

/*
 * dpair, the gradients of pairs, become those of what was given to the experts, by way of `dout`
 * and `din` (room). After several rounds a layer keeps its last one's rows alone: `y` is sent once
 * more, in the memory of `out`, which is not needed any more.
 */
static void rounds_backward(struct model *m, int l, struct routing *g, struct tensor y,
                            const struct tensor d[3])
{
    struct tensor dpair = d[0], dout = d[1], din = d[2];
    bool again = g->rounds > 1 && !FAULT("expert_again");
    if (again)
        op_permute(m->ops, &(struct permute_args){.to = g->a.out, .x = y, .slot = g->a.slot});
    for (int i = 0; i < g->rounds; i++) {
        if (g->rounds > 1)
            rounds_begin(m, g, i);
        if (again) {
            rounds_send(m, g, g->in, g->a.out, din);
            multiply_up(m, l, g);
        }
        rounds_send(m, g, tensor_rows(dout, 0, g->got), dpair, din);
        multiply_backward(m, l, g, tensor_rows(dout, 0, g->got), tensor_rows(din, 0, g->got));
        rounds_return(m, g, dpair, tensor_rows(din, 0, g->got), dout);
    }
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
    rounds_resume(m, &g);
    int64_t C = y.size[1];
    struct tensor dweight = slab_2d(ws, m->ops->stat, g.shape.rows, m->spec->topk);
    struct tensor dpair = slab_2d(ws, d, g.shape.pairs, C);
    struct tensor din = slab_2d(ws, d, g.shape.room, C);
    bool alone = g.shape.senders == 1;
    struct tensor dout = alone ? dpair : slab_2d(ws, d, g.shape.room, C);
    comm_wait(m->comm, all);
    op_unpermute_bwd(m->ops, &(struct unpermute_bwd_args){.dfrom = dpair,
                                                          .dweight = dweight,
                                                          .dy = dsub,
                                                          .from = g.a.out,
                                                          .slot = g.a.slot,
                                                          .weight = g.a.weight});
    if (g.rounds > 1) {
        comm_wait(m->comm, all_y);
        all_y = (struct comm_ticket){0};
    }
    rounds_backward(m, l, &g, y, (struct tensor[]){dpair, dout, din});
    op_permute_bwd(m->ops, &(struct permute_bwd_args){
                               .dx = part, .dto = alone ? din : dpair, .slot = g.a.slot});
    comm_wait(m->comm, all_y);
    route_backward(m, l, &g, dweight, y, part);
    if (cut)
        comm_wait(m->comm, stream_reduce(m, dy, part));
    slab_reset(ws, mark);
}

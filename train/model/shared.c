/* SPDX-License-Identifier: Apache-2.0 */
#include "train/model/shared.h"

static int64_t channels(const struct model *m)
{
    return m->spec->shared_ffn / comm_size(m->comm, GROUP_TP);
}

void shared_take(const struct model *m, struct slab *s, struct layer_acts *a)
{
    if (!m->spec->shared_ffn)
        return;
    a->shared_pre = slab_2d(s, m->ops->real, m->tokens, 2 * channels(m));
    a->shared_h = slab_2d(s, m->ops->real, m->tokens, channels(m));
    if (m->spec->shared_gate)
        a->shared_logit = slab_2d(s, m->ops->real, m->tokens, 1);
}

/* What the output product reads: h, times the sigmoid where there is one, in workspace. */
static struct tensor gated(struct model *m, struct tensor h, struct tensor logit)
{
    if (!m->spec->shared_gate)
        return h;
    struct tensor y = slab_2d(m->ops->workspace, m->ops->real, h.size[0], h.size[1]);
    op_gate(m->ops, &(struct gate_args){.y = y, .x = h, .logit = logit});
    return y;
}

static struct tensor shared_rows(struct tensor t, int64_t n)
{
    return tensor_none(t) ? t : tensor_rows(t, 0, n);
}

static void add_to(struct model *m, struct tensor y, struct tensor x)
{
    op_copy(m->ops, &(struct copy_args){.y = y, .x = x, .accumulate = true});
}

static struct tensor shared_scratch(struct model *m, int64_t rows, int64_t cols)
{
    return slab_2d(m->ops->workspace, m->ops->real, rows, cols);
}

void shared_forward(struct model *m, const struct model_pass *p, int l)
{
    const struct layer_weights *w = &m->w.layer[l];
    const struct layer_acts *a = &m->a.layer[l];
    size_t mark = slab_mark(m->ops->workspace);
    struct comm_ticket all;
    if (!m->spec->shared_ffn)
        return;
    struct tensor y = stream_gather(m, stream_rows(m, p, a->y2), &all);
    struct tensor pre = shared_rows(a->shared_pre, p->n), h = shared_rows(a->shared_h, p->n);
    struct tensor logit = shared_rows(a->shared_logit, p->n), sub = stream_rows(m, p, m->a.sub);
    comm_wait(m->comm, all);
    op_matmul(m->ops, &(struct matmul_args){.y = pre, .a = y, .b = w->shared_up, .tb = true});
    op_glu(m->ops, &(struct glu_args){.y = h, .x = pre});
    if (m->spec->shared_gate)
        op_matmul(m->ops,
                  &(struct matmul_args){.y = logit, .a = y, .b = w->shared_gate, .tb = true});
    if (!p->again || l < p->last) {
        struct tensor out = shared_scratch(m, sub.size[0], sub.size[1]),
                      part = stream_partial(m, out);
        op_matmul(m->ops, &(struct matmul_args){
                              .y = part, .a = gated(m, h, logit), .b = w->shared_down, .tb = true});
        comm_wait(m->comm, stream_reduce(m, out, part));
        add_to(m, sub, out);
    }
    slab_reset(m->ops->workspace, mark);
}

/* dh becomes the gradient of h; the gate's gradients, that of its input into part [n,C]. */
static void gate_backward(struct model *m, const struct model_pass *p, int l, struct tensor dh,
                          struct tensor y, struct tensor part)
{
    const struct layer_acts *a = &m->a.layer[l];
    if (!m->spec->shared_gate)
        return;
    struct tensor dlogit = shared_scratch(m, p->n, 1);
    op_gate_bwd(m->ops, &(struct gate_bwd_args){.dx = dh,
                                                .dlogit = dlogit,
                                                .dy = dh,
                                                .x = shared_rows(a->shared_h, p->n),
                                                .logit = shared_rows(a->shared_logit, p->n)});
    op_matmul(
        m->ops,
        &(struct matmul_args){
            .y = m->g.layer[l].shared_gate, .a = dlogit, .b = y, .ta = true, .accumulate = true});
    op_matmul(m->ops,
              &(struct matmul_args){.y = part, .a = dlogit, .b = m->w.layer[l].shared_gate});
}

void shared_backward(struct model *m, const struct model_pass *p, int l)
{
    const struct layer_weights *w = &m->w.layer[l], *g = &m->g.layer[l];
    const struct layer_acts *a = &m->a.layer[l];
    size_t mark = slab_mark(m->ops->workspace);
    struct comm_ticket all, all_y;
    if (!m->spec->shared_ffn)
        return;
    struct tensor dsub = stream_gather(m, stream_rows(m, p, m->a.dsub), &all);
    struct tensor y = stream_gather(m, stream_rows(m, p, a->y2), &all_y);
    struct tensor pre = shared_rows(a->shared_pre, p->n), h = shared_rows(a->shared_h, p->n);
    struct tensor dy = stream_rows(m, p, m->a.dy), dh = shared_scratch(m, p->n, h.size[1]);
    struct tensor dpre = shared_scratch(m, p->n, pre.size[1]),
                  more = shared_scratch(m, p->n, dy.size[1]);
    struct tensor out = shared_scratch(m, dy.size[0], dy.size[1]), part = stream_partial(m, out);
    comm_wait(m->comm, all);
    comm_wait(m->comm, all_y);
    op_matmul(m->ops, &(struct matmul_args){.y = dh, .a = dsub, .b = w->shared_down});
    op_matmul(m->ops, &(struct matmul_args){.y = g->shared_down,
                                            .a = dsub,
                                            .b = gated(m, h, shared_rows(a->shared_logit, p->n)),
                                            .ta = true,
                                            .accumulate = true});
    gate_backward(m, p, l, dh, y, part);
    op_glu_bwd(m->ops, &(struct glu_bwd_args){.dx = dpre, .dy = dh, .x = pre});
    op_matmul(m->ops, &(struct matmul_args){
                          .y = g->shared_up, .a = dpre, .b = y, .ta = true, .accumulate = true});
    op_matmul(m->ops, &(struct matmul_args){
                          .y = m->spec->shared_gate ? more : part, .a = dpre, .b = w->shared_up});
    if (m->spec->shared_gate)
        add_to(m, part, more);
    comm_wait(m->comm, stream_reduce(m, out, part));
    add_to(m, dy, out);
    slab_reset(m->ops->workspace, mark);
}

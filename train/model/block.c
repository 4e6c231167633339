/* SPDX-License-Identifier: Apache-2.0 */
#include "train/model/attention.h"
#include "train/model/model.h"
#include "train/model/parallel.h"
#include "train/model/shared.h"
#include "train/ops/head_norm.h"

/*
 * One transformer block; shapes as in model.h. Tensor parallelism lives here: attention and MLP
 * each end in one reduction forward (of sub) and one backward (of dy).
 */

static enum act act_of(const struct spec *s)
{
    return s->act == SPEC_GELU_ERF ? ACT_GELU_ERF : ACT_GELU_TANH;
}

static enum glu glu_of(const struct spec *s)
{
    return s->act == SPEC_GEGLU_TANH  ? GLU_GELU_TANH
           : s->act == SPEC_GEGLU_ERF ? GLU_GELU_ERF
                                      : GLU_SILU;
}

static enum norm norm_of(const struct spec *s)
{
    return s->norm == SPEC_RMSNORM ? NORM_RMS : NORM_LAYER;
}

static bool has_experts(const struct model *m, int l)
{
    return spec_has_experts(m->spec, m->stage.first + l);
}

static void rotate(const struct model *m, const struct model_pass *p, int l, struct tensor x,
                   bool backward)
{
    if (m->spec->position != SPEC_ROPE)
        return;
    bool local = spec_rope_local(m->spec, (FAULT("rope_layers") ? 0 : m->stage.first) + l);
    op_rope(m->ops, &(struct rope_args){.x = x,
                                        .cos = local ? m->a.local_cos : m->a.cos,
                                        .sin = local ? m->a.local_sin : m->a.sin,
                                        .position = tensor_rows(m->a.position, 0, p->n),
                                        .rotary = 2 * m->a.cos.size[1],
                                        .backward = backward});
}

/* Of queries or keys; `pre` and `rstd` as the layer keeps them, none without a backward pass. */
static void norm_heads(const struct model *m, const struct model_pass *p, struct tensor x,
                       struct tensor w, struct tensor pre, struct tensor rstd)
{
    if (!m->spec->qk_norm)
        return;
    bool kept = !tensor_none(pre);
    op_head_norm(m->ops, &(struct head_norm_args){
                             .eps = (float)m->spec->norm_eps,
                             .less_one = m->spec->zero_centered,
                             .x = x,
                             .pre = kept ? tensor_heads(tensor_rows(pre, 0, p->n), x.size[1]) : pre,
                             .rstd = kept ? tensor_rows(rstd, 0, p->n) : rstd,
                             .w = w});
}

/* Their gradient, in place. */
static void norm_heads_bwd(const struct model *m, const struct model_pass *p, struct tensor dx,
                           struct tensor w, struct tensor dw, const struct tensor kept[2])
{
    if (!m->spec->qk_norm)
        return;
    op_head_norm_bwd(m->ops, &(struct head_norm_bwd_args){
                                 .less_one = m->spec->zero_centered,
                                 .dx = dx,
                                 .pre = tensor_heads(tensor_rows(kept[0], 0, p->n), dx.size[1]),
                                 .rstd = tensor_rows(kept[1], 0, p->n),
                                 .w = w,
                                 .dw = dw});
}

/* From what attention or MLP gave to what waits for the stream. */
static void norm_output(const struct model *m, const struct model_pass *p, struct tensor out,
                        struct tensor rstd, struct tensor w)
{
    if (!m->spec->post_norm)
        return;
    op_norm(m->ops, &(struct norm_args){.kind = norm_of(m->spec),
                                        .less_one = m->spec->zero_centered,
                                        .eps = (float)m->spec->norm_eps,
                                        .y = stream_rows(m, p, m->a.sub),
                                        .rstd = stream_rows(m, p, rstd),
                                        .x = stream_rows(m, p, out),
                                        .w = w});
}

/* dsub: from the gradient of what waited to that of the output; dy is scratch here. */
static void norm_output_bwd(const struct model *m, const struct model_pass *p,
                            const struct tensor kept[2], struct tensor w, struct tensor dw)
{
    struct tensor dsub = stream_rows(m, p, m->a.dsub), dy = stream_rows(m, p, m->a.dy);
    if (!m->spec->post_norm || FAULT("post_norm_bwd"))
        return;
    op_copy(m->ops, &(struct copy_args){.y = dy, .x = dsub});
    op_fill(m->ops, &(struct fill_args){.y = dsub, .value = 0});
    op_norm_bwd(m->ops, &(struct norm_bwd_args){.kind = norm_of(m->spec),
                                                .less_one = m->spec->zero_centered,
                                                .dr = dsub,
                                                .dy = dy,
                                                .r = stream_rows(m, p, kept[0]),
                                                .rstd = stream_rows(m, p, kept[1]),
                                                .w = w,
                                                .dw = dw});
}

/* New keys and values join the cache behind the `past` ones. */
static void remember(const struct model *m, const struct model_pass *p, int l, struct tensor qkv)
{
    if (!m->a.cache_k)
        return;
    int64_t q = m->heads * m->spec->head_dim, kv = m->kv_heads * m->spec->head_dim;
    op_copy(m->ops, &(struct copy_args){.y = tensor_rows(m->a.cache_k[l], p->past, p->n),
                                        .x = tensor_cols(qkv, q, kv)});
    op_copy(m->ops, &(struct copy_args){.y = tensor_rows(m->a.cache_v[l], p->past, p->n),
                                        .x = tensor_cols(qkv, q + kv, kv)});
}

static void attention_forward(struct model *m, const struct model_pass *p, int l)
{
    const struct layer_weights *w = &m->w.layer[l];
    const struct layer_acts *a = &m->a.layer[l];
    size_t mark = slab_mark(m->ops->workspace);
    struct comm_ticket all;
    struct tensor y = stream_gather(m, stream_rows(m, p, a->y1), &all);
    struct tensor qkv = tensor_rows(a->qkv, 0, p->n);
    struct tensor sub = stream_rows(m, p, m->spec->post_norm ? a->out1 : m->a.sub);

    comm_wait(m->comm, all);
    op_matmul(m->ops,
              &(struct matmul_args){.y = qkv, .a = y, .b = w->qkv, .tb = true, .bias = w->qkv_b});
    struct qkv_heads h = model_heads(m, qkv);
    norm_heads(m, p, h.q, w->q_norm, a->q_pre, a->q_rstd);
    norm_heads(m, p, h.k, w->k_norm, a->k_pre, a->k_rstd);
    rotate(m, p, l, h.qk, false);
    remember(m, p, l, qkv);
    attention_run(m, p, l);
    struct tensor part = stream_partial(m, sub);
    op_matmul(m->ops, &(struct matmul_args){
                          .y = part, .a = tensor_rows(a->att, 0, p->n), .b = w->out, .tb = true});
    comm_wait(m->comm, stream_reduce(m, sub, part));
    slab_reset(m->ops->workspace, mark);
}

static void mlp_forward(struct model *m, const struct model_pass *p, int l)
{
    const struct layer_weights *w = &m->w.layer[l];
    const struct layer_acts *a = &m->a.layer[l];
    size_t mark = slab_mark(m->ops->workspace);
    struct comm_ticket all;
    struct tensor y = stream_gather(m, stream_rows(m, p, a->y2), &all);
    struct tensor pre = tensor_rows(a->pre, 0, p->n), h = tensor_rows(a->h, 0, p->n);
    struct tensor sub = stream_rows(m, p, m->spec->post_norm ? a->out2 : m->a.sub);

    comm_wait(m->comm, all);
    if (spec_gated(m->spec)) {
        op_matmul(m->ops,
                  &(struct matmul_args){.y = pre, .a = y, .b = w->up, .tb = true, .bias = w->up_b});
        op_glu(m->ops, &(struct glu_args){.y = h, .x = pre, .act = glu_of(m->spec)});
    } else {
        op_matmul(m->ops, &(struct matmul_args){.y = h,
                                                .a = y,
                                                .b = w->up,
                                                .tb = true,
                                                .bias = w->up_b,
                                                .pre = pre,
                                                .act = act_of(m->spec)});
    }
    if (!p->again || l < p->last || m->spec->post_norm) {
        struct tensor part = stream_partial(m, sub);
        op_matmul(m->ops, &(struct matmul_args){.y = part, .a = h, .b = w->down, .tb = true});
        comm_wait(m->comm, stream_reduce(m, sub, part));
    }
    slab_reset(m->ops->workspace, mark);
}

/* y2 from the stream x that the attention's norm had read, and what waits in sub. */
static void after_attention(struct model *m, const struct model_pass *p, int l, struct tensor x)
{
    const struct layer_weights *w = &m->w.layer[l];
    const struct layer_acts *a = &m->a.layer[l];
    if (m->spec->parallel) {
        parallel_forward(m, p, l, x);
        return;
    }
    op_norm(m->ops, &(struct norm_args){.kind = norm_of(m->spec),
                                        .less_one = m->spec->zero_centered,
                                        .eps = (float)m->spec->norm_eps,
                                        .y = stream_rows(m, p, a->y2),
                                        .r = stream_rows(m, p, a->r2),
                                        .mean = stream_rows(m, p, a->mean2),
                                        .rstd = stream_rows(m, p, a->rstd2),
                                        .x = x,
                                        .a = stream_rows(m, p, m->a.sub),
                                        .bias = w->out_b,
                                        .w = w->norm2,
                                        .b = w->norm2_b,
                                        .drop = model_dropout(m, p, DROP_OUT, l)});
}

void block_forward(struct model *m, const struct model_pass *p, int l, struct tensor x,
                   struct tensor sub, struct tensor sub_bias)
{
    const struct layer_weights *w = &m->w.layer[l];
    struct layer_acts *a = &m->a.layer[l];
    bool last = l + 1 == m->stage.layers;

    if (!tensor_none(sub)) /* whose bias this block adds */
        unit_use(m, unit_of_layer(m, l - 1), UNIT_NONE);
    unit_use(m, unit_of_layer(m, l),
             !last           ? unit_of_layer(m, l + 1)
             : m->stage.head ? unit_head(m)
                             : UNIT_NONE);
    m->ops->layer = l;
    op_norm(m->ops, &(struct norm_args){.kind = norm_of(m->spec),
                                        .less_one = m->spec->zero_centered,
                                        .eps = (float)m->spec->norm_eps,
                                        .y = stream_rows(m, p, a->y1),
                                        .r = tensor_none(sub) ? sub : stream_rows(m, p, a->r1),
                                        .mean = stream_rows(m, p, a->mean1),
                                        .rstd = stream_rows(m, p, a->rstd1),
                                        .x = x,
                                        .a = sub,
                                        .bias = sub_bias,
                                        .w = w->norm1,
                                        .b = w->norm1_b,
                                        .drop = model_dropout(m, p, DROP_MLP, l - 1)});
    attention_forward(m, p, l);
    norm_output(m, p, a->out1, a->out_rstd1, w->post1);
    after_attention(m, p, l, tensor_none(sub) ? x : stream_rows(m, p, a->r1));
    if (has_experts(m, l)) {
        experts_forward(m, p, l);
        shared_forward(m, p, l);
    } else {
        mlp_forward(m, p, l);
    }
    norm_output(m, p, a->out2, a->out_rstd2, w->post2);
    m->ops->layer = -1;
}

/* The backward pass of attention or MLP between the stream and its products: dsub and the input y,
 * all rows of them, and where the gradient of y becomes a sum. */
struct branch {
    struct tensor dsub, y, dy, part;
    struct comm_ticket all_y;
    size_t mark;
};

static struct branch branch_begin(struct model *m, const struct model_pass *p, struct tensor y)
{
    struct branch b = {.dy = stream_rows(m, p, m->a.dy), .mark = slab_mark(m->ops->workspace)};
    struct comm_ticket all;
    b.dsub = stream_gather(m, stream_rows(m, p, m->a.dsub), &all);
    b.y = stream_gather(m, stream_rows(m, p, y), &b.all_y);
    b.part = stream_partial(m, b.dy);
    comm_wait(m->comm, all);
    return b;
}

/* From d, the gradient of y w^T + bias: dy, and the gradients of w and its bias. */
static void branch_end(struct model *m, const struct branch *b, struct tensor d, struct tensor w,
                       struct tensor dw, struct tensor dbias)
{
    op_matmul(m->ops, &(struct matmul_args){.y = b->part, .a = d, .b = w});
    struct comm_ticket sum = stream_reduce(m, b->dy, b->part);
    comm_wait(m->comm, b->all_y);
    op_matmul(m->ops,
              &(struct matmul_args){
                  .y = dw, .a = d, .b = b->y, .ta = true, .accumulate = true, .dbias = dbias});
    comm_wait(m->comm, sum);
    slab_reset(m->ops->workspace, b->mark);
}

/* dsub -> dy (gradient of y2), and the MLP's weight gradients */
static void mlp_backward(struct model *m, const struct model_pass *p, int l)
{
    const struct layer_weights *w = &m->w.layer[l], *g = &m->g.layer[l];
    const struct layer_acts *a = &m->a.layer[l];
    int64_t n = p->n;
    struct slab *ws = m->ops->workspace;
    struct branch b = branch_begin(m, p, a->y2);
    struct tensor dpre = slab_2d(ws, m->ops->real, n, a->pre.size[1]);
    struct tensor pre = tensor_rows(a->pre, 0, n), h = tensor_rows(a->h, 0, n);

    if (spec_gated(m->spec)) {
        struct tensor dh = slab_2d(ws, m->ops->real, n, h.size[1]);
        op_matmul(m->ops, &(struct matmul_args){.y = dh, .a = b.dsub, .b = w->down});
        op_glu_bwd(m->ops,
                   &(struct glu_bwd_args){.dx = dpre, .dy = dh, .x = pre, .act = glu_of(m->spec)});
    } else {
        op_matmul(m->ops, &(struct matmul_args){.y = dpre,
                                                .a = b.dsub,
                                                .b = w->down,
                                                .pre = pre,
                                                .act = act_of(m->spec),
                                                .act_bwd = true});
    }
    op_matmul(m->ops, &(struct matmul_args){
                          .y = g->down, .a = b.dsub, .b = h, .ta = true, .accumulate = true});
    branch_end(m, &b, dpre, w->up, g->up, g->up_b);
}

/* dsub -> dy (gradient of y1), and the attention's weight gradients */
static void attention_backward(struct model *m, const struct model_pass *p, int l)
{
    const struct layer_weights *w = &m->w.layer[l], *g = &m->g.layer[l];
    const struct layer_acts *a = &m->a.layer[l];
    int64_t n = p->n;
    struct slab *ws = m->ops->workspace;
    struct branch b = branch_begin(m, p, a->y1);
    struct tensor datt = slab_2d(ws, m->ops->real, n, a->att.size[1]);
    struct tensor dqkv = slab_2d(ws, m->ops->real, n, a->qkv.size[1]);
    struct qkv_heads d = model_heads(m, dqkv);

    if (m->recompute.kind == RECOMPUTE_SELECTIVE && !FAULT("recompute_attention"))
        attention_run_again(m, p, l);
    op_matmul(m->ops, &(struct matmul_args){.y = datt, .a = b.dsub, .b = w->out});
    op_matmul(m->ops, &(struct matmul_args){.y = g->out,
                                            .a = b.dsub,
                                            .b = tensor_rows(a->att, 0, n),
                                            .ta = true,
                                            .accumulate = true});
    attention_run_bwd(m, p, l, datt, dqkv);
    rotate(m, p, l, d.qk, true);
    norm_heads_bwd(m, p, d.q, w->q_norm, g->q_norm, (const struct tensor[]){a->q_pre, a->q_rstd});
    norm_heads_bwd(m, p, d.k, w->k_norm, g->k_norm, (const struct tensor[]){a->k_pre, a->k_rstd});
    branch_end(m, &b, dqkv, w->qkv, g->qkv, g->qkv_b);
}

/* dy (gradient of y2) -> dsub */
static void before_attention_backward(struct model *m, const struct model_pass *p, int l)
{
    const struct layer_weights *w = &m->w.layer[l], *g = &m->g.layer[l];
    const struct layer_acts *a = &m->a.layer[l];
    op_norm_bwd(m->ops, &(struct norm_bwd_args){.kind = norm_of(m->spec),
                                                .less_one = m->spec->zero_centered,
                                                .dr = stream_rows(m, p, m->a.dr),
                                                .dy = stream_rows(m, p, m->a.dy),
                                                .r = stream_rows(m, p, a->r2),
                                                .mean = stream_rows(m, p, a->mean2),
                                                .rstd = stream_rows(m, p, a->rstd2),
                                                .w = w->norm2,
                                                .dw = g->norm2,
                                                .db = g->norm2_b,
                                                .da = stream_rows(m, p, m->a.dsub),
                                                .dbias = g->out_b,
                                                .drop = model_dropout(m, p, DROP_OUT, l)});
}

/* On entry dsub is the gradient of this block's MLP output, on return that of the output below. */
void block_backward(struct model *m, const struct model_pass *p, int l, bool first,
                    struct tensor below_bias)
{
    const struct layer_weights *w = &m->w.layer[l], *g = &m->g.layer[l];
    const struct layer_acts *a = &m->a.layer[l];
    struct tensor dr = stream_rows(m, p, m->a.dr), dy = stream_rows(m, p, m->a.dy);
    struct tensor dsub = stream_rows(m, p, m->a.dsub), none = {0};
    size_t mark = slab_mark(m->ops->workspace);

    unit_use(m, unit_of_layer(m, l), first ? UNIT_NONE : unit_of_layer(m, l - 1));
    unit_add(m, unit_of_layer(m, l));
    if (!first) /* the bias of the output below */
        unit_add(m, unit_of_layer(m, l - 1));
    m->ops->layer = l;
    norm_output_bwd(m, p, (struct tensor[]){a->out2, a->out_rstd2}, w->post2, g->post2);
    if (has_experts(m, l)) {
        experts_backward(m, p, l);
        shared_backward(m, p, l);
    } else {
        mlp_backward(m, p, l);
    }
    struct tensor dy2 = none, r1 = first ? stream_rows(m, p, m->a.x) : stream_rows(m, p, a->r1);
    if (m->spec->parallel)
        dy2 = parallel_backward(m, p, l);
    else
        before_attention_backward(m, p, l);
    norm_output_bwd(m, p, (struct tensor[]){a->out1, a->out_rstd1}, w->post1, g->post1);
    attention_backward(m, p, l);
    if (m->spec->parallel)
        parallel_backward_norm(m, p, l, r1, dy2);
    op_norm_bwd(m->ops, &(struct norm_bwd_args){.kind = norm_of(m->spec),
                                                .less_one = m->spec->zero_centered,
                                                .dr = dr,
                                                .dy = dy,
                                                .r = r1,
                                                .mean = stream_rows(m, p, a->mean1),
                                                .rstd = stream_rows(m, p, a->rstd1),
                                                .w = w->norm1,
                                                .dw = g->norm1,
                                                .db = g->norm1_b,
                                                .da = first ? none : dsub,
                                                .dbias = first ? none : below_bias,
                                                .drop = model_dropout(m, p, DROP_MLP, l - 1)});
    slab_reset(m->ops->workspace, mark);
    m->ops->layer = -1;
    unit_done(m, unit_of_layer(m, l));
}

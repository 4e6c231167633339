/* SPDX-License-Identifier: Apache-2.0 */
#include "train/model/model.h"

#include <math.h>

/*
 * One transformer block. A slab of n rows; shapes as in model.h. Tensor parallelism lives here:
 * attention and MLP each end in one reduction forward (of sub) and one backward (of dy).
 */

static enum act act_of(const struct spec *s)
{
    return s->act == SPEC_GELU_ERF ? ACT_GELU_ERF : ACT_GELU_TANH;
}

static enum norm norm_of(const struct spec *s)
{
    return s->norm == SPEC_RMSNORM ? NORM_RMS : NORM_LAYER;
}

static void rotate(const struct model *m, const struct model_pass *p, struct tensor x,
                   bool backward)
{
    if (m->spec->position != SPEC_ROPE)
        return;
    op_rope(m->ops, &(struct rope_args){.x = x,
                                        .cos = m->a.cos,
                                        .sin = m->a.sin,
                                        .position = tensor_rows(m->a.position, 0, p->n),
                                        .rotary = 2 * m->a.cos.size[1],
                                        .backward = backward});
}

static struct attention_args attention_of(const struct model *m, const struct model_pass *p, int l,
                                          struct tensor qkv)
{
    const struct layer_acts *a = &m->a.layer[l];
    struct qkv_heads h = model_heads(m, qkv);
    bool cached = m->a.cache_k != NULL;
    return (struct attention_args){.o = tensor_heads(tensor_rows(a->att, 0, p->n), m->heads),
                                   .lse = tensor_cols(a->lse, 0, p->n),
                                   .q = h.q,
                                   .k = cached ? tensor_heads(m->a.cache_k[l], m->kv_heads) : h.k,
                                   .v = cached ? tensor_heads(m->a.cache_v[l], m->kv_heads) : h.v,
                                   .q_start = tensor_rows(m->a.q_start, 0, p->sequences + 1),
                                   .k_start = tensor_rows(m->a.k_start, 0, p->sequences),
                                   .k_len = tensor_rows(m->a.k_len, 0, p->sequences),
                                   .max_len = p->past + p->max_len,
                                   .scale = (float)(1.0 / sqrt((double)m->spec->head_dim)),
                                   .drop = model_dropout(m, p, DROP_ATTENTION, l)};
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
    struct tensor qkv = tensor_rows(a->qkv, 0, p->n), sub = tensor_rows(m->a.sub, 0, p->n);

    op_matmul(
        m->ops,
        &(struct matmul_args){
            .y = qkv, .a = tensor_rows(a->y1, 0, p->n), .b = w->qkv, .tb = true, .bias = w->qkv_b});
    struct qkv_heads h = model_heads(m, qkv);
    rotate(m, p, h.q, false);
    rotate(m, p, h.k, false);
    remember(m, p, l, qkv);
    struct attention_args at = attention_of(m, p, l, qkv);
    op_attention(m->ops, &at);
    op_matmul(m->ops, &(struct matmul_args){
                          .y = sub, .a = tensor_rows(a->att, 0, p->n), .b = w->out, .tb = true});
    comm_wait(m->comm, comm_all_reduce(m->comm, GROUP_TP, sub, REDUCE_SUM));
}

static void mlp_forward(struct model *m, const struct model_pass *p, int l)
{
    const struct layer_weights *w = &m->w.layer[l];
    const struct layer_acts *a = &m->a.layer[l];
    struct tensor y = tensor_rows(a->y2, 0, p->n), pre = tensor_rows(a->pre, 0, p->n);
    struct tensor h = tensor_rows(a->h, 0, p->n), sub = tensor_rows(m->a.sub, 0, p->n);

    if (m->spec->act == SPEC_SWIGLU) {
        op_matmul(m->ops,
                  &(struct matmul_args){.y = pre, .a = y, .b = w->up, .tb = true, .bias = w->up_b});
        op_glu(m->ops, &(struct glu_args){.y = h, .x = pre});
    } else {
        op_matmul(m->ops, &(struct matmul_args){.y = h,
                                                .a = y,
                                                .b = w->up,
                                                .tb = true,
                                                .bias = w->up_b,
                                                .pre = pre,
                                                .act = act_of(m->spec)});
    }
    op_matmul(m->ops, &(struct matmul_args){.y = sub, .a = h, .b = w->down, .tb = true});
    comm_wait(m->comm, comm_all_reduce(m->comm, GROUP_TP, sub, REDUCE_SUM));
}

static struct tensor rows_or_none(struct tensor t, int64_t n)
{
    return tensor_none(t) ? t : tensor_rows(t, 0, n);
}

void block_forward(struct model *m, const struct model_pass *p, int l, struct tensor x,
                   struct tensor sub, struct tensor sub_bias)
{
    const struct layer_weights *w = &m->w.layer[l];
    struct layer_acts *a = &m->a.layer[l];
    int64_t n = p->n;

    op_norm(m->ops, &(struct norm_args){.kind = norm_of(m->spec),
                                        .eps = (float)m->spec->norm_eps,
                                        .y = tensor_rows(a->y1, 0, n),
                                        .r = tensor_none(sub) ? sub : tensor_rows(a->r1, 0, n),
                                        .mean = rows_or_none(a->mean1, n),
                                        .rstd = tensor_rows(a->rstd1, 0, n),
                                        .x = x,
                                        .a = sub,
                                        .bias = sub_bias,
                                        .w = w->norm1,
                                        .b = w->norm1_b,
                                        .drop = model_dropout(m, p, DROP_MLP, l - 1)});
    attention_forward(m, p, l);
    op_norm(m->ops, &(struct norm_args){.kind = norm_of(m->spec),
                                        .eps = (float)m->spec->norm_eps,
                                        .y = tensor_rows(a->y2, 0, n),
                                        .r = tensor_rows(a->r2, 0, n),
                                        .mean = rows_or_none(a->mean2, n),
                                        .rstd = tensor_rows(a->rstd2, 0, n),
                                        .x = tensor_none(sub) ? x : tensor_rows(a->r1, 0, n),
                                        .a = tensor_rows(m->a.sub, 0, n),
                                        .bias = w->out_b,
                                        .w = w->norm2,
                                        .b = w->norm2_b,
                                        .drop = model_dropout(m, p, DROP_OUT, l)});
    mlp_forward(m, p, l);
}

/* dsub -> dy (gradient of y2), and the MLP's weight gradients */
static void mlp_backward(struct model *m, const struct model_pass *p, int l)
{
    const struct layer_weights *w = &m->w.layer[l], *g = &m->g.layer[l];
    const struct layer_acts *a = &m->a.layer[l];
    int64_t n = p->n;
    struct slab *ws = m->ops->workspace;
    size_t mark = slab_mark(ws);
    struct tensor dpre = slab_2d(ws, m->ops->real, n, a->pre.size[1]);
    struct tensor dsub = tensor_rows(m->a.dsub, 0, n), dy = tensor_rows(m->a.dy, 0, n);
    struct tensor pre = tensor_rows(a->pre, 0, n), h = tensor_rows(a->h, 0, n);

    if (m->spec->act == SPEC_SWIGLU) {
        struct tensor dh = slab_2d(ws, m->ops->real, n, h.size[1]);
        op_matmul(m->ops, &(struct matmul_args){.y = dh, .a = dsub, .b = w->down});
        op_glu_bwd(m->ops, &(struct glu_bwd_args){.dx = dpre, .dy = dh, .x = pre});
    } else {
        op_matmul(m->ops, &(struct matmul_args){.y = dpre,
                                                .a = dsub,
                                                .b = w->down,
                                                .pre = pre,
                                                .act = act_of(m->spec),
                                                .act_bwd = true});
    }
    op_matmul(m->ops, &(struct matmul_args){
                          .y = g->down, .a = dsub, .b = h, .ta = true, .accumulate = true});
    op_matmul(m->ops, &(struct matmul_args){.y = dy, .a = dpre, .b = w->up});
    struct comm_ticket sum = comm_all_reduce(m->comm, GROUP_TP, dy, REDUCE_SUM);
    op_matmul(m->ops, &(struct matmul_args){.y = g->up,
                                            .a = dpre,
                                            .b = tensor_rows(a->y2, 0, n),
                                            .ta = true,
                                            .accumulate = true,
                                            .dbias = g->up_b});
    comm_wait(m->comm, sum);
    slab_reset(ws, mark);
}

/* dsub -> dy (gradient of y1), and the attention's weight gradients */
static void attention_backward(struct model *m, const struct model_pass *p, int l)
{
    const struct layer_weights *w = &m->w.layer[l], *g = &m->g.layer[l];
    const struct layer_acts *a = &m->a.layer[l];
    int64_t n = p->n;
    struct slab *ws = m->ops->workspace;
    size_t mark = slab_mark(ws);
    struct tensor datt = slab_2d(ws, m->ops->real, n, a->att.size[1]);
    struct tensor dqkv = slab_2d(ws, m->ops->real, n, a->qkv.size[1]);
    struct tensor dsub = tensor_rows(m->a.dsub, 0, n), dy = tensor_rows(m->a.dy, 0, n);
    struct qkv_heads d = model_heads(m, dqkv);

    op_matmul(m->ops, &(struct matmul_args){.y = datt, .a = dsub, .b = w->out});
    op_matmul(m->ops, &(struct matmul_args){.y = g->out,
                                            .a = dsub,
                                            .b = tensor_rows(a->att, 0, n),
                                            .ta = true,
                                            .accumulate = true});
    op_attention_bwd(m->ops, &(struct attention_bwd_args){
                                 .fwd = attention_of(m, p, l, tensor_rows(a->qkv, 0, n)),
                                 .dout = tensor_heads(datt, m->heads),
                                 .dq = d.q,
                                 .dk = d.k,
                                 .dv = d.v});
    rotate(m, p, d.q, true);
    rotate(m, p, d.k, true);
    op_matmul(m->ops, &(struct matmul_args){.y = dy, .a = dqkv, .b = w->qkv});
    struct comm_ticket sum = comm_all_reduce(m->comm, GROUP_TP, dy, REDUCE_SUM);
    op_matmul(m->ops, &(struct matmul_args){.y = g->qkv,
                                            .a = dqkv,
                                            .b = tensor_rows(a->y1, 0, n),
                                            .ta = true,
                                            .accumulate = true,
                                            .dbias = g->qkv_b});
    comm_wait(m->comm, sum);
    slab_reset(ws, mark);
}

/* On entry dsub is the gradient of this block's MLP output, on return that of the output below. */
void block_backward(struct model *m, const struct model_pass *p, int l, bool first,
                    struct tensor below_bias)
{
    const struct layer_weights *w = &m->w.layer[l], *g = &m->g.layer[l];
    const struct layer_acts *a = &m->a.layer[l];
    int64_t n = p->n;
    struct tensor dr = tensor_rows(m->a.dr, 0, n), dy = tensor_rows(m->a.dy, 0, n);
    struct tensor dsub = tensor_rows(m->a.dsub, 0, n), none = {0};

    mlp_backward(m, p, l);
    op_norm_bwd(m->ops, &(struct norm_bwd_args){.kind = norm_of(m->spec),
                                                .dr = dr,
                                                .dy = dy,
                                                .r = tensor_rows(a->r2, 0, n),
                                                .mean = rows_or_none(a->mean2, n),
                                                .rstd = tensor_rows(a->rstd2, 0, n),
                                                .w = w->norm2,
                                                .dw = g->norm2,
                                                .db = g->norm2_b,
                                                .da = dsub,
                                                .dbias = g->out_b,
                                                .drop = model_dropout(m, p, DROP_OUT, l)});
    attention_backward(m, p, l);
    op_norm_bwd(m->ops, &(struct norm_bwd_args){.kind = norm_of(m->spec),
                                                .dr = dr,
                                                .dy = dy,
                                                .r = first ? tensor_rows(m->a.x, 0, n)
                                                           : tensor_rows(a->r1, 0, n),
                                                .mean = rows_or_none(a->mean1, n),
                                                .rstd = tensor_rows(a->rstd1, 0, n),
                                                .w = w->norm1,
                                                .dw = g->norm1,
                                                .db = g->norm1_b,
                                                .da = first ? none : dsub,
                                                .dbias = first ? none : below_bias,
                                                .drop = model_dropout(m, p, DROP_MLP, l - 1)});
}

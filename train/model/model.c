/* SPDX-License-Identifier: Apache-2.0 */
#include "train/model/model.h"

struct dropout model_dropout(const struct model *m, const struct model_pass *p,
                             enum drop_place place, int layer)
{
    double share = place == DROP_ATTENTION ? m->spec->attention_dropout : m->spec->hidden_dropout;
    return (struct dropout){.p = p->train ? (float)share : 0,
                            .seed = m->seed,
                            .sub = (uint32_t)(m->stage.first + layer + 1) * 4 + (uint32_t)place,
                            .row0 = p->row0};
}

struct qkv_heads model_heads(const struct model *m, struct tensor qkv)
{
    int64_t q = m->heads * m->spec->head_dim, kv = m->kv_heads * m->spec->head_dim;
    return (struct qkv_heads){.q = tensor_heads(tensor_cols(qkv, 0, q), m->heads),
                              .k = tensor_heads(tensor_cols(qkv, q, kv), m->kv_heads),
                              .v = tensor_heads(tensor_cols(qkv, q + kv, kv), m->kv_heads)};
}

/* ---- embedding --------------------------------------------------------------------------- */

static void embed_forward(struct model *m, const struct model_pass *p)
{
    bool learned = m->spec->position == SPEC_LEARNED;
    op_embed(m->ops, &(struct embed_args){.y = tensor_rows(m->a.x, 0, p->n),
                                          .id = tensor_rows(m->a.id, 0, p->n),
                                          .tok = m->w.embed,
                                          .pos = m->w.position,
                                          .position = learned ? tensor_rows(m->a.position, 0, p->n)
                                                              : (struct tensor){0},
                                          .drop = model_dropout(m, p, DROP_EMBED, -1)});
}

static void embed_backward(struct model *m, const struct model_pass *p)
{
    bool learned = m->spec->position == SPEC_LEARNED;
    op_embed_bwd(m->ops,
                 &(struct embed_bwd_args){.dy = tensor_rows(m->a.dr, 0, p->n),
                                          .id = tensor_rows(m->a.id, 0, p->n),
                                          .dtok = m->g.embed,
                                          .dpos = m->g.position,
                                          .position = learned ? tensor_rows(m->a.position, 0, p->n)
                                                              : (struct tensor){0},
                                          .drop = model_dropout(m, p, DROP_EMBED, -1)});
}

/* ---- embedding to final norm ------------------------------------------------------------- */

static enum norm norm_of(const struct spec *s)
{
    return s->norm == SPEC_RMSNORM ? NORM_RMS : NORM_LAYER;
}

void model_forward(struct model *m, const struct model_pass *p)
{
    int last = m->stage.layers - 1;
    int64_t n = p->n;
    struct tensor none = {0}, sub = tensor_rows(m->a.sub, 0, n);

    embed_forward(m, p);
    block_forward(m, p, 0, tensor_rows(m->a.x, 0, n), none, none);
    for (int l = 1; l <= last; l++)
        block_forward(m, p, l, tensor_rows(m->a.layer[l - 1].r2, 0, n), sub,
                      m->w.layer[l - 1].down_b);
    op_norm(m->ops, &(struct norm_args){
                        .kind = norm_of(m->spec),
                        .eps = (float)m->spec->norm_eps,
                        .y = tensor_rows(m->a.y, 0, n),
                        .r = tensor_rows(m->a.r, 0, n),
                        .mean = tensor_none(m->a.mean) ? none : tensor_rows(m->a.mean, 0, n),
                        .rstd = tensor_rows(m->a.rstd, 0, n),
                        .x = tensor_rows(m->a.layer[last].r2, 0, n),
                        .a = sub,
                        .bias = m->w.layer[last].down_b,
                        .w = m->w.norm,
                        .b = m->w.norm_b,
                        .drop = model_dropout(m, p, DROP_MLP, last)});
}

void model_backward(struct model *m, const struct model_pass *p)
{
    int last = m->stage.layers - 1;
    int64_t n = p->n;
    struct tensor none = {0}, dr = tensor_rows(m->a.dr, 0, n);

    op_fill(m->ops, &(struct fill_args){.y = dr, .value = 0});
    op_norm_bwd(m->ops, &(struct norm_bwd_args){
                            .kind = norm_of(m->spec),
                            .dr = dr,
                            .dy = tensor_rows(m->a.dy, 0, n),
                            .r = tensor_rows(m->a.r, 0, n),
                            .mean = tensor_none(m->a.mean) ? none : tensor_rows(m->a.mean, 0, n),
                            .rstd = tensor_rows(m->a.rstd, 0, n),
                            .w = m->w.norm,
                            .dw = m->g.norm,
                            .db = m->g.norm_b,
                            .da = tensor_rows(m->a.dsub, 0, n),
                            .dbias = m->g.layer[last].down_b,
                            .drop = model_dropout(m, p, DROP_MLP, last)});
    for (int l = last; l >= 0; l--)
        block_backward(m, p, l, l == 0, l ? m->g.layer[l - 1].down_b : none);
    embed_backward(m, p);
}

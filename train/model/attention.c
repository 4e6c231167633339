/* SPDX-License-Identifier: Apache-2.0 */
#include "train/model/attention.h"

#include <math.h>

#include "base/core/fault.h"
#include "train/model/context.h"

struct attention_args attention_args_of(const struct model *m, const struct model_pass *p, int l)
{
    const struct layer_acts *a = &m->a.layer[l];
    struct qkv_heads h = model_heads(m, tensor_rows(a->qkv, 0, p->n));
    bool cached = m->a.cache_k != NULL;
    return (struct attention_args){
        .o = tensor_heads(tensor_rows(a->att, 0, p->n), m->heads),
        .lse = tensor_cols(a->lse, 0, p->n),
        .q = h.q,
        .k = cached ? tensor_heads(m->a.cache_k[l], m->kv_heads) : h.k,
        .v = cached ? tensor_heads(m->a.cache_v[l], m->kv_heads) : h.v,
        .q_start = tensor_rows(m->a.q_start, 0, p->sequences + 1),
        .k_start = tensor_rows(m->a.k_start, 0, p->sequences),
        .k_len = tensor_rows(m->a.k_len, 0, p->sequences),
        .max_len = p->past + p->max_len,
        .window = spec_window(m->spec, (FAULT("window_layers") ? 0 : m->stage.first) + l),
        .even = p->even && !cached,
        .any_order = m->any_order,
        .scale = (float)(1.0 / sqrt(m->spec->query_scalar > 0 ? m->spec->query_scalar
                                                              : (double)m->spec->head_dim)),
        .cap = (float)m->spec->score_cap,
        .all_heads = m->spec->heads,
        .head0 = FAULT("dropout_heads") ? 0 : m->heads * comm_index(m->comm, GROUP_TP),
        .drop = model_dropout(m, p, DROP_ATTENTION, l)};
}

void attention_run(struct model *m, const struct model_pass *p, int l)
{
    if (m->context.cp > 1) {
        context_attention(m, p, l, false);
        return;
    }
    struct attention_args a = attention_args_of(m, p, l);
    op_attention(m->ops, &a);
}

void attention_run_again(struct model *m, const struct model_pass *p, int l)
{
    if (m->context.cp > 1)
        context_attention(m, p, l, true);
    else
        attention_run(m, p, l);
}

void attention_run_bwd(struct model *m, const struct model_pass *p, int l, struct tensor datt,
                       struct tensor dqkv)
{
    if (m->context.cp > 1) {
        context_attention_bwd(m, p, l, datt, dqkv);
        return;
    }
    struct qkv_heads d = model_heads(m, dqkv);
    op_attention_bwd(m->ops, &(struct attention_bwd_args){.fwd = attention_args_of(m, p, l),
                                                          .dout = tensor_heads(datt, m->heads),
                                                          .dq = d.q,
                                                          .dk = d.k,
                                                          .dv = d.v});
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "train/model/model.h"

#include <math.h>

#include "base/core/fault.h"
#include "train/model/recompute.h"

struct dropout model_dropout(const struct model *m, const struct model_pass *p,
                             enum drop_place place, int layer)
{
    double share = place == DROP_ATTENTION ? m->spec->attention_dropout : m->spec->hidden_dropout;
    struct dropout d = {.p = p->train ? (float)share : 0,
                        .sub = (uint32_t)(m->stage.first + layer + 1) * 4 + (uint32_t)place,
                        .origin = m->a.origin};
    if (place == DROP_OUT || place == DROP_MLP)
        stream_number(m, p, &d);
    else if (place == DROP_EMBED && !tensor_none(m->a.row))
        d.rows = tensor_rows(m->a.row, 0, p->n);
    return d;
}

struct qkv_heads model_heads(const struct model *m, struct tensor qkv)
{
    int64_t q = m->heads * m->spec->head_dim, kv = m->kv_heads * m->spec->head_dim;
    return (struct qkv_heads){
        .q = tensor_heads(tensor_cols(qkv, 0, q), m->heads),
        .k = tensor_heads(tensor_cols(qkv, q, kv), m->kv_heads),
        .v = tensor_heads(tensor_cols(qkv, q + kv, kv), m->kv_heads),
        .qk = tensor_heads(tensor_cols(qkv, 0, q + kv), m->heads + m->kv_heads)};
}

/* ---- embedding --------------------------------------------------------------------------- */

struct vocab_part model_vocab(const struct model *m)
{
    int64_t rows = m->spec->padded_vocab / comm_size(m->comm, GROUP_TP);
    int64_t first = rows * comm_index(m->comm, GROUP_TP), left = m->spec->vocab - first;
    return (struct vocab_part){.first = first, .count = left < 0 ? 0 : left < rows ? left : rows};
}

/* The factor of embeddings, as their type holds it: so does transformers multiply. 0: 1. */
static double embed_scale(const struct model *m)
{
    double root = sqrt((double)m->spec->hidden);
    int exponent, digits = dtype_rows[m->ops->real].digits;
    if (!m->spec->embed_scale)
        return 0;
    double fraction = frexp(root, &exponent);
    return ldexp(nearbyint(ldexp(fraction, digits)), exponent - digits);
}

/* Each rank has the rows of its part of the vocabulary; the first adds the positions. */
/* NEFTune: alpha / sqrt(L C), L the length of a row with its padding, as transformers has it. */
static float embed_noise(const struct model *m, const struct model_pass *p)
{
    double elements = (double)p->max_len * (double)m->spec->hidden;
    return p->train ? (float)(m->noise / sqrt(elements)) : 0;
}

static void embed_forward(struct model *m, const struct model_pass *p)
{
    bool once = comm_index(m->comm, GROUP_TP) == 0; /* of the ranks whose parts are added up */
    bool learned = m->spec->position == SPEC_LEARNED && (once || FAULT("embed_positions"));
    size_t mark = slab_mark(m->ops->workspace);
    struct tensor none = {0}, x = stream_rows(m, p, m->a.x), part = stream_partial(m, x);
    unit_use(m, UNIT_EMBED, unit_of_layer(m, 0));
    op_embed(m->ops,
             &(struct embed_args){.y = part,
                                  .id = tensor_rows(m->a.id, 0, p->n),
                                  .shard = comm_size(m->comm, GROUP_TP) > 1,
                                  .first = model_vocab(m).first,
                                  .scale = embed_scale(m),
                                  .tok = m->w.embed,
                                  .pos = learned ? m->w.position : none,
                                  .position = learned ? tensor_rows(m->a.position, 0, p->n) : none,
                                  .noise = once || FAULT("embed_noise") ? embed_noise(m, p) : 0,
                                  .drop = model_dropout(m, p, DROP_EMBED, -1)});
    comm_wait(m->comm, stream_reduce(m, x, part));
    slab_reset(m->ops->workspace, mark);
}

/* The gradient's row that keeps what it has, if it lies here; none: all are added to. */
static struct tensor frozen_row(const struct model *m)
{
    int64_t at = m->frozen_id - model_vocab(m).first;
    bool here = m->frozen && at >= 0 && at < m->g.embed.size[0] && !FAULT("frozen_row");
    return here ? tensor_rows(m->g.embed, at, 1) : (struct tensor){0};
}

static void copy_row(struct model *m, struct tensor to, struct tensor from)
{
    struct dev *dev = m->ops->dev;
    if (!tensor_none(to))
        dev->fn->copy(dev, STREAM_COMPUTE, to.data, from.data, tensor_bytes(to));
}

static void embed_backward(struct model *m, const struct model_pass *p)
{
    bool learned = m->spec->position == SPEC_LEARNED;
    size_t mark = slab_mark(m->ops->workspace);
    struct comm_ticket all;
    struct tensor dy = stream_gather(m, stream_rows(m, p, m->a.dr), &all);
    comm_wait(m->comm, all);
    unit_add(m, UNIT_EMBED);
    struct tensor row = frozen_row(m), kept = {0};
    if (!tensor_none(row))
        kept = slab_2d(m->ops->workspace, row.dtype, 1, row.size[1]);
    copy_row(m, kept, row);
    op_embed_bwd(m->ops,
                 &(struct embed_bwd_args){.dy = dy,
                                          .id = tensor_rows(m->a.id, 0, p->n),
                                          .shard = comm_size(m->comm, GROUP_TP) > 1,
                                          .first = model_vocab(m).first,
                                          .scale = embed_scale(m),
                                          .dtok = m->g.embed,
                                          .dpos = m->g.position,
                                          .position = learned ? tensor_rows(m->a.position, 0, p->n)
                                                              : (struct tensor){0},
                                          .drop = model_dropout(m, p, DROP_EMBED, -1)});
    copy_row(m, row, kept);
    unit_done(m, UNIT_EMBED);
    slab_reset(m->ops->workspace, mark);
}

/* ---- embedding to final norm ------------------------------------------------------------- */

static enum norm norm_of(const struct spec *s)
{
    return s->norm == SPEC_RMSNORM ? NORM_RMS : NORM_LAYER;
}

/*
 * The stream with what waits in sub, and the final norm. Where the next stage goes on, the stream
 * alone leaves: there is no op for that, so the norm's output goes to a place that nobody reads,
 * and backward it has no gradient. A stage without layers adds nothing to the stream.
 */
static void leave_stage(struct model *m, const struct model_pass *p)
{
    int last = m->stage.layers - 1;
    bool head = m->stage.head, some = m->stage.layers > 0;
    struct tensor none = {0};
    if (!some && !head)
        return;
    if (some)
        unit_use(m, unit_of_layer(m, last), head ? unit_head(m) : UNIT_NONE);
    if (head)
        unit_use(m, unit_head(m), m->spec->tied ? UNIT_EMBED : UNIT_NONE);
    op_norm(m->ops, &(struct norm_args){.kind = norm_of(m->spec),
                                        .less_one = m->spec->zero_centered,
                                        .eps = (float)m->spec->norm_eps,
                                        .y = stream_rows(m, p, m->a.y),
                                        .r = some ? stream_rows(m, p, m->a.r) : none,
                                        .mean = stream_rows(m, p, m->a.mean),
                                        .rstd = stream_rows(m, p, m->a.rstd),
                                        .x = stream_rows(m, p, some ? m->a.layer[last].r2 : m->a.x),
                                        .a = some ? stream_rows(m, p, m->a.sub) : none,
                                        .bias = some ? m->w.layer[last].down_b : none,
                                        .w = head ? m->w.norm : m->w.layer[last].norm2,
                                        .b = head ? m->w.norm_b : m->w.layer[last].norm2_b,
                                        .drop = some ? model_dropout(m, p, DROP_MLP, last)
                                                     : (struct dropout){0}});
}

struct tensor model_output(const struct model *m)
{
    return m->stage.layers || FAULT("empty_stage") ? m->a.r : m->a.x;
}

void model_forward(struct model *m, const struct model_pass *p)
{
    struct tensor none = {0}, sub = stream_rows(m, p, m->a.sub);

    if (m->stage.embed)
        embed_forward(m, p);
    for (int l = 0; l < m->stage.layers; l++) {
        if (l)
            block_forward(m, p, l, stream_rows(m, p, m->a.layer[l - 1].r2), sub,
                          m->w.layer[l - 1].down_b);
        else
            block_forward(m, p, 0, stream_rows(m, p, m->a.x), none, none);
        recompute_keep(m, p, l);
    }
    leave_stage(m, p);
}

/* dr and dsub at the end of the stage's last layer. */
static void enter_stage_backward(struct model *m, const struct model_pass *p)
{
    int last = m->stage.layers - 1;
    bool head = m->stage.head, some = m->stage.layers > 0;
    struct tensor dr = stream_rows(m, p, m->a.dr), dy = stream_rows(m, p, m->a.dy), none = {0};
    if (!some && !head)
        return;
    if (head) {
        unit_use(m, unit_head(m), some ? unit_of_layer(m, last) : UNIT_NONE);
        unit_add(m, unit_head(m));
    }
    if (some)
        unit_add(m, unit_of_layer(m, last));
    op_fill(m->ops, &(struct fill_args){.y = head ? dr : dy, .value = 0});
    op_norm_bwd(m->ops, &(struct norm_bwd_args){.kind = norm_of(m->spec),
                                                .less_one = m->spec->zero_centered,
                                                .dr = dr,
                                                .dy = dy,
                                                .r = stream_rows(m, p, model_output(m)),
                                                .mean = stream_rows(m, p, m->a.mean),
                                                .rstd = stream_rows(m, p, m->a.rstd),
                                                .w = head ? m->w.norm : m->w.layer[last].norm2,
                                                .dw = head ? m->g.norm : m->g.layer[last].norm2,
                                                .db = head ? m->g.norm_b : m->g.layer[last].norm2_b,
                                                .da = some ? stream_rows(m, p, m->a.dsub) : none,
                                                .dbias = some ? m->g.layer[last].down_b : none,
                                                .drop = some ? model_dropout(m, p, DROP_MLP, last)
                                                             : (struct dropout){0}});
    if (head)
        unit_done(m, unit_head(m));
}

void model_backward(struct model *m, const struct model_pass *p)
{
    struct tensor none = {0};
    enter_stage_backward(m, p);
    for (int l = m->stage.layers - 1; l >= 0; l--) {
        recompute_group(m, p, l);
        block_backward(m, p, l, l == 0, l ? m->g.layer[l - 1].down_b : none);
    }
    if (m->stage.embed)
        embed_backward(m, p);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "train/model/parallel.h"

#include "base/core/fault.h"

static enum norm norm_of(const struct spec *s)
{
    return s->norm == SPEC_RMSNORM ? NORM_RMS : NORM_LAYER;
}

static struct tensor take_rows(const struct model *m, const struct model_pass *p)
{
    return slab_2d(m->ops->workspace, m->ops->real, stream_count(m, p->n), m->spec->hidden);
}

static struct tensor take_stat(const struct model *m, const struct model_pass *p, struct tensor as)
{
    return tensor_none(as) ? as : slab_1d(m->ops->workspace, m->ops->stat, stream_count(m, p->n));
}

/* There is no op that adds to the stream without a norm: the norm's output is not read. */
void parallel_forward(struct model *m, const struct model_pass *p, int l, struct tensor r1)
{
    const struct layer_weights *w = &m->w.layer[l];
    const struct layer_acts *a = &m->a.layer[l];
    size_t mark = slab_mark(m->ops->workspace);
    struct norm_args norm = {.kind = norm_of(m->spec),
                             .eps = (float)m->spec->norm_eps,
                             .y = stream_rows(m, p, a->y2),
                             .mean = stream_rows(m, p, a->mean2),
                             .rstd = stream_rows(m, p, a->rstd2),
                             .x = r1,
                             .w = w->norm2,
                             .b = w->norm2_b};
    op_norm(m->ops, &norm);
    norm.y = take_rows(m, p);
    norm.mean = take_stat(m, p, a->mean2);
    norm.rstd = take_stat(m, p, a->rstd2);
    norm.r = stream_rows(m, p, a->r2);
    norm.a = stream_rows(m, p, m->a.sub);
    norm.bias = w->out_b;
    norm.drop = model_dropout(m, p, DROP_OUT, l);
    op_norm(m->ops, &norm);
    slab_reset(m->ops->workspace, mark);
}

static struct norm_bwd_args backward_of(const struct model *m, const struct model_pass *p, int l)
{
    const struct layer_acts *a = &m->a.layer[l];
    return (struct norm_bwd_args){.kind = norm_of(m->spec),
                                  .dr = stream_rows(m, p, m->a.dr),
                                  .mean = stream_rows(m, p, a->mean2),
                                  .rstd = stream_rows(m, p, a->rstd2),
                                  .w = m->w.layer[l].norm2,
                                  .dw = m->g.layer[l].norm2,
                                  .db = m->g.layer[l].norm2_b};
}

struct tensor parallel_backward(struct model *m, const struct model_pass *p, int l)
{
    struct tensor dy2 = take_rows(m, p), dy = stream_rows(m, p, m->a.dy);
    struct norm_bwd_args b = backward_of(m, p, l);
    op_copy(m->ops, &(struct copy_args){.y = dy2, .x = dy});
    op_fill(m->ops, &(struct fill_args){.y = dy, .value = 0}); /* nothing came of that norm */
    b.dy = dy;
    b.r = stream_rows(m, p, m->a.layer[l].r2);
    b.da = stream_rows(m, p, m->a.dsub);
    b.dbias = m->g.layer[l].out_b;
    b.drop = model_dropout(m, p, DROP_OUT, l);
    op_norm_bwd(m->ops, &b);
    return dy2;
}

void parallel_backward_norm(struct model *m, const struct model_pass *p, int l, struct tensor r1,
                            struct tensor dy2)
{
    struct norm_bwd_args b = backward_of(m, p, l);
    b.dy = dy2;
    b.r = FAULT("parallel_residual") ? stream_rows(m, p, m->a.layer[l].r2) : r1;
    op_norm_bwd(m->ops, &b);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "train/optim/sai.h"

#include "base/core/fault.h"
#include "train/ops/blocks.h"
#include "train/ops/values.h"
#include "train/optim/rounding.h"

/* ---- blocks ------------------------------------------------------------------------------ */

static int of_layer(const struct params *p)
{
    return PARAM_KINDS + 2 * (int)p->spec.experts;
}

int sai_blocks(const struct params *p)
{
    return of_layer(p) * ((int)p->spec.layers + 1);
}

static int block_of(const struct params *p, const struct param *q)
{
    int begin = (q->layer + 1) * of_layer(p);
    if (q->expert < 0)
        return begin + (int)q->kind;
    return begin + PARAM_KINDS + 2 * q->expert + (q->kind == PARAM_EXPERT_DOWN);
}

/* The number of a block in optim.gsnr, which keeps the column of this rank (sai_first). */
static int64_t place_of(const struct optim *o, const struct param *q)
{
    return (int64_t)block_of(o->params, q) * o->columns + o->column;
}

struct tensor sai_gsnr(const struct optim *o, const struct param *q)
{
    return tensor_rows(o->gsnr, place_of(o, q), 1);
}

/* ---- statistics -------------------------------------------------------------------------- */

enum { COUNT, SUM, DEVIATIONS };

static struct tensor stat(const struct optim *o, int which)
{
    int64_t n = o->gsnr.size[0];
    return tensor_rows(o->stats, which * n, n);
}

/* The part of the elements [begin, end) of the slab that is kept here. */
static void add_range(struct optim *o, struct ops *ops, const struct param *q, int64_t begin,
                      int64_t end)
{
    struct moments_args a = {.count = tensor_rows(stat(o, COUNT), place_of(o, q), 1),
                             .sum = tensor_rows(stat(o, SUM), place_of(o, q), 1)};
    if (o->second)
        a.deviations = tensor_rows(stat(o, DEVIATIONS), place_of(o, q), 1);
    for (size_t i = 0; i < zero_pieces(o->zero); i++) {
        struct zero_piece p = zero_piece(o->zero, i);
        if (!zero_cut(&p, begin, end))
            continue;
        a.x = optim_part(o, o->grads, p);
        op_moments(ops, &a);
    }
}

static void add_blocks(struct optim *o, struct ops *ops, bool experts)
{
    const struct params *ps = o->params;
    for (int i = 0; i < ps->n; i++) {
        const struct param *q = &ps->at[i];
        if (!q->trained || (q->offset >= ps->experts) != experts)
            continue;
        if (o->tuning.sai_shard && q->sources && !(q->kind == PARAM_EMBED && o->last_stage))
            add_range(o, ops, q, q->offset, q->offset + q->count);
        for (int k = 0; k < q->sources && !o->tuning.sai_shard; k++) {
            const struct param_source *s = &q->source[k];
            int64_t first = q->offset + s->row * q->size[1];
            if (s->counts && !(k && FAULT("sai_block")))
                add_range(o, ops, q, first, first + s->count[0] * q->size[1]);
        }
    }
}

void sai_first(struct optim *o, struct ops *ops, struct comm *comm)
{
    int64_t n = o->gsnr.size[0];
    op_fill(ops, &(struct fill_args){.y = o->stats});
    o->second = false;
    optim_sum(o, ops, comm, tensor_rows(o->stats, 0, 2 * n), add_blocks);
    o->second = true;
    optim_sum(o, ops, comm, stat(o, DEVIATIONS), add_blocks);
    op_gsnr(ops, &(struct gsnr_args){.y = o->gsnr,
                                     .count = stat(o, COUNT),
                                     .sum = stat(o, SUM),
                                     .deviations = stat(o, DEVIATIONS),
                                     .factor = o->factor,
                                     .skip = o->skip,
                                     .eps = 1e-8,
                                     .max = o->tuning.sai_max});
}

/* ---- update ------------------------------------------------------------------------------ */

void sai_update(const struct optim *o, struct ops *ops, const struct optim_piece *x)
{
    size_t mark = slab_mark(ops->workspace);
    bool plain = tensor_none(x->state[0]);
    struct tensor step = plain ? slab_1d(ops->workspace, x->p.dtype, x->p.size[0]) : x->state[0];
    op_momentum(ops, &(struct momentum_args){.y = step,
                                             .m = x->state[0],
                                             .g = x->g,
                                             .factor = o->factor,
                                             .skip = o->skip,
                                             .momentum = o->momentum,
                                             .number = step_value(o->values, STEP_NUMBER),
                                             .round = rounding_from(o, x->first)});
    op_decayed(ops, &(struct decayed_args){.p = x->p,
                                           .x = step,
                                           .gsnr = sai_gsnr(o, x->of),
                                           .skip = o->skip,
                                           .values = o->values,
                                           .decays = x->decays,
                                           .scale = 1,
                                           .round = rounding_from(o, x->first)});
    if (!tensor_none(x->copy) && !FAULT("sai_copy"))
        op_copy(ops, &(struct copy_args){.y = x->copy, .x = x->p});
    slab_reset(ops->workspace, mark);
}

struct sai_odd sai_find_odd(const double *gsnr, const double *count, int64_t n)
{
    struct sai_odd odd = {0};
    for (int64_t i = 0; i < n; i++) {
        odd.still += count[i] > 0 && gsnr[i] <= 0;
        odd.single += count[i] > 0 && count[i] < 2;
    }
    return odd;
}

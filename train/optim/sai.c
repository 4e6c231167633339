/* SPDX-License-Identifier: Apache-2.0 */
#include "train/optim/sai.h"

#include <stdlib.h>

#include "base/core/fault.h"
#include "base/core/log.h"
#include "base/core/mem.h"
#include "train/ops/blocks.h"
#include "train/ops/values.h"
#include "train/optim/optim.h"
#include "train/optim/rounding.h"

static struct sai *sai_of(const struct optim *o)
{
    return o->own;
}

/* ---- blocks ------------------------------------------------------------------------------ */

static int of_layer(const struct params *p)
{
    return PARAM_KINDS + 2 * (int)p->spec.experts;
}

/* Blocks that the model could have; some numbers stand for none. */
static int count_blocks(const struct params *p)
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

/* The number of a block in the gsnr, which keeps the column of this rank (sai_first). */
static int64_t place_of(const struct optim *o, const struct param *q)
{
    return (int64_t)block_of(o->params, q) * sai_of(o)->columns + sai_of(o)->column;
}

struct tensor sai_gsnr(const struct optim *o, const struct param *q)
{
    return tensor_rows(sai_of(o)->gsnr, place_of(o, q), 1);
}

/* ---- statistics -------------------------------------------------------------------------- */

enum { COUNT, SUM, DEVIATIONS };

static struct tensor stat(const struct optim *o, int which)
{
    int64_t n = sai_of(o)->gsnr.size[0];
    return tensor_rows(sai_of(o)->stats, which * n, n);
}

/* The part of the elements [begin, end) of the slab that is kept here. */
static void add_range(struct optim *o, struct ops *ops, const struct param *q, int64_t begin,
                      int64_t end)
{
    struct moments_args a = {.count = tensor_rows(stat(o, COUNT), place_of(o, q), 1),
                             .sum = tensor_rows(stat(o, SUM), place_of(o, q), 1)};
    if (sai_of(o)->second)
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
        if (o->tuning.sai.shard && q->sources && !(q->kind == PARAM_EMBED && sai_of(o)->last_stage))
            add_range(o, ops, q, q->offset, q->offset + q->count);
        for (int k = 0; k < q->sources && !o->tuning.sai.shard; k++) {
            const struct param_source *s = &q->source[k];
            int64_t first = q->offset + s->row * q->size[1];
            if (s->counts && !(k && FAULT("sai_block")))
                add_range(o, ops, q, first, first + s->count[0] * q->size[1]);
        }
    }
}

static void sai_first(struct optim *o, struct ops *ops, struct comm *comm)
{
    int64_t n = sai_of(o)->gsnr.size[0];
    op_fill(ops, &(struct fill_args){.y = sai_of(o)->stats});
    sai_of(o)->second = false;
    optim_sum(o, ops, comm, tensor_rows(sai_of(o)->stats, 0, 2 * n), add_blocks);
    sai_of(o)->second = true;
    optim_sum(o, ops, comm, stat(o, DEVIATIONS), add_blocks);
    op_gsnr(ops, &(struct gsnr_args){.y = sai_of(o)->gsnr,
                                     .count = stat(o, COUNT),
                                     .sum = stat(o, SUM),
                                     .deviations = stat(o, DEVIATIONS),
                                     .factor = o->factor,
                                     .skip = o->skip,
                                     .eps = 1e-8,
                                     .max = o->tuning.sai.max});
}

/* ---- update ------------------------------------------------------------------------------ */

static void sai_update(const struct optim *o, struct ops *ops, const struct optim_piece *x)
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

/* ---- what is kept ------------------------------------------------------------------------ */

/* As it is in a checkpoint: under the name of the block's first tensor, once. */
static struct param_source sai_source(const struct optim *o, const struct param *q, bool replica)
{
    const struct param_source *s = &q->source[0];
    struct param_source ret = *s;
    ret.rank = 1;
    ret.size[0] = sai_of(o)->columns;
    if (o->tuning.sai.shard && q->sources && (q->kind == PARAM_EMBED || q->kind == PARAM_HEAD))
        ret.size[0] = (s->size[0] + q->size[0] - 1) / q->size[0]; /* the others hold padding */
    ret.begin[0] = sai_of(o)->column;
    ret.size[1] = ret.count[0] = ret.count[1] = 1;
    ret.begin[1] = 0;
    ret.saves = s->saves && s->begin[0] == 0 && s->begin[1] == 0;
    if (o->tuning.sai.shard)
        ret.saves = !replica && !(q->kind == PARAM_EMBED && sai_of(o)->last_stage);
    return ret;
}

static void sai_open(struct optim *o, struct mesh m, int rank)
{
    struct coord at = mesh_coord(m, rank);
    struct sai *s = mem_new(1, sizeof(*s));
    o->own = s;
    s->columns = o->tuning.sai.shard ? m.tp : 1;
    s->column = o->tuning.sai.shard ? at.tp : 0;
    s->last_stage = at.pp > 0;
    s->source = mem_new((size_t)o->params->n + 1, sizeof(*s->source));
    for (int i = 0; i < o->params->n; i++)
        s->source[i] = sai_source(o, &o->params->at[i], at.dp > 0 || at.cp > 0);
}

static void sai_close(struct optim *o)
{
    free(sai_of(o)->source);
    free(o->own);
}

static void sai_take(struct optim *o, struct slab *optimizer, struct slab *activations)
{
    struct sai *s = sai_of(o);
    int64_t n = (int64_t)count_blocks(o->params) * s->columns;
    s->gsnr = slab_1d(optimizer, DTYPE_F64, n);
    s->stats = slab_1d(activations, DTYPE_F64, 3 * n);
}

static bool sai_number(const struct optim *o, int param, struct optim_number *ret)
{
    const struct param *q = &o->params->at[param];
    *ret = (struct optim_number){"gsnr", &sai_of(o)->source[param], sai_gsnr(o, q)};
    return q->sources > 0; /* else padding alone */
}

/* ---- checks ------------------------------------------------------------------------------ */

/* Statistics of shards are upstream's, which knows tensor parallelism alone. */
static int sai_check(const struct optim_tuning *t, const struct layout *l, struct err *e)
{
    if (!t->sai.shard || (!l->zero && l->mesh.ep == 1 && l->mesh.etp == l->mesh.tp))
        return 0;
    return err_set(e, ERR_USAGE,
                   "--sai-statistics shard measures whole tensor-parallel shards: expected "
                   "--zero-stage 0, and experts that are not spread over processes");
}

/* Blocks that have gsnr 0, as their gradient was, and those of a single element, whose gsnr is
 * |g| / eps. */
static void sai_report(const struct optim *o, optim_fetch *fetch, void *rank)
{
    int64_t n = sai_of(o)->gsnr.size[0];
    double *gsnr = mem_new((size_t)(2 * n) + 1, sizeof(*gsnr)), *count = gsnr + n;
    int still = 0, single = 0;
    fetch(rank, gsnr, sai_of(o)->gsnr);
    fetch(rank, count, stat(o, COUNT));
    for (int64_t i = 0; i < n; i++) {
        still += count[i] > 0 && gsnr[i] <= 0;
        single += count[i] > 0 && count[i] < 2;
    }
    free(gsnr);
    if (still)
        log_warn("%d blocks of weights had a gradient of zero in the first step: --optimizer "
                 "sgd-sai will not move them",
                 still);
    if (single)
        log_warn("%d blocks of weights have a single element: --optimizer sgd-sai scales their "
                 "steps by 1e8 times the gradient",
                 single);
}

#define SAI_HOOKS                                                                                  \
    .by_parameters = true, .update = sai_update, .first = sai_first, .open = sai_open,             \
    .take = sai_take, .close = sai_close, .number = sai_number, .check = sai_check,                \
    .report = sai_report

const struct optim_rule sai_rules[] = {{.states = 1, .state = {"momentum_buffer"}, SAI_HOOKS},
                                       {SAI_HOOKS}};

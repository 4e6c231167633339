/* SPDX-License-Identifier: Apache-2.0 */
#include "train/optim/muon.h"

#include <math.h>

#include "base/core/fault.h"
#include "train/ops/blocks.h"
#include "train/optim/optim.h"
#include "train/optim/rounding.h"

static bool muon_takes(const struct param *q)
{
    return q->rank == 2 && q->kind != PARAM_EMBED && q->kind != PARAM_POSITION &&
           q->kind != PARAM_HEAD;
}

double muon_scale_of(const struct muon_settings *t, int64_t rows, int64_t columns)
{
    double ratio = (double)rows / (double)columns;
    double most = (double)(rows > columns ? rows : columns);
    if (t->scale == MUON_SPECTRAL)
        return t->extra * sqrt(most);
    if (t->scale == MUON_SHAPE_SCALING && ratio < 1 && !FAULT("muon_scale"))
        ratio = 1;
    return t->extra * sqrt(ratio);
}

/* ---- Newton-Schulz ----------------------------------------------------------------------- */

static struct tensor flat(struct tensor t)
{
    return tensor_1d(t.data, t.dtype, tensor_count(t));
}

/*
 * A = X X^T, X = a X + (b A + c A A) X; of a tall matrix, which has less columns than rows, A =
 * X^T X, and its polynomial on the other side.
 */
void muon_orthogonal(struct ops *ops, struct tensor x, int64_t steps)
{
    const double a = 3.4445, b = FAULT("newton_schulz") ? -4.5 : -4.7750, c = 2.0315;
    int64_t m = x.size[0], n = x.size[1], k = m < n ? m : n;
    bool tall = m > n;
    size_t mark = slab_mark(ops->workspace);
    struct tensor gram = slab_2d(ops->workspace, x.dtype, k, k);
    struct tensor square = slab_2d(ops->workspace, x.dtype, k, k);
    struct tensor y = slab_2d(ops->workspace, x.dtype, m, n);
    op_unit(ops, &(struct unit_args){flat(x)});
    for (int64_t i = 0; i < steps; i++) {
        op_matmul(ops, &(struct matmul_args){.y = gram, .a = x, .b = x, .ta = tall, .tb = !tall});
        op_matmul(ops, &(struct matmul_args){.y = square, .a = gram, .b = gram});
        op_combine(ops, &(struct combine_args){flat(square), flat(gram), c, b});
        op_matmul(ops,
                  &(struct matmul_args){.y = y, .a = tall ? x : square, .b = tall ? square : x});
        op_combine(ops, &(struct combine_args){flat(x), flat(y), a, 1});
    }
    slab_reset(ops->workspace, mark);
}

/* ---- a matrix ---------------------------------------------------------------------------- */

struct matrix {
    const struct optim *o;
    struct ops *ops;
    const struct param_source *source;
    struct tensor whole;
    int64_t first; /* element of the slab that holds the box's first one */
};

/* Copies between a rank's elements of the box, in `part`, and their places in the whole. */
static void copy_boxes(const struct matrix *m, struct tensor part, struct zero_piece p, bool out)
{
    const struct param_source *s = m->source;
    struct box box = {{s->begin[0], s->begin[1]}, {s->count[0], s->count[1]}}, piece[3];
    size_t n = box_of_range(box, p.begin - m->first, p.end - m->first, piece);
    int64_t at = 0;
    for (size_t i = 0; i < n; at += box_count(piece[i++])) {
        struct box b = piece[i];
        struct tensor rows = tensor_rows(m->whole, b.begin[0], b.count[0]);
        struct tensor there = tensor_cols(rows, b.begin[1], b.count[1]);
        struct tensor here = tensor_rows(part, at, box_count(b));
        here = tensor_2d(here.data, here.dtype, b.count[0], b.count[1]);
        op_copy(m->ops, &(struct copy_args){.y = out ? there : here, .x = out ? here : there});
    }
}

/* What this rank keeps of the matrix: its momentum into the whole, or the step out of it. */
static void muon_piece(const struct matrix *m, struct zero_piece p, const struct param *q, bool out)
{
    const struct optim *o = m->o;
    size_t mark = slab_mark(m->ops->workspace);
    struct tensor part = slab_1d(m->ops->workspace, m->whole.dtype, p.end - p.begin);
    if (!out) {
        op_momentum(m->ops, &(struct momentum_args){.y = part,
                                                    .m = optim_part(o, o->state[0], p),
                                                    .g = optim_part(o, o->grads, p),
                                                    .factor = o->factor,
                                                    .skip = o->skip,
                                                    .momentum = o->tuning.muon.momentum,
                                                    .nesterov = o->tuning.muon.nesterov,
                                                    .round = rounding_from(o, p.begin)});
        if (m->source->counts)
            copy_boxes(m, part, p, true);
    } else {
        copy_boxes(m, part, p, false);
        op_decayed(m->ops,
                   &(struct decayed_args){
                       .p = optim_part(o, o->master, p),
                       .x = part,
                       .skip = o->skip,
                       .values = o->values,
                       .decays = q->decay,
                       .scale = muon_scale_of(&o->tuning.muon, m->whole.size[0], m->whole.size[1]),
                       .round = rounding_from(o, p.begin)});
        optim_copy(o, m->ops, p);
    }
    slab_reset(m->ops->workspace, mark);
}

static void muon_pieces(const struct matrix *m, const struct param *q, bool out)
{
    int64_t n = m->source->count[0] * m->source->count[1];
    for (size_t i = 0; i < zero_pieces(m->o->zero); i++) {
        struct zero_piece p = zero_piece(m->o->zero, i);
        if (zero_cut(&p, m->first, m->first + n))
            muon_piece(m, p, q, out);
    }
}

static void muon_sum(const struct optim *o, struct comm *comm, const struct param *q,
                     struct tensor whole)
{
    bool experts = q->offset >= o->params->experts;
    if (experts ? o->zero->stage > 0 : o->zero->shares > 1)
        comm_wait(comm,
                  comm_all_reduce(comm, experts ? GROUP_EDP : GROUP_SHARD, whole, REDUCE_SUM));
    if (!FAULT("muon_whole"))
        comm_wait(comm, comm_all_reduce(comm, experts ? GROUP_ETP : GROUP_TP, whole, REDUCE_SUM));
}

static void muon_whole(struct optim *o, struct ops *ops, struct comm *comm, const struct param *q)
{
    for (int k = 0; k < q->sources; k++) {
        const struct param_source *s = &q->source[k];
        size_t mark = slab_mark(ops->workspace);
        struct matrix m = {.o = o,
                           .ops = ops,
                           .source = s,
                           .whole =
                               slab_2d(ops->workspace, o->master.dtype, s->size[0], s->size[1]),
                           .first = q->offset + s->row * q->size[1]};
        op_fill(ops, &(struct fill_args){.y = m.whole});
        muon_pieces(&m, q, false);
        muon_sum(o, comm, q, m.whole);
        muon_orthogonal(ops, m.whole, o->tuning.muon.steps);
        muon_pieces(&m, q, true);
        slab_reset(ops->workspace, mark);
    }
}

const struct optim_rule muon_rules[] = {{.states = 2,
                                         .state = {"exp_avg", "exp_avg_sq"},
                                         .update = optim_adam,
                                         .takes = muon_takes,
                                         .whole = muon_whole,
                                         .taken = {"momentum_buffer"}}};

/* SPDX-License-Identifier: Apache-2.0 */
#include "train/optim/optim.h"

#include "base/core/fault.h"

/* ---- rules ------------------------------------------------------------------------------- */

static void update_adam(const struct optim *o, struct ops *ops, const struct optim_piece *x)
{
    op_adamw(ops, &(struct adamw_args){.p = x->p,
                                       .copy = x->copy,
                                       .g = x->g,
                                       .m = x->state[0],
                                       .v = x->state[1],
                                       .factor = o->factor,
                                       .skip = o->skip,
                                       .lr = x->lr,
                                       .beta1 = o->beta1,
                                       .beta2 = o->beta2,
                                       .eps = o->eps,
                                       .decay = x->decay,
                                       .step = x->step});
}

static void update_sgd(const struct optim *o, struct ops *ops, const struct optim_piece *x)
{
    op_sgd(ops, &(struct sgd_args){.p = x->p,
                                   .copy = x->copy,
                                   .g = x->g,
                                   .m = x->state[0],
                                   .factor = o->factor,
                                   .skip = o->skip,
                                   .lr = x->lr,
                                   .momentum = o->momentum,
                                   .decay = x->decay});
}

const struct optim_rule *optim_rule(enum optim_kind kind)
{
    static const struct optim_rule rules[] = {
        [OPTIM_ADAM] = {2, {"exp_avg", "exp_avg_sq"}, update_adam},
        [OPTIM_SGD] = {1, {"momentum_buffer"}, update_sgd},
        [OPTIM_SGD_PLAIN] = {0, {0}, update_sgd},
    };
    return &rules[kind];
}

/* ---- a step ------------------------------------------------------------------------------ */

void optim_take(struct optim *o, struct slab *optimizer, struct slab *activations,
                enum dtype master)
{
    bool apart = o->weights.dtype != master;
    o->master = apart ? slab_1d(optimizer, master, o->zero->kept) : o->weights;
    for (int i = 0; i < o->rule->states; i++)
        o->state[i] = slab_1d(optimizer, master, o->zero->kept);
    o->total = slab_1d(activations, DTYPE_F64, 1);
    o->norm = slab_1d(activations, DTYPE_F64, 1);
    o->factor = slab_1d(activations, DTYPE_F64, 1);
    o->skip = slab_1d(activations, DTYPE_I32, 1);
}

/* A piece of what is kept, in one of the tensors. */
static struct tensor part(const struct optim *o, struct tensor t, struct zero_piece p)
{
    return tensor_rows(t, zero_place(o->zero, t.size[0], p), p.end - p.begin);
}

/*
 * The norm is that of all gradients of the model, each counted once: a rank adds up what the
 * parameter table says that it counts, and the sum goes over the tensor-parallel ranks and the
 * stages. Data-parallel ranks hold the same gradients by now (step_issue_update), or under ZeRO
 * each the sums of its own part, which are added up over them, too. It is added up in double: float
 * would lose the small gradients of a large model.
 *
 * The clip factor is not applied to the gradients but given to the rule, which multiplies as it
 * reads: one pass over memory fewer.
 *
 * One infinite or NaN gradient makes the norm not finite. op_clip then sets `skip`, and the
 * rule leaves weights and state alone: a moment that has become NaN would never recover. The flag
 * stays on the device, so nothing here waits for it. The caller reads it after the step and does
 * not count the step (`step` stays what it was for the next one).
 */
static void add_runs(struct optim *o, struct ops *ops, bool experts)
{
    for (size_t i = 0; i < zero_pieces(o->zero); i++)
        for (int k = 0; k < o->params->ncounted; k++) {
            struct param_run run = o->params->counted[k];
            struct zero_piece p = zero_piece(o->zero, i);
            if ((run.begin >= o->params->experts) == experts && zero_cut(&p, run.begin, run.end))
                op_sumsq(ops, &(struct sumsq_args){.total = o->total, .x = part(o, o->grads, p)});
        }
}

static void clear_total(struct optim *o, struct ops *ops)
{
    op_fill(ops, &(struct fill_args){.y = o->total, .value = 0});
}

/* Experts that are spread over ranks: all ranks of a stage that hold different ones add up theirs,
 * and one of those that add up the rest below takes the sum along. */
static void add_experts_norm(struct optim *o, struct ops *ops, struct comm *comm)
{
    bool shared = o->zero->shares > 1;
    if (o->params->experts == o->params->elements)
        return;
    add_runs(o, ops, true);
    if (o->zero->stage)
        comm_wait(comm, comm_all_reduce(comm, GROUP_EDP, o->total, REDUCE_SUM));
    comm_wait(comm, comm_all_reduce(comm, GROUP_ETP, o->total, REDUCE_SUM));
    if (!FAULT("expert_norm"))
        comm_wait(comm, comm_all_reduce(comm, GROUP_EP, o->total, REDUCE_SUM));
    if (comm_index(comm, GROUP_TP) > 0 || (shared && comm_index(comm, GROUP_SHARD) > 0))
        clear_total(o, ops);
}

static void add_norm(struct optim *o, struct ops *ops, struct comm *comm)
{
    clear_total(o, ops);
    add_experts_norm(o, ops, comm);
    add_runs(o, ops, false);
    if (o->zero->shares > 1 && !FAULT("zero_norm"))
        comm_wait(comm, comm_all_reduce(comm, GROUP_SHARD, o->total, REDUCE_SUM));
    comm_wait(comm, comm_all_reduce(comm, GROUP_TP, o->total, REDUCE_SUM));
    comm_wait(comm, comm_all_reduce(comm, GROUP_PP, o->total, REDUCE_SUM));
}

static void update(struct optim *o, struct ops *ops, const struct param *q, struct zero_piece p,
                   const struct optim_at *at)
{
    bool apart = o->weights.data != o->master.data;
    if (!q->trained || !zero_cut(&p, q->offset, q->offset + q->count))
        return;
    /* the table's decay mask: matrices decay; biases and norms do not */
    bool decay = FAULT("decay_mask") ? !q->decay : q->decay;
    struct optim_piece x = {.p = part(o, o->master, p),
                            .copy = apart ? part(o, o->weights, p) : (struct tensor){0},
                            .g = part(o, o->grads, p),
                            .lr = at->lr,
                            .decay = decay ? at->decay : 0,
                            .step = at->step};
    for (int k = 0; k < o->rule->states; k++)
        x.state[k] = part(o, o->state[k], p);
    o->rule->update(o, ops, &x);
}

void optim_step(struct optim *o, struct ops *ops, struct comm *comm, const struct optim_at *at)
{
    add_norm(o, ops, comm);
    op_clip(ops, &(struct clip_args){.total = o->total,
                                     .norm = o->norm,
                                     .factor = o->factor,
                                     .skip = o->skip,
                                     .count = FAULT("label_count") ? (struct tensor){0} : o->labels,
                                     .max_norm = o->clip});
    for (size_t i = 0; i < zero_pieces(o->zero); i++)
        for (int k = 0; k < o->params->n; k++)
            update(o, ops, &o->params->at[k], zero_piece(o->zero, i), at);
}

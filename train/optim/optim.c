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

void optim_share(struct optim *o, struct layout layout, int rank)
{
    int ranks = layout.zero ? mesh_group_size(layout.mesh, GROUP_DP_CP) : 1;
    int at = layout.zero ? mesh_group_index(layout.mesh, rank, GROUP_DP_CP) : 0;
    o->count = o->params->elements / ranks;
    o->begin = o->count * at;
}

void optim_take(struct optim *o, struct slab *optimizer, struct slab *activations,
                enum dtype master)
{
    bool apart = o->weights.dtype != master;
    o->master = apart ? slab_1d(optimizer, master, o->params->elements) : o->weights;
    for (int i = 0; i < o->rule->states; i++)
        o->state[i] = slab_1d(optimizer, master, o->count);
    o->total = slab_1d(activations, DTYPE_F64, 1);
    o->norm = slab_1d(activations, DTYPE_F64, 1);
    o->factor = slab_1d(activations, DTYPE_F64, 1);
    o->skip = slab_1d(activations, DTYPE_I32, 1);
}

/* The elements [begin, end) as far as this rank updates them; false: not at all. */
static bool updated(const struct optim *o, struct param_run *run)
{
    int64_t end = o->begin + o->count;
    run->begin = run->begin > o->begin ? run->begin : o->begin;
    run->end = run->end < end ? run->end : end;
    return run->begin < run->end;
}

static struct tensor part(struct tensor flat, int64_t first, struct param_run run)
{
    return tensor_rows(flat, run.begin - first, run.end - run.begin);
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
void optim_step(struct optim *o, struct ops *ops, struct comm *comm, double lr, int64_t step)
{
    op_fill(ops, &(struct fill_args){.y = o->total, .value = 0});
    for (int i = 0; i < o->params->ncounted; i++) {
        struct param_run run = o->params->counted[i];
        if (updated(o, &run))
            op_sumsq(ops, &(struct sumsq_args){.total = o->total, .x = part(o->grads, 0, run)});
    }
    if (o->count < o->params->elements && !FAULT("zero_norm"))
        comm_wait(comm, comm_all_reduce(comm, GROUP_DP_CP, o->total, REDUCE_SUM));
    comm_wait(comm, comm_all_reduce(comm, GROUP_TP, o->total, REDUCE_SUM));
    comm_wait(comm, comm_all_reduce(comm, GROUP_PP, o->total, REDUCE_SUM));
    op_clip(ops, &(struct clip_args){.total = o->total,
                                     .norm = o->norm,
                                     .factor = o->factor,
                                     .skip = o->skip,
                                     .max_norm = o->clip});
    bool apart = o->weights.data != o->master.data;
    for (int i = 0; i < o->params->n; i++) {
        const struct param *p = &o->params->at[i];
        struct param_run run = {p->offset, p->offset + p->count};
        if (!p->trained || !updated(o, &run))
            continue;
        /* the table's decay mask: matrices decay; biases and norms do not */
        bool decay = FAULT("decay_mask") ? !p->decay : p->decay;
        struct optim_piece x = {.p = part(o->master, 0, run),
                                .copy = apart ? part(o->weights, 0, run) : (struct tensor){0},
                                .g = part(o->grads, 0, run),
                                .lr = lr,
                                .decay = decay ? o->decay : 0,
                                .step = step};
        for (int k = 0; k < o->rule->states; k++)
            x.state[k] = part(o->state[k], o->begin, run);
        o->rule->update(o, ops, &x);
    }
    if (o->count < o->params->elements)
        comm_wait(comm, comm_all_gather(comm, GROUP_DP_CP, o->weights,
                                        tensor_rows(o->weights, o->begin, o->count)));
}

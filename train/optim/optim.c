/* SPDX-License-Identifier: Apache-2.0 */
#include "train/optim/optim.h"

#include <stdlib.h>

#include "base/core/fault.h"
#include "base/core/mem.h"
#include "train/ops/values.h"
#include "train/optim/rounding.h"

/* ---- rules ------------------------------------------------------------------------------- */

void optim_adam(const struct optim *o, struct ops *ops, const struct optim_piece *x)
{
    op_adamw(ops, &(struct adamw_args){.p = x->p,
                                       .copy = x->copy,
                                       .g = x->g,
                                       .m = x->state[0],
                                       .v = x->state[1],
                                       .factor = o->factor,
                                       .skip = FAULT("value_flag") ? (struct tensor){0} : o->skip,
                                       .values = o->values,
                                       .segments = o->segments,
                                       .first = FAULT("segment_first") ? 0 : x->first,
                                       .beta1 = o->beta1,
                                       .beta2 = o->beta2,
                                       .eps = o->eps,
                                       .round = rounding_from(o, x->first)});
}

static void update_sgd(const struct optim *o, struct ops *ops, const struct optim_piece *x)
{
    op_sgd(ops, &(struct sgd_args){.p = x->p,
                                   .copy = x->copy,
                                   .g = x->g,
                                   .m = x->state[0],
                                   .factor = o->factor,
                                   .skip = o->skip,
                                   .values = o->values,
                                   .segments = o->segments,
                                   .first = x->first,
                                   .momentum = o->momentum,
                                   .round = rounding_from(o, x->first)});
}

const struct optim_rule adam_rules[] = {
    {.states = 2, .state = {"exp_avg", "exp_avg_sq"}, .moments = true, .update = optim_adam}};

const struct optim_rule sgd_rules[] = {
    {.states = 1, .state = {"momentum_buffer"}, .update = update_sgd}, {.update = update_sgd}};

const struct optim_rule *optim_rule(enum optim_kind kind)
{
#define RULE(value, name, kind, rules) [OPTIM_##kind] = &(rules)[0],
#define RULE_AND_PLAIN(value, name, kind, rules)                                                   \
    [OPTIM_##kind] = &(rules)[0], [OPTIM_##kind##_PLAIN] = &(rules)[1],
    static const struct optim_rule *const rule[OPTIM_KINDS] = {OPTIMIZERS(RULE, RULE_AND_PLAIN)};
    return rule[kind];
}

const char *optim_state_name(const struct optim_rule *rule, const struct param *q, int i)
{
    return rule->takes && rule->takes(q) ? rule->taken[i] : rule->state[i];
}

/* ---- segments ---------------------------------------------------------------------------- */

static int update_kind(const struct optim *o, const struct param *q)
{
    if (!q->trained || (o->rule->takes && o->rule->takes(q)))
        return SEGMENT_STILL;
    /* the table's decay mask: matrices decay; biases and norms do not */
    bool decays = FAULT("decay_mask") ? !q->decay : q->decay;
    return decays ? SEGMENT_DECAYS : SEGMENT_PLAIN;
}

static void add_segment(struct optim *o, int64_t begin, int kind)
{
    if (!o->nsegments || o->segment[o->nsegments - 1].kind != kind)
        o->segment[o->nsegments++] = (struct update_segment){.begin = begin, .kind = kind};
}

/* Parameters in the order of the slab, and what lies between them. */
static void make_segments(struct optim *o)
{
    int64_t end = 0;
    o->segment = mem_new(2 * (size_t)o->params->n + 1, sizeof(*o->segment));
    for (int i = 0; i < o->params->n; i++) {
        const struct param *q = &o->params->at[i];
        BUG_ON(q->offset < end, "parameter %d begins before the end of the last one", i);
        if (q->offset > end)
            add_segment(o, end, SEGMENT_STILL);
        add_segment(o, q->offset, update_kind(o, q));
        end = q->offset + q->count;
    }
    add_segment(o, end, SEGMENT_STILL);
}

void optim_put(const struct optim *o, struct dev *d)
{
    d->fn->copy(d, STREAM_COMPUTE, o->segments.data, o->segment, tensor_bytes(o->segments));
    if (o->rounds)
        d->fn->copy(d, STREAM_COMPUTE, o->runs.data, o->run, tensor_bytes(o->runs));
    d->fn->sync(d, STREAM_COMPUTE);
}

void optim_open(struct optim *o, struct mesh m, int rank)
{
    make_segments(o);
    if (o->rounds)
        o->nruns = rounding_runs(o->params, &o->run);
    if (o->rule->open)
        o->rule->open(o, m, rank);
}

void optim_finish(struct optim *o)
{
    if (o->own)
        o->rule->close(o);
    free(o->segment);
    free(o->run);
    o->own = NULL;
    o->segment = NULL;
    o->run = NULL;
}

/* ---- a step ------------------------------------------------------------------------------ */

void optim_take(struct optim *o, struct slab *optimizer, struct slab *activations,
                const struct ops *types)
{
    bool apart = o->weights.dtype != types->master;
    o->master = apart ? slab_1d(optimizer, types->master, o->zero->kept) : o->weights;
    for (int i = 0; i < o->rule->states; i++)
        o->state[i] =
            slab_1d(optimizer, o->rule->moments ? types->moment[i] : types->master, o->zero->kept);
    if (o->rule->take)
        o->rule->take(o, optimizer, activations);
    o->segments = slab_2d(activations, DTYPE_I32, o->nsegments, SEGMENT_INTS);
    if (o->rounds)
        o->runs = slab_2d(activations, DTYPE_I32, o->nruns, RUN_INTS);
    o->total = slab_1d(activations, DTYPE_F64, 1);
    o->norm = slab_1d(activations, DTYPE_F64, 1);
    o->factor = slab_1d(activations, DTYPE_F64, 1);
    o->skip = slab_1d(activations, DTYPE_I32, 1);
}

/* A piece of what is kept, in one of the tensors. */
struct tensor optim_part(const struct optim *o, struct tensor t, struct zero_piece p)
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
                op_sumsq(ops,
                         &(struct sumsq_args){.total = o->total, .x = optim_part(o, o->grads, p)});
        }
}

static void optim_clear(struct ops *ops, struct tensor t)
{
    op_fill(ops, &(struct fill_args){.y = t, .value = 0});
}

/* Experts that are spread over ranks: all ranks of a stage that hold different ones add up theirs,
 * and one of those that add up the rest below takes the sum along. */
static void sum_experts(struct optim *o, struct ops *ops, struct comm *comm, struct tensor t,
                        optim_add *add)
{
    bool shared = o->zero->shares > 1;
    if (o->params->experts == o->params->elements)
        return;
    add(o, ops, true);
    if (o->zero->stage)
        comm_wait(comm, comm_all_reduce(comm, GROUP_EDP, t, REDUCE_SUM));
    comm_wait(comm, comm_all_reduce(comm, GROUP_ETP, t, REDUCE_SUM));
    if (!FAULT("expert_norm"))
        comm_wait(comm, comm_all_reduce(comm, GROUP_EP, t, REDUCE_SUM));
    if (comm_index(comm, GROUP_TP) > 0 || (shared && comm_index(comm, GROUP_SHARD) > 0))
        optim_clear(ops, t);
}

void optim_sum(struct optim *o, struct ops *ops, struct comm *comm, struct tensor t, optim_add *add)
{
    optim_clear(ops, t);
    sum_experts(o, ops, comm, t, add);
    add(o, ops, false);
    if (o->zero->shares > 1 && !FAULT("zero_norm"))
        comm_wait(comm, comm_all_reduce(comm, GROUP_SHARD, t, REDUCE_SUM));
    comm_wait(comm, comm_all_reduce(comm, GROUP_TP, t, REDUCE_SUM));
    comm_wait(comm, comm_all_reduce(comm, GROUP_PP, t, REDUCE_SUM));
}

/* The kept elements of the piece that lie in [begin, end) of the slab. */
static void update(struct optim *o, struct ops *ops, const struct param *of, struct zero_piece p,
                   int64_t begin, int64_t end)
{
    bool apart = o->weights.data != o->master.data;
    if (!zero_cut(&p, begin, end))
        return;
    struct optim_piece x = {.of = of,
                            .decays = of && update_kind(o, of) == SEGMENT_DECAYS,
                            .first = p.begin,
                            .p = optim_part(o, o->master, p),
                            .copy = apart ? optim_part(o, o->weights, p) : (struct tensor){0},
                            .g = optim_part(o, o->grads, p)};
    for (int k = 0; k < o->rule->states; k++)
        x.state[k] = optim_part(o, o->state[k], p);
    o->rule->update(o, ops, &x);
}

static void update_piece(struct optim *o, struct ops *ops, struct zero_piece p)
{
    if (!o->rule->by_parameters) {
        update(o, ops, NULL, p, 0, o->params->elements);
        return;
    }
    for (int k = 0; k < o->params->n; k++) {
        const struct param *q = &o->params->at[k];
        if (update_kind(o, q) != SEGMENT_STILL)
            update(o, ops, q, p, q->offset, q->offset + q->count);
    }
}

void optim_copy(const struct optim *o, struct ops *ops, struct zero_piece p)
{
    if (o->weights.data != o->master.data)
        op_copy(ops, &(struct copy_args){.y = optim_part(o, o->weights, p),
                                         .x = optim_part(o, o->master, p)});
}

void optim_step(struct optim *o, struct ops *ops, struct comm *comm, bool first)
{
    optim_sum(o, ops, comm, o->total, add_runs);
    op_clip(ops,
            &(struct clip_args){.total = o->total,
                                .norm = o->norm,
                                .factor = FAULT("value_factor") ? o->total : o->factor,
                                .skip = o->skip,
                                .count = FAULT("label_count") ? (struct tensor){0} : o->divisor,
                                .scale = FAULT("unscale") ? (struct tensor){0}
                                                          : step_value(o->values, STEP_SCALE),
                                .max_norm = o->clip});
    if (o->rule->first && first)
        o->rule->first(o, ops, comm);
    for (int k = 0; k < o->params->n && o->rule->takes; k++)
        if (o->params->at[k].trained && o->rule->takes(&o->params->at[k]))
            o->rule->whole(o, ops, comm, &o->params->at[k]);
    for (size_t i = 0; i < zero_pieces(o->zero); i++)
        update_piece(o, ops, zero_piece(o->zero, i));
}

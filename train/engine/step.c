/* SPDX-License-Identifier: Apache-2.0 */
#include "train/engine/step.h"

#include "base/cli/progress.h"
#include "base/core/fault.h"
#include "train/engine/all_ranks.h"
#include "train/engine/pipeline.h"
#include "train/engine/stage.h"
#include "train/engine/step_scalars.h"
#include "train/zero/gather.h"
#include "train/zero/reduce.h"

/*
 * The objective of a step is the mean, over all micro-batches of all data-parallel ranks, of each
 * one's mean loss per counted label. A micro-batch with n labels in its loss mask contributes
 *
 *     sum of its losses * 1 / (n * micro-batches of a rank * data-parallel ranks)
 *
 * and that factor is the `scale` of its loss: the logits' gradients carry it, so all gradients
 * below add up, over micro-batches and ranks, to those of the objective and nothing divides them
 * afterwards. n = 0 (everything masked) gives scale 0: no gradient, rather than the 0 / 0 of
 * Megatron-LM core_v0.12.3, and the micro-batch stays in the divisor. n is counted on the host,
 * from the mask in the batch, so no step waits for the device to learn it (rank_loss_divisor).
 *
 * The last step of an epoch may lack rows (batch.h): they are masked, and a micro-batch that has
 * none but such rows is not in the divisor. So the objective is that of the rows that are there.
 *
 * A mixture of experts adds the balancing and z losses of its layers to each micro-batch's mean
 * (model/experts.c), whatever its labels.
 *
 * With per_token (--calculate-per-token-loss) the objective is the mean over all counted labels of
 * the step instead. Their number is known when the last micro-batch is, so gradients are those of
 * the sum (scale 1), and norm and clip factor are divided by the number, which reduce_totals has
 * added up, as is the printed loss (struct optim, `divisor`). Without any counted label nothing is
 * divided. Experts' losses then weigh as many labels as a micro-batch has tokens.
 *
 * With a loss scale (--fp16, --loss-scale; optim/scale.h) a step is done in this order:
 *
 *   1. the weight of each loss above is multiplied by the scale, so all gradients are
 *   2. gradients add up over micro-batches, in fp32
 *   3. they are reduced over the ranks
 *   4. their squares are summed, in double, over all ranks: one gradient of one rank that is not
 *      finite makes the sum so on every rank, and all of them skip the step
 *   5. the norm is divided by the scale, which is a number on the device (struct step_values): this
 *      is the norm that is printed
 *   6. the clip factor follows from it, and is divided by the scale as well
 *   7. the optimizer multiplies gradients by that factor as it reads them, and updates
 *   8. the scale of the next step follows from whether this one was skipped
 *
 * The loss that is logged is another number, as in Megatron-LM: the sum of all losses of the step
 * by the sum of its counted labels.
 */

static double mean_loss(const double totals[TOTALS])
{
    return totals[1] > 0 ? totals[0] / totals[1] : 0;
}

/* The slot of a step that is issued next. */
static int next_slot(const struct rank *r)
{
    return (r->oldest + r->steps_issued) % STEPS_AHEAD;
}

/* The loss is above the caller's limit. With one, the step waits here until all ranks know it. */
static bool is_spike(struct rank *r)
{
    struct step_back *back = r->back[next_slot(r)];
    if (!(r->loss_limit > 0))
        return false;
    rank_fetch(r, back->totals, r->totals);
    return mean_loss(back->totals) > r->loss_limit;
}

/* Weights and moments stay; there is no norm. */
static void pass_over(struct rank *r)
{
    op_fill(&r->ops, &(struct fill_args){.y = r->optim.norm, .value = 0});
    op_fill(&r->ops, &(struct fill_args){.y = r->optim.skip, .value = 1});
}

/* Losses and counts of all data-parallel ranks, from the last stage to all. */
static void reduce_totals(struct rank *r)
{
    reduce_sum(&r->comm, GROUP_DP_CP, r->totals);
    reduce_sum(&r->comm, GROUP_PP, r->totals);
}

/*
 * Data-parallel ranks meet here: once a step, after the last micro-batch, or from its backward pass
 * on (reduce.h), so that one reduction serves all of them; under ZeRO 2 and 3 once a micro-batch.
 * It is a sum: the mean is part of the scale above.
 *
 * The norm is taken after the reduction, so that all ranks clip, or skip, alike.
 */
void step_issue_update(struct rank *r)
{
    rank_timer(r, RANK_TIMER_GRADS_SYNC, true);
    reduce_gradients(&r->zero);
    if (r->config.spec.experts && !FAULT("balance_totals"))
        reduce_sum(&r->comm, GROUP_TP, r->model.route_sums);
    reduce_totals(r);
    rank_timer(r, RANK_TIMER_GRADS_SYNC, false);
    rank_timer(r, RANK_TIMER_OPTIMIZER, true);
    if (is_spike(r))
        pass_over(r);
    else
        optim_step(&r->optim, &r->ops, &r->comm, r->at.steps == 0);
    gather_weights(&r->zero);
    rank_timer(r, RANK_TIMER_OPTIMIZER, false);
}

static void clear(struct rank *r)
{
    op_fill(&r->ops, &(struct fill_args){.y = r->zero.grads, .value = 0});
    op_fill(&r->ops, &(struct fill_args){.y = r->totals, .value = 0});
    r->model.crowded = 0;
}

/* The ranks that share out experts count the same passes, and so do tensor-parallel ones. */
static void put_crowded(struct rank *r, double *from)
{
    if (comm_size(&r->comm, GROUP_EP) == 1)
        return;
    *from = (double)r->model.crowded;
    rank_put(r, tensor_rows(r->totals, 4, 1), from);
}

/* Passes of layers with experts in a step, of all that reduce_totals adds up. */
static double expert_passes(const struct rank *r)
{
    const struct rank_config *c = &r->config;
    int64_t layers = 0;
    for (int64_t l = 0; l < c->spec.layers; l++)
        layers += spec_has_experts(&c->spec, l);
    return (double)(layers * r->effective.micros) * c->layout.mesh.dp * c->layout.mesh.cp;
}

/*
 * A skipped step (the norm was not finite, see optim_step) leaves weights and moments as they were.
 * Its samples are consumed all the same, so that a repeated batch cannot stop a run for ever; but
 * neither the bias correction of AdamW (`steps`) nor the learning rate (`scheduled`) advances.
 */
static int cursor_after(const struct rank *r, struct cursor *at, bool skip, bool spike,
                        struct err *e)
{
    int64_t samples = rank_samples(r, at->consumed);
    at->iteration++;
    at->consumed += samples;
    at->steps += skip && !FAULT("skip_step") ? 0 : 1;
    at->scheduled += skip && !FAULT("skip_schedule") ? 0 : samples;
    return loss_scale_step(&r->config.scale, &at->scale, skip && !spike, e);
}

static void fill_result(const struct rank *r, const struct step_back *back, struct step_result *ret)
{
    double share = 1.0 / (double)(r->effective.micros * r->config.layout.mesh.dp);
    ret->loss = mean_loss(back->totals);
    ret->balance = back->totals[2] * share / (double)r->config.spec.layers;
    ret->z = back->totals[3] * share / (double)r->config.spec.layers;
    ret->crowded = back->totals[4] > 0 ? back->totals[4] / expert_passes(r) : 0;
    ret->grad_norm = back->norm;
    ret->samples = rank_samples(r, r->at.consumed);
    ret->skipped = back->skip != 0;
    ret->spike = r->loss_limit > 0 && ret->loss > r->loss_limit;
}

/* The only place of a step that waits for its end: losses, norm and skip flag have come back. */
int step_complete(struct rank *r, struct step_result *ret, struct err *e)
{
    const struct step_back *back = r->back[r->oldest];
    BUG_ON(!r->steps_issued, "no step is issued");
    *ret = (struct step_result){.waited = r->issued[r->oldest].waited};
    r->dev.fn->await(&r->dev, EVENT_STEP + r->oldest);
    double now = clock_seconds();
    r->step_seconds = now - r->step_begin;
    r->step_begin = now;
    r->host_totals = r->back[r->oldest]->totals;
    r->host_norm = &r->back[r->oldest]->norm;
    r->oldest = (r->oldest + 1) % STEPS_AHEAD;
    r->steps_issued--;
    int code = dev_fault(&r->dev, e);
    if (!code)
        code = comm_fault(&r->comm, e);
    if (code)
        return code;
    struct cursor at = r->at;
    fill_result(r, back, ret);
    code = cursor_after(r, &at, ret->skipped, ret->spike, e);
    ret->lr = rank_rate(r, &at);
    ret->loss_scale = at.scale.scale;
    if (!code)
        r->at = at; /* else the step has failed */
    return code;
}

static void enter_phase(const struct rank *r, enum rank_phase p)
{
    if (r->config.progress)
        r->config.progress(r->config.progress_arg, p, r->at.iteration + r->steps_issued + 1);
}

/* A loader, and how long it let the step wait. */
struct waiting {
    struct rank *rank;
    struct loader *loader;
    bool train;
    double seconds;
    struct err failed; /* why there is no batch; code 0: there were all */
};

/* Of several ranks, one that has no batch goes on with a blank one, for the others wait for what it
 * sends: all_have_batches is where they learn of it. */
static int next_batch(void *arg, const struct batch **ret, struct err *e)
{
    struct waiting *w = arg;
    double asked = clock_seconds();
    enter_phase(w->rank, w->train ? RANK_DATA : RANK_EVAL);
    rank_timer(w->rank, RANK_TIMER_BATCH, true);
    int code = loader_next(w->loader, ret, &w->failed);
    if (code && w->rank->comm.world > 1) {
        *ret = loader_blank(w->loader);
        code = 0;
    }
    rank_timer(w->rank, RANK_TIMER_BATCH, false);
    w->seconds += clock_seconds() - asked;
    if (w->train)
        enter_phase(w->rank, RANK_MICRO);
    if (code)
        *e = w->failed;
    return code;
}

/* 0 on all ranks, or the code of the first that had no batch. On a device of its own the ranks meet
 * while it still computes the micro-batches. */
static int all_have_batches(struct waiting *w, struct err *e)
{
    struct comm *c = &w->rank->comm;
    if (!all_ranks_max(c, w->failed.code))
        return 0;
    if (w->failed.code)
        *e = w->failed;
    return all_ranks_agree(c, w->failed.code, e);
}

/* Ends a step, whose weights stay: with the calls of the ranks that others may be in already. */
static void give_up(struct rank *r)
{
    reduce_gradients(&r->zero);
    gather_weights(&r->zero);
    r->dev.fn->sync(&r->dev, STREAM_COMPUTE);
}

/* The values of the step that is issued: one or the other, where the step before is not known. */
static void put_values(struct rank *r)
{
    struct cursor taken = r->at, skipped = r->at;
    struct err ends; /* a loss scale that ends the run does so when that step is completed */
    if (r->steps_issued) {
        cursor_after(r, &taken, false, false, &ends);
        cursor_after(r, &skipped, true, false, &ends);
    }
    step_scalars_put(r, step_scalars_of(r, &taken), step_scalars_of(r, &skipped));
}

static void fetch_results(struct rank *r, int slot)
{
    struct step_back *back = r->back[slot];
    rank_fetch_later(r, back->totals, r->totals);
    rank_fetch_later(r, &back->norm, r->optim.norm);
    rank_fetch_later(r, &back->skip, r->optim.skip);
    r->dev.fn->record(&r->dev, STREAM_COMPUTE, EVENT_STEP + slot);
}

bool step_may_issue(const struct rank *r)
{
    const struct rank_config *c = &r->config;
    bool first = r->optim.rule->first && r->at.steps == 0;
    bool is_short = r->step_seconds > 0 && r->step_seconds < AHEAD_MS / 1e3;
    return r->steps_issued < STEPS_AHEAD && !first && !r->effective.timer && !c->ramp.increment &&
           r->loss_limit <= 0 && is_short;
}

int step_issue(struct rank *r, struct loader *loader, struct err *e)
{
    struct waiting w = {.rank = r, .loader = loader, .train = true};
    struct pipeline_source in = {.next = next_batch, .arg = &w};
    int slot = next_slot(r);
    BUG_ON(r->steps_issued == STEPS_AHEAD, "%d steps are issued", r->steps_issued);
    if (!r->steps_issued)
        r->step_begin = clock_seconds();
    rank_follow_ramp(r);
    clear(r);
    put_values(r);
    rank_timer(r, RANK_TIMER_FORWARD_BACKWARD, true);
    int code = pipeline_train(r, &in, e);
    rank_timer(r, RANK_TIMER_FORWARD_BACKWARD, false);
    if (code)
        return code;
    code = all_have_batches(&w, e);
    if (code) {
        give_up(r);
        return code;
    }
    enter_phase(r, RANK_UPDATE);
    rank_put_labels(r, &r->back[slot]->labels, in.labels);
    put_crowded(r, &r->back[slot]->crowded);
    step_issue_update(r);
    fetch_results(r, slot);
    r->issued[slot].waited = w.seconds;
    r->steps_issued++;
    return 0;
}

void step_drop(struct rank *r)
{
    if (r->steps_issued)
        r->dev.fn->sync(&r->dev, STREAM_COMPUTE);
    r->steps_issued = 0;
}

int step_evaluate(struct rank *r, struct loader *loader, int64_t micros, double *ret, struct err *e)
{
    struct waiting w = {.rank = r, .loader = loader};
    struct pipeline_source in = {.next = next_batch, .arg = &w};
    op_fill(&r->ops, &(struct fill_args){.y = r->totals, .value = 0});
    int code = pipeline_evaluate(r, &in, micros, e);
    if (!code)
        code = all_have_batches(&w, e);
    if (code)
        return code;
    rank_put_labels(r, &r->back[0]->labels, in.labels);
    reduce_totals(r);
    rank_fetch(r, r->host_totals, r->totals);
    code = dev_fault(&r->dev, e);
    if (!code)
        code = comm_fault(&r->comm, e);
    if (!code)
        *ret = mean_loss(r->host_totals);
    return code;
}

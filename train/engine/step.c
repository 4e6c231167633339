/* SPDX-License-Identifier: Apache-2.0 */
#include "train/engine/step.h"

#include "base/cli/progress.h"
#include "train/engine/pipeline.h"
#include "train/engine/stage.h"
#include "train/engine/reduce.h"
#include "train/engine/values.h"

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

void step_issue_micro(struct rank *r, const struct batch *b, double scale)
{
    struct model_pass p = rank_pass(r, b, true);
    rank_stage(r, b, 1);
    model_forward(&r->model, &p);
    model_loss(&r->model, &p, tensor_rows(r->totals, 0, 1), scale);
    model_backward(&r->model, &p);
}

/* Of totals that have come back. */
static double mean_loss(const struct rank *r)
{
    return r->host_totals[1] > 0 ? r->host_totals[0] / r->host_totals[1] : 0;
}

/* The loss is above the caller's limit. With one, the step waits here until all ranks know it. */
static bool is_spike(struct rank *r)
{
    if (!(r->loss_limit > 0))
        return false;
    rank_fetch(r, r->host_totals, r->totals);
    return mean_loss(r) > r->loss_limit;
}

/* Weights and moments stay; there is no norm. */
static void pass_over(struct rank *r)
{
    op_fill(&r->ops, &(struct fill_args){.y = r->optim.norm, .value = 0});
    op_fill(&r->ops, &(struct fill_args){.y = r->optim.skip, .value = 1});
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
    reduce_gradients(r);
    rank_timer(r, RANK_TIMER_GRADS_SYNC, false);
    rank_timer(r, RANK_TIMER_OPTIMIZER, true);
    if (is_spike(r))
        pass_over(r);
    else
        optim_step(&r->optim, &r->ops, &r->comm, r->at.steps == 0);
    units_spread(r);
    rank_timer(r, RANK_TIMER_OPTIMIZER, false);
}

static void clear(struct rank *r)
{
    op_fill(&r->ops, &(struct fill_args){.y = r->grads, .value = 0});
    op_fill(&r->ops, &(struct fill_args){.y = r->totals, .value = 0});
}

/*
 * The only place of a step that waits for the device: losses, norm and skip flag come back.
 *
 * A skipped step (the norm was not finite, see optim_step) left weights and moments as they were.
 * Its samples are consumed all the same, so that a repeated batch cannot block a run; but
 * neither the bias correction of AdamW (`steps`) nor the learning rate (`scheduled`) advances.
 */
static int step_finish(struct rank *r, struct step_result *ret, struct err *e)
{
    *ret = (struct step_result){0};
    rank_fetch_later(r, r->host_totals, r->totals);
    rank_fetch_later(r, r->host_norm, r->optim.norm);
    rank_fetch(r, r->host_skip, r->optim.skip);
    int32_t skip = *r->host_skip;
    int code = dev_fault(&r->dev, e);
    if (!code)
        code = comm_fault(&r->comm, e);
    if (code)
        return code;
    int64_t samples = rank_samples(r);
    ret->loss = mean_loss(r);
    double share = 1.0 / (double)(r->config.micros * r->config.layout.mesh.dp);
    ret->balance = r->host_totals[2] * share / (double)r->config.spec.layers;
    ret->z = r->host_totals[3] * share / (double)r->config.spec.layers;
    ret->grad_norm = *r->host_norm;
    ret->samples = samples;
    ret->skipped = skip != 0;
    ret->spike = r->loss_limit > 0 && ret->loss > r->loss_limit;
    const struct cursor before = r->at;
    r->at.iteration++;
    r->at.consumed += samples;
    r->at.steps += skip && !FAULT("skip_step") ? 0 : 1;
    r->at.scheduled += skip && !FAULT("skip_schedule") ? 0 : samples;
    ret->lr = lr_at(&r->config.lr, r->at.scheduled);
    code = loss_scale_step(&r->config.scale, &r->at.scale, skip && !ret->spike, e);
    ret->loss_scale = r->at.scale.scale;
    if (code)
        r->at = before; /* the step has failed */
    return code;
}

static void enter_phase(const struct rank *r, enum rank_phase p)
{
    if (r->config.progress)
        r->config.progress(r->config.progress_arg, p, r->at.iteration + 1);
}

/* A loader, and how long it let the step wait. */
struct waiting {
    struct rank *rank;
    struct loader *loader;
    bool train;
    double seconds;
};

static int next_batch(void *arg, const struct batch **ret, struct err *e)
{
    struct waiting *w = arg;
    double asked = clock_seconds();
    enter_phase(w->rank, w->train ? RANK_DATA : RANK_EVAL);
    rank_timer(w->rank, RANK_TIMER_BATCH, true);
    int code = loader_next(w->loader, ret, e);
    rank_timer(w->rank, RANK_TIMER_BATCH, false);
    w->seconds += clock_seconds() - asked;
    if (w->train)
        enter_phase(w->rank, RANK_MICRO);
    return code;
}

int step_train(struct rank *r, struct loader *loader, struct step_result *ret, struct err *e)
{
    struct waiting w = {.rank = r, .loader = loader, .train = true};
    struct pipeline_source in = {.next = next_batch, .arg = &w};
    rank_follow_ramp(r);
    clear(r);
    values_put(r, values_of(r, &r->at), values_of(r, &r->at));
    rank_timer(r, RANK_TIMER_FORWARD_BACKWARD, true);
    int code = pipeline_train(r, &in, e);
    rank_timer(r, RANK_TIMER_FORWARD_BACKWARD, false);
    if (code)
        return code;
    enter_phase(r, RANK_UPDATE);
    rank_put_labels(r, in.labels);
    step_issue_update(r);
    code = step_finish(r, ret, e);
    ret->waited = w.seconds;
    return code;
}

int step_evaluate(struct rank *r, struct loader *loader, int64_t micros, double *ret, struct err *e)
{
    struct waiting w = {.rank = r, .loader = loader};
    struct pipeline_source in = {.next = next_batch, .arg = &w};
    op_fill(&r->ops, &(struct fill_args){.y = r->totals, .value = 0});
    int code = pipeline_evaluate(r, &in, micros, e);
    if (code)
        return code;
    rank_put_labels(r, in.labels);
    reduce_totals(r);
    rank_fetch(r, r->host_totals, r->totals);
    code = dev_fault(&r->dev, e);
    if (!code)
        code = comm_fault(&r->comm, e);
    if (!code)
        *ret = mean_loss(r);
    return code;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "train/engine/step.h"

#include "base/cli/progress.h"
#include "base/core/fault.h"
#include "train/engine/reduce.h"

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
 * from the mask in the batch, so no step waits for the device to learn it.
 *
 * The loss that is logged is another number, as in Megatron-LM: the sum of all losses of the step
 * by the sum of its counted labels.
 */

/* Labels in the loss of a micro-batch. */
static double counted(const struct batch *b)
{
    double sum = 0;
    for (int64_t i = 0; i < (int64_t)b->rows * b->seq_length; i++)
        sum += (double)b->loss_mask[i];
    return sum;
}

static double scale_of(const struct rank *r, double labels)
{
    double micros = (double)r->config.micros;
    if (!FAULT("dp_scale"))
        micros *= comm_size(&r->comm, GROUP_DP);
    return labels > 0 ? 1 / (labels * micros) : 0;
}

void step_issue_micro(struct rank *r, const struct batch *b, float scale)
{
    struct model_pass p = rank_pass(r, b, true);
    rank_stage(r, b);
    model_forward(&r->model, &p);
    model_loss(&r->model, &p, tensor_rows(r->totals, 0, 1), scale);
    model_backward(&r->model, &p);
}

/*
 * Data-parallel ranks meet here and nowhere else: once a step, after the last micro-batch, so that
 * one reduction serves all of them. It is a sum: the mean is part of the scale above.
 *
 * The norm is taken after the reduction, so that all ranks clip, or skip, alike.
 */
void step_issue_update(struct rank *r, double lr)
{
    reduce_gradients(r);
    optim_step(&r->optim, &r->ops, &r->comm, lr, r->at.steps + 1);
}

static void clear(struct rank *r)
{
    op_fill(&r->ops, &(struct fill_args){.y = r->grads, .value = 0});
    op_fill(&r->ops, &(struct fill_args){.y = r->totals, .value = 0});
}

/* Of totals that have come back. */
static double mean_loss(const struct rank *r)
{
    return r->host_totals[1] > 0 ? r->host_totals[0] / r->host_totals[1] : 0;
}

/*
 * The only place of a step that waits for the device: losses, norm and skip flag come back.
 *
 * A skipped step (the norm was not finite, see optim_step) left weights and moments as they were.
 * Its samples are consumed all the same, so that a repeated batch cannot stop a run for ever; but
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
    ret->grad_norm = *r->host_norm;
    ret->skipped = skip != 0;
    r->at.iteration++;
    r->at.consumed += samples;
    r->at.steps += skip ? 0 : 1;
    r->at.scheduled += skip ? 0 : samples;
    ret->lr = lr_at(&r->config.lr, r->at.scheduled);
    return 0;
}

int step_train(struct rank *r, struct loader *in, struct step_result *ret, struct err *e)
{
    const struct rank_config *c = &r->config;
    double waited = 0, labels = 0;
    clear(r);
    for (int64_t i = 0; i < c->micros; i++) {
        const struct batch *b;
        double asked = clock_seconds();
        int code = loader_next(in, &b, e);
        if (code)
            return code;
        waited += clock_seconds() - asked;
        double n = counted(b);
        labels += n;
        step_issue_micro(r, b, (float)scale_of(r, n));
    }
    rank_put_labels(r, labels);
    step_issue_update(r, lr_at(&c->lr, r->at.scheduled));
    int code = step_finish(r, ret, e);
    ret->waited = waited;
    return code;
}

int step_evaluate(struct rank *r, struct loader *in, int64_t micros, double *ret, struct err *e)
{
    double labels = 0;
    op_fill(&r->ops, &(struct fill_args){.y = r->totals, .value = 0});
    for (int64_t i = 0; i < micros; i++) {
        const struct batch *b;
        int code = loader_next(in, &b, e);
        if (code)
            return code;
        struct model_pass p = rank_pass(r, b, false);
        rank_stage(r, b);
        model_forward(&r->model, &p);
        model_loss(&r->model, &p, tensor_rows(r->totals, 0, 1), 0);
        labels += counted(b);
    }
    rank_put_labels(r, labels);
    comm_wait(&r->comm, comm_all_reduce(&r->comm, GROUP_DP_CP, r->totals, REDUCE_SUM));
    rank_fetch(r, r->host_totals, r->totals);
    int code = dev_fault(&r->dev, e);
    if (!code)
        code = comm_fault(&r->comm, e);
    if (!code)
        *ret = mean_loss(r);
    return code;
}

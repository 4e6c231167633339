/* SPDX-License-Identifier: Apache-2.0 */
#include "train/engine/step.h"

#include "base/cli/progress.h"

/*
 * The objective of a step is the mean over its micro-batches of each one's mean loss per label, as
 * in Megatron-LM. A micro-batch with n labels in its loss mask contributes
 *
 *     sum of its losses * 1 / (n * micros)
 *
 * and that factor is the `scale` of its loss: the logits' gradients carry it, so all gradients
 * below add up to those of the objective and nothing divides them afterwards. The same factor,
 * kept in host_weights, turns the totals that come back into the loss that is logged. A mean over
 * all labels of the step would need every mask before the first backward pass.
 *
 * n is counted on the host, from the mask in the batch, so no step waits for the device to learn
 * it. n = 0 (everything masked) gives scale 0: no gradient and no loss, rather than 0 / 0.
 */

/* Labels in the loss of a micro-batch. */
static double counted(const struct batch *b)
{
    double sum = 0;
    for (int64_t i = 0; i < (int64_t)b->rows * b->seq_length; i++)
        sum += (double)b->loss_mask[i];
    return sum;
}

void step_issue_micro(struct rank *r, const struct batch *b, int64_t micro, float scale)
{
    struct model_pass p = rank_pass(r, b, true);
    rank_stage(r, b);
    model_forward(&r->model, &p);
    model_loss(&r->model, &p, tensor_rows(r->totals, micro, 1), scale);
    model_backward(&r->model, &p);
}

/*
 * Data-parallel ranks meet here and nowhere else: once a step, after the last micro-batch, so that
 * one reduction serves all of them. It is a sum. The average over the ranks is part of the scale
 * above, not a pass over the gradients: with dp ranks the factor must be 1 / (n * micros * dp), and
 * each rank must weight its totals with it before they are summed, as n differs from rank to rank.
 * The only group that exists so far (comm_self) has dp = 1, so neither shows in the code yet.
 *
 * The norm is taken after the reduction, so that all ranks clip, or skip, alike.
 */
void step_issue_update(struct rank *r, double lr)
{
    struct comm_ticket grads = comm_all_reduce(&r->comm, GROUP_DP_CP, r->grads, REDUCE_SUM);
    struct comm_ticket totals = comm_all_reduce(&r->comm, GROUP_DP_CP, r->totals, REDUCE_SUM);
    comm_wait(&r->comm, grads);
    comm_wait(&r->comm, totals);
    optim_step(&r->optim, &r->ops, &r->comm, lr, r->at.steps + 1);
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
 * Its samples are consumed all the same, so that a repeated batch cannot stop a run for ever; but
 * neither the bias correction of AdamW (`steps`) nor the learning rate (`scheduled`) advances.
 */
static int step_finish(struct rank *r, struct step_result *ret, struct err *e)
{
    int32_t skip;
    *ret = (struct step_result){0};
    rank_fetch(r, r->host_totals, r->totals);
    rank_fetch(r, &ret->grad_norm, r->optim.norm);
    rank_fetch(r, &skip, r->optim.skip);
    int code = dev_fault(&r->dev, e);
    if (!code)
        code = comm_fault(&r->comm, e);
    if (code)
        return code;
    for (int64_t i = 0; i < r->config.micros; i++)
        ret->loss += r->host_totals[i] * r->host_weights[i];
    ret->skipped = skip != 0;
    r->at.iteration++;
    r->at.consumed += r->config.micros * r->config.micro_batch;
    r->at.steps += skip ? 0 : 1;
    r->at.scheduled += skip ? 0 : r->config.micros * r->config.micro_batch;
    ret->lr = lr_at(&r->config.lr, r->at.scheduled);
    return 0;
}

int step_train(struct rank *r, struct loader *in, struct step_result *ret, struct err *e)
{
    const struct rank_config *c = &r->config;
    double waited = 0;
    clear(r);
    for (int64_t i = 0; i < c->micros; i++) {
        const struct batch *b;
        double asked = clock_seconds();
        int code = loader_next(in, &b, e);
        if (code)
            return code;
        waited += clock_seconds() - asked;
        double n = counted(b);
        r->host_weights[i] = n > 0 ? 1 / (n * (double)c->micros) : 0;
        step_issue_micro(r, b, i, (float)r->host_weights[i]);
    }
    step_issue_update(r, lr_at(&c->lr, r->at.scheduled));
    int code = step_finish(r, ret, e);
    ret->waited = waited;
    return code;
}

int step_evaluate(struct rank *r, struct loader *in, int64_t micros, double *ret, struct err *e)
{
    double sum = 0, n = 0;
    for (int64_t i = 0; i < micros; i++) {
        const struct batch *b;
        int code = loader_next(in, &b, e);
        if (code)
            return code;
        struct model_pass p = rank_pass(r, b, false);
        op_fill(&r->ops, &(struct fill_args){.y = r->totals, .value = 0});
        rank_stage(r, b);
        model_forward(&r->model, &p);
        model_loss(&r->model, &p, tensor_rows(r->totals, 0, 1), 0);
        rank_fetch(r, r->host_totals, tensor_rows(r->totals, 0, 1));
        sum += r->host_totals[0];
        n += counted(b);
    }
    int code = dev_fault(&r->dev, e);
    if (!code)
        *ret = n > 0 ? sum / n : 0;
    return code;
}

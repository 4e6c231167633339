/* SPDX-License-Identifier: Apache-2.0 */
#include "train/engine/step.h"

#include "base/cli/progress.h"

/* Labels that count in a micro-batch: known on the host before anything is issued. */
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

void step_issue_update(struct rank *r, double lr)
{
    comm_all_reduce(&r->comm, GROUP_DP, r->grads, REDUCE_SUM);
    comm_all_reduce(&r->comm, GROUP_DP, r->totals, REDUCE_SUM);
    comm_wait(&r->comm, GROUP_DP);
    optim_step(&r->optim, &r->ops, &r->comm, lr, r->at.steps + 1);
}

static void clear(struct rank *r)
{
    op_fill(&r->ops, &(struct fill_args){.y = r->grads, .value = 0});
    op_fill(&r->ops, &(struct fill_args){.y = r->totals, .value = 0});
}

/* The one place of a step that waits: losses, norm and skip flag come back, and the run
 * moves on. */
static int step_finish(struct rank *r, struct step_result *ret, struct err *e)
{
    int32_t skip;
    *ret = (struct step_result){0};
    rank_fetch(r, r->host_totals, r->totals);
    rank_fetch(r, &ret->grad_norm, r->optim.norm);
    rank_fetch(r, &skip, r->optim.skip);
    int code = dev_fault(&r->dev, e);
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

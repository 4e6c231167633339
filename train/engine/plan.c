/* SPDX-License-Identifier: Apache-2.0 */
#include "train/engine/plan.h"

#include "train/engine/pipeline.h"
#include "train/engine/stage.h"
#include "train/engine/step.h"
#include "train/engine/step_scalars.h"

static int next_fake(void *arg, const struct batch **ret, struct err *e)
{
    (void)e;
    *ret = arg;
    return 0;
}

int plan_rank(struct rank *r, struct err *e)
{
    struct batch fake = {.rows = (uint32_t)r->effective.micro_batch,
                         .seq_length = (uint32_t)r->config.seq_length,
                         .nstretch = (uint32_t)r->effective.micro_batch};
    size_t mark = slab_mark(&r->slab[SLAB_WORKSPACE]);
    plan_wrap(&r->plan, &r->dev, &r->ops, &r->comm, false);
    if (r->config.use == MODEL_TRAIN) {
        struct pipeline_source in = {.next = next_fake, .arg = &fake};
        step_scalars_put(r, (struct step_values){0}, (struct step_values){0});
        pipeline_train(r, &in, NULL);
        step_issue_update(r);
    } else {
        struct model_pass p = rank_pass(r, &fake, false);
        struct tensor logits = {0};
        if (r->config.use == MODEL_DECODE) /* the decoder keeps them below all scratch */
            logits = slab_2d(&r->slab[SLAB_WORKSPACE], r->config.real, 1, r->config.spec.vocab);
        model_forward(&r->model, &p);
        if (r->config.use == MODEL_EVAL)
            model_loss(&r->model, &p, tensor_rows(r->totals, 0, 1), 0);
        else
            model_logits(&r->model, 0, 1, logits);
    }
    slab_reset(&r->slab[SLAB_WORKSPACE], mark);
    plan_unwrap(&r->plan, &r->dev, &r->ops, &r->comm);
    if (r->plan.failed.code && e)
        *e = r->plan.failed;
    return r->plan.failed.code;
}

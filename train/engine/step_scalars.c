/* SPDX-License-Identifier: Apache-2.0 */
#include "train/engine/step_scalars.h"

#include "base/core/fault.h"

void step_scalars_take(struct rank *r, struct slab *activations, struct slab *staging)
{
    r->values = slab_1d(activations, DTYPE_F64, STEP_VALUES);
    r->next_values = slab_2d(activations, DTYPE_F64, 2, STEP_VALUES);
    r->model.values = r->optim.values = r->values;
    for (int i = 0; i < VALUE_SLOTS; i++)
        r->host_values[i] = slab_bytes(staging, 2 * sizeof(struct step_values));
}

/* A micro-batch's weight in the balancing and z losses of a mixture of experts. */
static double route_weight(const struct rank *r)
{
    const struct rank_config *c = &r->config;
    return c->per_token ? (double)(r->effective.micro_batch * c->seq_length)
                        : 1.0 / (double)(r->effective.micros * c->layout.mesh.dp);
}

struct step_values step_scalars_of(const struct rank *r, const struct cursor *at)
{
    const struct rank_config *c = &r->config;
    struct step_values v = step_values_make(rank_rate(r, at), decay_at(&c->decay, at->scheduled),
                                            (double)(at->steps + 1), c->beta1, c->beta2);
    v.scale = at->scale.scale;
    v.route = route_weight(r) * at->scale.scale;
    return v;
}

/* Faults: a value is that of the step before. */
static void keep_values(const struct step_values *before, struct step_values *v)
{
    if (FAULT("value_lr"))
        v->lr = before->lr;
    if (FAULT("value_decay"))
        v->decay = before->decay;
    for (int i = 0; i < 2 && FAULT("value_number"); i++)
        v->correction[i] = before->correction[i];
    if (FAULT("value_scale"))
        v->scale = before->scale;
    if (FAULT("value_route"))
        v->route = before->route;
}

void step_scalars_put(struct rank *r, struct step_values taken, struct step_values skipped)
{
    struct step_values *to = r->host_values[r->valued];
    const struct step_values *before = r->host_values[(r->valued + 1) % VALUE_SLOTS];
    if (r->slab[SLAB_STAGING].base) { /* the planner has none */
        to[0] = taken;
        to[1] = FAULT("value_skip") ? taken : skipped;
        if (before->scale > 0)
            for (int i = 0; i < 2; i++)
                keep_values(before, &to[i]);
    }
    rank_put(r, r->next_values, to);
    op_select(&r->ops,
              &(struct select_args){.y = r->values, .x = r->next_values, .skip = r->optim.skip});
    r->valued = (r->valued + 1) % VALUE_SLOTS;
}

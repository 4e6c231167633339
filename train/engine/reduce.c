/* SPDX-License-Identifier: Apache-2.0 */
#include "train/engine/reduce.h"

#include "base/core/fault.h"

static void sum(struct rank *r, enum group g, struct tensor t)
{
    comm_wait(&r->comm, comm_all_reduce(&r->comm, g, t, REDUCE_SUM));
}

/*
 * A key/value head that several tensor-parallel ranks hold. They are neighbours, but no group of
 * their own, so the whole tensor is reduced: each rank's rows in their place, zeros elsewhere.
 */
static void sum_shared(struct rank *r, const struct param *p, const struct param_source *s)
{
    int64_t cols = p->size[1], rows = s->count[0];
    size_t mark = slab_mark(&r->slab[SLAB_WORKSPACE]);
    struct tensor whole = slab_1d(&r->slab[SLAB_WORKSPACE], r->grads.dtype, s->size[0] * cols);
    struct tensor place = tensor_rows(whole, s->begin[0] * cols, rows * cols);
    struct tensor mine = tensor_rows(r->grads, p->offset + s->row * cols, rows * cols);
    op_fill(&r->ops, &(struct fill_args){.y = whole, .value = 0});
    op_copy(&r->ops, &(struct copy_args){.y = place, .x = mine});
    sum(r, GROUP_TP, whole);
    op_copy(&r->ops, &(struct copy_args){.y = mine, .x = place});
    slab_reset(&r->slab[SLAB_WORKSPACE], mark);
}

static void sum_over_tensor_ranks(struct rank *r, const struct param *p)
{
    if (!(p->summed & 1u << GROUP_TP))
        return;
    if (p->tokens) {
        if (!FAULT("sequence_norms"))
            sum(r, GROUP_TP, tensor_rows(r->grads, p->offset, p->count));
        return;
    }
    for (int k = 0; k < p->sources; k++)
        if (p->source[k].shared > 1 && !FAULT("shared_heads"))
            sum_shared(r, p, &p->source[k]);
}

/* The embedding of tied ends: the first stage has the gradient of the embedding, the last one that
 * of the head. */
static void sum_over_ends(struct rank *r, const struct param *p)
{
    bool tied = p->summed & 1u << GROUP_ENDS && comm_index(&r->comm, GROUP_ENDS) >= 0;
    if (tied && !FAULT("tied_ends"))
        sum(r, GROUP_ENDS, tensor_rows(r->grads, p->offset, p->count));
}

void reduce_totals(struct rank *r)
{
    sum(r, GROUP_DP_CP, r->totals);
    sum(r, GROUP_PP, r->totals);
}

void reduce_gradients(struct rank *r)
{
    for (int i = 0; i < r->params.n; i++) {
        sum_over_tensor_ranks(r, &r->params.at[i]);
        sum_over_ends(r, &r->params.at[i]);
    }
    bool shared_out = r->optim.count < r->params.elements;
    struct tensor part = tensor_rows(r->grads, r->optim.begin, r->optim.count);
    struct comm_ticket grads =
        shared_out ? comm_reduce_scatter(&r->comm, GROUP_DP_CP, part, r->grads, REDUCE_SUM)
                   : comm_all_reduce(&r->comm, GROUP_DP_CP, r->grads, REDUCE_SUM);
    comm_wait(&r->comm, grads);
    reduce_totals(r);
}

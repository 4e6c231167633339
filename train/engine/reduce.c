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
    struct tensor mine = tensor_rows(units_gradient(r, p), s->row * cols, rows * cols);
    op_fill(&r->ops, &(struct fill_args){.y = whole, .value = 0});
    op_copy(&r->ops, &(struct copy_args){.y = place, .x = mine});
    sum(r, GROUP_TP, whole);
    op_copy(&r->ops, &(struct copy_args){.y = mine, .x = place});
    slab_reset(&r->slab[SLAB_WORKSPACE], mark);
}

/* Whether a tensor-parallel rank has all of the parameter, and of its gradient what its tokens or
 * experts add to it. */
static bool adds_up(const struct param *p)
{
    return p->tokens && p->summed & 1u << GROUP_TP && !FAULT("sequence_norms");
}

/* Copies such gradients of a unit to `packed`, without gaps, or back; returns their elements. */
static int64_t pack_small(struct rank *r, int unit, struct tensor packed, bool back)
{
    int64_t n = 0;
    for (int i = 0; i < r->params.n; i++) {
        const struct param *p = &r->params.at[i];
        if (zero_unit_of(&r->params, p) != unit || !adds_up(p))
            continue;
        if (!tensor_none(packed)) {
            struct tensor one = tensor_rows(packed, n, p->count), whole = units_gradient(r, p);
            op_copy(&r->ops, &(struct copy_args){.y = back ? whole : one, .x = back ? one : whole});
        }
        n += p->count;
    }
    return n;
}

/* Norms and biases are small: all of a unit in one reduction. */
static void sum_packed(struct rank *r, int unit)
{
    size_t mark = slab_mark(&r->slab[SLAB_WORKSPACE]);
    int64_t n = pack_small(r, unit, (struct tensor){0}, false);
    if (!n)
        return;
    struct tensor packed = slab_1d(&r->slab[SLAB_WORKSPACE], r->grads.dtype, n);
    pack_small(r, unit, packed, false);
    sum(r, GROUP_TP, packed);
    pack_small(r, unit, packed, true);
    slab_reset(&r->slab[SLAB_WORKSPACE], mark);
}

void reduce_over_tensor_ranks(struct rank *r, int unit)
{
    sum_packed(r, unit);
    for (int i = 0; i < r->params.n; i++) {
        const struct param *p = &r->params.at[i];
        if (zero_unit_of(&r->params, p) != unit || !(p->summed & 1u << GROUP_TP) || p->tokens)
            continue;
        for (int k = 0; k < p->sources; k++)
            if (p->source[k].shared > 1 && !FAULT("shared_heads"))
                sum_shared(r, p, &p->source[k]);
    }
}

/* The embedding of tied ends: the first stage has the gradient of the embedding, the last one that
 * of the head. */
static bool has_other_end(const struct rank *r, const struct param *p)
{
    return p->summed & 1u << GROUP_ENDS && comm_index(&r->comm, GROUP_ENDS) >= 0;
}

void reduce_totals(struct rank *r)
{
    sum(r, GROUP_DP_CP, r->totals);
    sum(r, GROUP_PP, r->totals);
}

/* ---- buckets ----------------------------------------------------------------------------- */

static bool bucket_is_complete(const struct rank *r, const struct zero_bucket *b)
{
    for (int i = b->param; i < r->params.n && r->params.at[i].offset < b->range.end; i++)
        if (!r->units.complete[i])
            return false;
    return true;
}

static struct tensor share_of(const struct rank *r, const struct zero_bucket *b)
{
    struct zero_range mine = zero_share(b->range, b->shares, b->at);
    return tensor_rows(r->grads, mine.begin, mine.end - mine.begin);
}

/* Sends the buckets that are complete and have not been sent; returns how many. */
static size_t send_buckets(struct rank *r)
{
    size_t sent = 0;
    for (size_t i = 0; i < r->zero.n; i++) {
        const struct zero_bucket *b = &r->zero.bucket[i];
        struct tensor all = tensor_rows(r->grads, b->range.begin, b->range.end - b->range.begin);
        if (r->units.issued[i] || !bucket_is_complete(r, b))
            continue;
        enum group same = b->experts && !FAULT("expert_sums") ? GROUP_EDP : GROUP_DP_CP;
        enum group shares = b->experts ? GROUP_EDP : GROUP_SHARD;
        r->units.ticket[i] =
            r->zero.stage ? comm_reduce_scatter(&r->comm, shares, share_of(r, b), all, REDUCE_SUM)
                          : comm_all_reduce(&r->comm, same, all, REDUCE_SUM);
        r->units.issued[i] = true;
        sent++;
    }
    return sent;
}

static void complete_unit(struct rank *r, int unit)
{
    reduce_over_tensor_ranks(r, unit);
    for (int i = 0; i < r->params.n; i++)
        if (zero_unit_of(&r->params, &r->params.at[i]) == unit &&
            !has_other_end(r, &r->params.at[i]))
            r->units.complete[i] = true;
}

void reduce_unit(struct rank *r, int unit)
{
    int64_t last = FAULT("bucket_early") ? 1 : r->config.micros;
    if (++r->units.micros[unit] != last || !r->config.overlap_grad_reduce)
        return;
    complete_unit(r, unit);
    r->units.early += send_buckets(r);
}

/* Each copy of the optimizer's state has its own ranks' sums by now. */
static void sum_over_copies(struct rank *r)
{
    struct units *u = &r->units;
    if (!r->zero.stage || comm_size(&r->comm, GROUP_REPLICA) == 1 || FAULT("instances"))
        return;
    if (r->zero.stage > 1) {
        sum(r, GROUP_REPLICA, r->grads);
        return;
    }
    for (size_t i = 0; i < r->zero.n; i++)
        u->ticket[i] =
            comm_all_reduce(&r->comm, GROUP_REPLICA, share_of(r, &r->zero.bucket[i]), REDUCE_SUM);
    for (size_t i = 0; i < r->zero.n; i++)
        comm_wait(&r->comm, u->ticket[i]);
}

static void wait_for_buckets(struct rank *r)
{
    for (size_t i = 0; i < r->zero.n; i++) {
        comm_wait(&r->comm, r->units.ticket[i]);
        r->units.issued[i] = false;
    }
}

/* In the order in which the backward pass completes them. */
static void complete_the_rest(struct rank *r)
{
    for (int unit = (int)r->config.spec.layers + 1; unit >= 0; unit--)
        if (!r->config.overlap_grad_reduce || r->units.micros[unit] < r->config.micros)
            complete_unit(r, unit);
    for (int i = 0; i < r->params.n; i++) {
        const struct param *p = &r->params.at[i];
        if (has_other_end(r, p) && !FAULT("tied_ends"))
            sum(r, GROUP_ENDS, units_gradient(r, p));
        r->units.complete[i] = true;
    }
    send_buckets(r);
    wait_for_buckets(r);
}

void reduce_gradients(struct rank *r)
{
    if (r->zero.stage > 1)
        units_settle_gradients(r);
    else
        complete_the_rest(r);
    sum_over_copies(r);
    if (r->config.spec.experts && !FAULT("balance_totals"))
        sum(r, GROUP_TP, r->model.route_sums);
    reduce_totals(r);
}

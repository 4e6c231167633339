/* SPDX-License-Identifier: Apache-2.0 */
#include "train/zero/reduce.h"

#include "base/core/fault.h"

void reduce_sum(struct comm *c, enum group g, struct tensor t)
{
    comm_wait(c, comm_all_reduce(c, g, t, REDUCE_SUM));
}

/* Where the gradient of a parameter lies. */
static struct tensor gradient_of(const struct zero *z, const struct param *p)
{
    int64_t at = z->split.stage > 1 ? z->grad_slots.place[p - z->params->at] : p->offset;
    return tensor_rows(z->split.stage > 1 ? z->grad_slots.t : z->grads, at, p->count);
}

/*
 * A key/value head that several tensor-parallel ranks hold. They are neighbours, but no group of
 * their own, so the whole tensor is reduced: each rank's rows in their place, zeros elsewhere.
 */
static void sum_shared(struct zero *z, const struct param *p, const struct param_source *s)
{
    int64_t cols = p->size[1], rows = s->count[0];
    size_t mark = slab_mark(z->workspace);
    struct tensor whole = slab_1d(z->workspace, z->grads.dtype, s->size[0] * cols);
    struct tensor place = tensor_rows(whole, s->begin[0] * cols, rows * cols);
    struct tensor mine = tensor_rows(gradient_of(z, p), s->row * cols, rows * cols);
    op_fill(z->ops, &(struct fill_args){.y = whole, .value = 0});
    op_copy(z->ops, &(struct copy_args){.y = place, .x = mine});
    reduce_sum(z->comm, GROUP_TP, whole);
    op_copy(z->ops, &(struct copy_args){.y = mine, .x = place});
    slab_reset(z->workspace, mark);
}

/* Whether a tensor-parallel rank has all of the parameter, and of its gradient what its tokens or
 * experts add to it. */
static bool adds_up(const struct param *p)
{
    return p->tokens && p->summed & 1u << GROUP_TP && !FAULT("sequence_norms");
}

/* Copies such gradients of a unit to `packed`, without gaps, or back; returns their elements. */
static int64_t pack_small(struct zero *z, int unit, struct tensor packed, bool back)
{
    int64_t n = 0;
    for (int i = 0; i < z->params->n; i++) {
        const struct param *p = &z->params->at[i];
        if (zero_unit_of(z->params, p) != unit || !adds_up(p))
            continue;
        if (!tensor_none(packed)) {
            struct tensor one = tensor_rows(packed, n, p->count), whole = gradient_of(z, p);
            op_copy(z->ops, &(struct copy_args){.y = back ? whole : one, .x = back ? one : whole});
        }
        n += p->count;
    }
    return n;
}

/* Norms and biases are small: all of a unit in one reduction. */
static void sum_packed(struct zero *z, int unit)
{
    size_t mark = slab_mark(z->workspace);
    int64_t n = pack_small(z, unit, (struct tensor){0}, false);
    if (!n)
        return;
    struct tensor packed = slab_1d(z->workspace, z->grads.dtype, n);
    pack_small(z, unit, packed, false);
    reduce_sum(z->comm, GROUP_TP, packed);
    pack_small(z, unit, packed, true);
    slab_reset(z->workspace, mark);
}

/* Of a unit's gradients, over tensor-parallel ranks alone. */
static void sum_over_tensor_ranks(struct zero *z, int unit)
{
    sum_packed(z, unit);
    for (int i = 0; i < z->params->n; i++) {
        const struct param *p = &z->params->at[i];
        if (zero_unit_of(z->params, p) != unit || !(p->summed & 1u << GROUP_TP) || p->tokens)
            continue;
        for (int k = 0; k < p->sources; k++)
            if (p->source[k].shared > 1 && !FAULT("shared_heads"))
                sum_shared(z, p, &p->source[k]);
    }
}

/* The embedding of tied ends: the first stage has the gradient of the embedding, the last one that
 * of the head. */
static bool has_other_end(const struct zero *z, const struct param *p)
{
    return p->summed & 1u << GROUP_ENDS && comm_index(z->comm, GROUP_ENDS) >= 0;
}

/* ---- buckets ----------------------------------------------------------------------------- */

static bool bucket_is_complete(const struct zero *z, const struct zero_bucket *b)
{
    for (int i = b->param; i < z->params->n && z->params->at[i].offset < b->range.end; i++)
        if (!z->complete[i])
            return false;
    return true;
}

static struct tensor share_of(const struct zero *z, const struct zero_bucket *b)
{
    struct zero_range mine = zero_share(b->range, b->shares, b->at);
    return tensor_rows(z->grads, mine.begin, mine.end - mine.begin);
}

/* Sends the buckets that are complete and have not been sent; returns how many. */
static size_t send_buckets(struct zero *z)
{
    size_t sent = 0;
    for (size_t i = 0; i < z->split.n; i++) {
        const struct zero_bucket *b = &z->split.bucket[i];
        struct tensor all = tensor_rows(z->grads, b->range.begin, b->range.end - b->range.begin);
        if (z->issued[i] || !bucket_is_complete(z, b))
            continue;
        enum group same = b->experts && !FAULT("expert_sums") ? GROUP_EDP : GROUP_DP_CP;
        enum group shares = b->experts ? GROUP_EDP : GROUP_SHARD;
        z->ticket[i] = z->split.stage
                           ? comm_reduce_scatter(z->comm, shares, share_of(z, b), all, REDUCE_SUM)
                           : comm_all_reduce(z->comm, same, all, REDUCE_SUM);
        z->issued[i] = true;
        sent++;
    }
    return sent;
}

static void complete_unit(struct zero *z, int unit)
{
    sum_over_tensor_ranks(z, unit);
    for (int i = 0; i < z->params->n; i++)
        if (zero_unit_of(z->params, &z->params->at[i]) == unit &&
            !has_other_end(z, &z->params->at[i]))
            z->complete[i] = true;
}

/* A micro-batch has added a unit's gradients. */
static void send_unit(struct zero *z, int unit)
{
    int64_t last = FAULT("bucket_early") ? 1 : z->micros;
    if (++z->added[unit] != last || !z->overlap_grad_reduce)
        return;
    complete_unit(z, unit);
    z->early += send_buckets(z);
}

/* ---- slots ------------------------------------------------------------------------------- */

/* What has been reduced joins what is kept. */
static void settle_slot(struct zero *z, struct unit_slot *slot)
{
    if (!slot->pending)
        return;
    slots_wait(z, slot);
    for (int i = 0; i < UNIT_PARTS; i++) {
        enum unit_part part = (enum unit_part)i;
        bool lost = part == PART_EXPERTS && FAULT("experts_accumulate");
        if (slots_bucket(z, slot->unit, part))
            op_copy(z->ops,
                    &(struct copy_args){.y = slots_kept(z, z->grads, slot->unit, part),
                                        .x = slots_share(z, &z->grad_slots, slot->unit, part),
                                        .accumulate = !FAULT("zero_accumulate") && !lost});
    }
    slot->unit = UNIT_NONE;
}

static void settle_gradients(struct zero *z)
{
    for (int i = 0; i < UNIT_SLOTS; i++)
        settle_slot(z, &z->grad_slots.slot[i]);
}

void reduce_begin_unit(void *arg, int unit)
{
    struct zero *z = arg;
    struct unit_slot *slot = z->split.stage > 1 ? slots_find(z, &z->grad_slots, unit) : NULL;
    if (!slot || (slot->unit == unit && !slot->pending))
        return;
    settle_slot(z, slot);
    BUG_ON(slot->unit != UNIT_NONE, "unit %d comes before %d is complete", unit, slot->unit);
    for (int i = 0; i < UNIT_PARTS; i++)
        if (slots_bucket(z, unit, (enum unit_part)i))
            op_fill(z->ops,
                    &(struct fill_args){.y = slots_part(z, &z->grad_slots, unit, (enum unit_part)i),
                                        .value = 0});
    slot->unit = unit;
}

void reduce_end_unit(void *arg, int unit)
{
    struct zero *z = arg;
    if (z->split.stage < 2) {
        send_unit(z, unit);
        return;
    }
    struct unit_slots *s = &z->grad_slots;
    struct unit_slot *slot = slots_find(z, s, unit);
    sum_over_tensor_ranks(z, unit);
    for (int i = 0; i < UNIT_PARTS; i++) {
        enum unit_part part = (enum unit_part)i;
        slot->ticket[i] = (struct comm_ticket){0};
        if (slots_bucket(z, unit, part))
            slot->ticket[i] =
                comm_reduce_scatter(z->comm, slots_group(part), slots_share(z, s, unit, part),
                                    slots_part(z, s, unit, part), REDUCE_SUM);
    }
    slot->pending = true;
    if (!z->overlap_grad_reduce)
        settle_slot(z, slot);
}

/* ---- steps ------------------------------------------------------------------------------- */

/* Each copy of the optimizer's state has its own ranks' sums by now. */
static void sum_over_copies(struct zero *z)
{
    if (!z->split.stage || comm_size(z->comm, GROUP_REPLICA) == 1 || FAULT("instances"))
        return;
    if (z->split.stage > 1) {
        reduce_sum(z->comm, GROUP_REPLICA, z->grads);
        return;
    }
    for (size_t i = 0; i < z->split.n; i++)
        z->ticket[i] =
            comm_all_reduce(z->comm, GROUP_REPLICA, share_of(z, &z->split.bucket[i]), REDUCE_SUM);
    for (size_t i = 0; i < z->split.n; i++)
        comm_wait(z->comm, z->ticket[i]);
}

static void wait_for_buckets(struct zero *z)
{
    for (size_t i = 0; i < z->split.n; i++) {
        comm_wait(z->comm, z->ticket[i]);
        z->issued[i] = false;
    }
}

/* In the order in which the backward pass completes them. */
static void complete_the_rest(struct zero *z)
{
    for (int unit = (int)z->spec->layers + 1; unit >= 0; unit--)
        if (!z->overlap_grad_reduce || z->added[unit] < z->micros)
            complete_unit(z, unit);
    for (int i = 0; i < z->params->n; i++) {
        const struct param *p = &z->params->at[i];
        if (has_other_end(z, p) && !FAULT("tied_ends"))
            reduce_sum(z->comm, GROUP_ENDS, gradient_of(z, p));
        z->complete[i] = true;
    }
    send_buckets(z);
    wait_for_buckets(z);
}

void reduce_gradients(struct zero *z)
{
    if (z->split.stage > 1)
        settle_gradients(z);
    else
        complete_the_rest(z);
    sum_over_copies(z);
}

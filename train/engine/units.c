/* SPDX-License-Identifier: Apache-2.0 */
#include "train/engine/units.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/fault.h"
#include "base/core/mem.h"
#include "train/engine/rank.h"
#include "train/engine/reduce.h"

/* ---- slots ------------------------------------------------------------------------------- */

static int last_unit(const struct rank *r)
{
    return (int)r->config.spec.layers + 1;
}

static const struct zero_bucket *bucket_of(const struct rank *r, int unit)
{
    return &r->zero.bucket[last_unit(r) - unit];
}

static int64_t unit_size(const struct rank *r, int unit)
{
    struct zero_range all = bucket_of(r, unit)->range;
    return all.end - all.begin;
}

static int slot_number(const struct rank *r, const struct unit_slots *s, int unit)
{
    bool end = unit == last_unit(r);
    if (unit == UNIT_EMBED || (end && !r->config.spec.tied))
        return s->layers;
    return end ? s->layers + 1 : (unit - 1) % s->layers;
}

static struct unit_slot *slot_of(const struct rank *r, struct unit_slots *s, int unit)
{
    return &s->slot[slot_number(r, s, unit)];
}

static void slots_take(const struct rank *r, struct unit_slots *s, int layers, struct slab *slab,
                       enum dtype d)
{
    int64_t all = 0;
    s->layers = layers;
    for (int i = 0; i < UNIT_SLOTS; i++)
        s->slot[i] = (struct unit_slot){.unit = UNIT_NONE};
    for (int unit = 0; unit <= last_unit(r); unit++) {
        int64_t size = unit_size(r, unit);
        struct unit_slot *slot = slot_of(r, s, unit);
        slot->size = slot->size > size ? slot->size : size;
    }
    for (int i = 0; i < UNIT_SLOTS; all += s->slot[i++].size)
        s->slot[i].at = all;
    s->t = slab_1d(slab, d, all);
    if (!s->place)
        s->place = mem_new((size_t)r->params.n + 1, sizeof(*s->place));
    for (int i = 0; i < r->params.n; i++) {
        const struct param *p = &r->params.at[i];
        int unit = zero_unit_of(&r->params, p);
        s->place[i] = slot_of(r, s, unit)->at + p->offset - bucket_of(r, unit)->range.begin;
    }
}

static void slots_drop(struct unit_slots *s)
{
    for (int i = 0; i < UNIT_SLOTS; i++)
        s->slot[i].unit = UNIT_NONE;
}

/* The unit in its slot, and this rank's share of it there. */
static struct tensor whole_in(const struct rank *r, const struct unit_slots *s, int unit)
{
    return tensor_rows(s->t, s->slot[slot_number(r, s, unit)].at, unit_size(r, unit));
}

static struct tensor share_in(const struct rank *r, const struct unit_slots *s, int unit)
{
    int64_t each = unit_size(r, unit) / r->zero.shares;
    return tensor_rows(whole_in(r, s, unit), each * r->zero.at, each);
}

/* What this rank keeps of a unit. */
static struct tensor kept_of(const struct rank *r, struct tensor t, int unit)
{
    struct zero_piece p = zero_piece(&r->zero, (size_t)unit);
    return tensor_rows(t, zero_place(&r->zero, t.size[0], p), p.end - p.begin);
}

static void slot_wait(struct rank *r, struct unit_slot *s)
{
    if (s->pending)
        comm_wait(&r->comm, s->ticket);
    s->pending = false;
}

/* ---- weights ----------------------------------------------------------------------------- */

static void gather_unit(struct rank *r, int unit)
{
    struct unit_slots *s = &r->units.weights;
    struct unit_slot *slot = slot_of(r, s, unit);
    if (slot->unit == unit)
        return;
    slot_wait(r, slot);
    slot->unit = unit;
    slot->pending = true;
    slot->ticket =
        comm_all_gather(&r->comm, GROUP_SHARD, whole_in(r, s, unit), kept_of(r, r->weights, unit));
}

static void wait_for_bucket(struct rank *r, size_t i)
{
    if (r->units.issued[i])
        comm_wait(&r->comm, r->units.ticket[i]);
    r->units.issued[i] = false;
}

/* Buckets that have elements of a unit. */
static void wait_for_unit(struct rank *r, int unit)
{
    for (size_t i = 0; i < r->zero.n; i++) {
        if (!r->units.issued[i])
            continue;
        struct zero_range all = r->zero.bucket[i].range;
        for (int k = r->zero.bucket[i].param; k < r->params.n && r->params.at[k].offset < all.end;
             k++)
            if (zero_unit_of(&r->params, &r->params.at[k]) == unit)
                wait_for_bucket(r, i);
    }
}

static void unit_is_used(void *arg, int unit, int ahead)
{
    struct rank *r = arg;
    if (r->zero.stage != 3) {
        wait_for_unit(r, unit);
        return;
    }
    gather_unit(r, unit);
    slot_wait(r, slot_of(r, &r->units.weights, unit));
    if (ahead != UNIT_NONE && r->config.overlap_param_gather)
        gather_unit(r, ahead);
}

void units_spread(struct rank *r)
{
    struct units *u = &r->units;
    if (r->zero.stage == 3 || r->zero.kept == r->zero.elements) {
        slots_drop(&u->weights);
        return;
    }
    for (size_t i = r->zero.n; i-- > 0;) { /* as the forward pass comes to them */
        const struct zero_bucket *b = &r->zero.bucket[i];
        struct zero_range all = b->range, mine = zero_share(all, b->shares, b->at);
        u->ticket[i] = comm_all_gather(&r->comm, b->experts ? GROUP_EDP : GROUP_SHARD,
                                       tensor_rows(r->weights, all.begin, all.end - all.begin),
                                       tensor_rows(r->weights, mine.begin, mine.end - mine.begin));
        u->issued[i] = !FAULT("gather_wait");
    }
    if (!r->config.overlap_param_gather)
        units_settle(r);
}

void units_settle(struct rank *r)
{
    for (size_t i = 0; i < r->zero.n; i++)
        wait_for_bucket(r, i);
}

/* ---- gradients --------------------------------------------------------------------------- */

struct tensor units_gradient(const struct rank *r, const struct param *p)
{
    int64_t at = r->zero.stage > 1 ? r->units.grads.place[p - r->params.at] : p->offset;
    return tensor_rows(r->zero.stage > 1 ? r->units.grads.t : r->grads, at, p->count);
}

/* What has been reduced joins what is kept. */
static void settle_slot(struct rank *r, struct unit_slot *slot)
{
    if (!slot->pending)
        return;
    slot_wait(r, slot);
    op_copy(&r->ops, &(struct copy_args){.y = kept_of(r, r->grads, slot->unit),
                                         .x = share_in(r, &r->units.grads, slot->unit),
                                         .accumulate = !FAULT("zero_accumulate")});
    slot->unit = UNIT_NONE;
}

void units_settle_gradients(struct rank *r)
{
    for (int i = 0; i < UNIT_SLOTS; i++)
        settle_slot(r, &r->units.grads.slot[i]);
}

static void unit_is_added(void *arg, int unit)
{
    struct rank *r = arg;
    struct unit_slot *slot = r->zero.stage > 1 ? slot_of(r, &r->units.grads, unit) : NULL;
    if (!slot || (slot->unit == unit && !slot->pending))
        return;
    settle_slot(r, slot);
    BUG_ON(slot->unit != UNIT_NONE, "unit %d comes before %d is complete", unit, slot->unit);
    op_fill(&r->ops, &(struct fill_args){.y = whole_in(r, &r->units.grads, unit), .value = 0});
    slot->unit = unit;
}

static void unit_is_done(void *arg, int unit)
{
    struct rank *r = arg;
    if (r->zero.stage < 2) {
        reduce_unit(r, unit);
        return;
    }
    struct unit_slots *s = &r->units.grads;
    struct unit_slot *slot = slot_of(r, s, unit);
    reduce_over_tensor_ranks(r, unit);
    slot->ticket = comm_reduce_scatter(&r->comm, GROUP_SHARD, share_in(r, s, unit),
                                       whole_in(r, s, unit), REDUCE_SUM);
    slot->pending = true;
    if (!r->config.overlap_grad_reduce)
        settle_slot(r, slot);
}

/* ---- memory ------------------------------------------------------------------------------ */

struct model_units units_functions(struct rank *r)
{
    return (struct model_units){
        .use = unit_is_used, .add = unit_is_added, .done = unit_is_done, .arg = r};
}

void units_take(struct rank *r)
{
    const struct rank_config *c = &r->config;
    struct units *u = &r->units;
    struct slab *s = r->slab;
    int ahead = c->overlap_param_gather ? UNIT_SLOT_LAYERS : UNIT_SLOT_LAYERS - 1;
    if (!u->micros) {
        u->ticket = mem_new(r->zero.n + 1, sizeof(*u->ticket));
        u->issued = mem_new(r->zero.n + 1, sizeof(*u->issued));
        u->micros = mem_new((size_t)c->spec.layers + 2, sizeof(*u->micros));
        u->complete = mem_new((size_t)r->params.n + 1, sizeof(*u->complete));
    }
    bool shared = r->zero.stage == 3;
    r->weights = slab_1d(&s[SLAB_PARAMETERS], c->real, shared ? r->zero.kept : r->zero.elements);
    if (shared)
        slots_take(r, &u->weights, ahead, &s[SLAB_PARAMETERS], c->real);
    weights_bind(&r->model.w, &r->params, r->model.stage, shared ? u->weights.t : r->weights,
                 u->weights.place);
    if (c->use != MODEL_TRAIN)
        return;
    shared = r->zero.stage > 1;
    r->grads = slab_1d(&s[SLAB_GRADIENTS], r->ops.grad, shared ? r->zero.kept : r->zero.elements);
    if (shared)
        slots_take(r, &u->grads, UNIT_SLOT_LAYERS - 1, &s[SLAB_GRADIENTS], r->ops.grad);
    weights_bind(&r->model.g, &r->params, r->model.stage, shared ? u->grads.t : r->grads,
                 u->grads.place);
}

void units_finish(struct rank *r)
{
    struct units *u = &r->units;
    free(u->weights.place);
    free(u->grads.place);
    free(u->ticket);
    free(u->issued);
    free(u->micros);
    free(u->complete);
    *u = (struct units){0};
}

void units_begin(struct rank *r)
{
    struct units *u = &r->units;
    u->early = 0;
    memset(u->micros, 0, ((size_t)r->config.spec.layers + 2) * sizeof(*u->micros));
    memset(u->complete, 0, (size_t)r->params.n * sizeof(*u->complete));
}

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

/* NULL: the unit has no such part, or the rank keeps all of it. */
static const struct zero_bucket *bucket_of(const struct rank *r, int unit, enum unit_part part)
{
    int i = r->units.bucket[unit][part];
    return i < 0 ? NULL : &r->zero.bucket[i];
}

static enum unit_part unit_part_of(const struct rank *r, const struct param *p)
{
    return p->offset >= r->params.experts ? PART_EXPERTS : PART_SHARED;
}

static enum group sharing_group(enum unit_part part)
{
    return part == PART_EXPERTS ? GROUP_EDP : GROUP_SHARD;
}

static int64_t unit_size(const struct rank *r, int unit, enum unit_part part)
{
    const struct zero_bucket *b = bucket_of(r, unit, part);
    return b ? b->range.end - b->range.begin : 0;
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

/* Where a parameter lies in what is kept, of which no other rank has a part. */
static int64_t place_of_kept(const struct rank *r, const struct param *p)
{
    size_t i = 0;
    struct zero_piece q = zero_piece(&r->zero, i);
    while (p->offset >= q.end || p->offset < q.begin)
        q = zero_piece(&r->zero, ++i);
    return q.at + p->offset - q.begin;
}

static void slots_place(const struct rank *r, struct unit_slots *s)
{
    if (!s->place)
        s->place = mem_new((size_t)r->params.n + 1, sizeof(*s->place));
    for (int i = 0; i < r->params.n; i++) {
        const struct param *p = &r->params.at[i];
        enum unit_part part = unit_part_of(r, p);
        int unit = zero_unit_of(&r->params, p);
        const struct zero_bucket *b = bucket_of(r, unit, part);
        s->place[i] =
            b ? slot_of(r, s, unit)->at[part] + p->offset - b->range.begin : place_of_kept(r, p);
    }
}

/* Cuts what is kept, which is returned, and the slots. */
static struct tensor slots_take(const struct rank *r, struct unit_slots *s, int layers,
                                struct slab *slab, enum dtype d)
{
    int64_t all = r->zero.kept;
    s->layers = layers;
    for (int i = 0; i < UNIT_SLOTS; i++)
        s->slot[i] = (struct unit_slot){.unit = UNIT_NONE};
    for (int unit = 0; unit <= last_unit(r); unit++)
        for (int part = 0; part < UNIT_PARTS; part++) {
            int64_t size = unit_size(r, unit, (enum unit_part)part);
            struct unit_slot *slot = slot_of(r, s, unit);
            slot->size[part] = slot->size[part] > size ? slot->size[part] : size;
        }
    for (int i = 0; i < UNIT_SLOTS; i++)
        for (int part = 0; part < UNIT_PARTS; all += s->slot[i].size[part++])
            s->slot[i].at[part] = all;
    s->t = slab_1d(slab, d, all);
    slots_place(r, s);
    return tensor_rows(s->t, 0, r->zero.kept);
}

static void slots_drop(struct unit_slots *s)
{
    for (int i = 0; i < UNIT_SLOTS; i++)
        s->slot[i].unit = UNIT_NONE;
}

/* A part of the unit in its slot, and this rank's share of it there. */
static struct tensor whole_in(const struct rank *r, const struct unit_slots *s, int unit,
                              enum unit_part part)
{
    return tensor_rows(s->t, s->slot[slot_number(r, s, unit)].at[part], unit_size(r, unit, part));
}

static struct tensor share_in(const struct rank *r, const struct unit_slots *s, int unit,
                              enum unit_part part)
{
    const struct zero_bucket *b = bucket_of(r, unit, part);
    int64_t each = unit_size(r, unit, part) / b->shares;
    return tensor_rows(whole_in(r, s, unit, part), each * b->at, each);
}

/* What this rank keeps of it. */
static struct tensor kept_of(const struct rank *r, struct tensor t, int unit, enum unit_part part)
{
    size_t i = r->zero.n - 1 - (size_t)r->units.bucket[unit][part];
    struct zero_piece p = zero_piece(&r->zero, i);
    return tensor_rows(t, zero_place(&r->zero, t.size[0], p), p.end - p.begin);
}

static void slot_wait(struct rank *r, struct unit_slot *s)
{
    for (int part = 0; part < UNIT_PARTS && s->pending; part++)
        comm_wait(&r->comm, s->ticket[part]);
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
    for (int i = 0; i < UNIT_PARTS; i++) {
        enum unit_part part = (enum unit_part)i;
        slot->ticket[i] = (struct comm_ticket){0};
        if (bucket_of(r, unit, part))
            slot->ticket[i] =
                comm_all_gather(&r->comm, sharing_group(part), whole_in(r, s, unit, part),
                                kept_of(r, r->weights, unit, part));
    }
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
    for (int i = 0; i < UNIT_PARTS; i++) {
        enum unit_part part = (enum unit_part)i;
        bool lost = part == PART_EXPERTS && FAULT("experts_accumulate");
        if (bucket_of(r, slot->unit, part))
            op_copy(&r->ops,
                    &(struct copy_args){.y = kept_of(r, r->grads, slot->unit, part),
                                        .x = share_in(r, &r->units.grads, slot->unit, part),
                                        .accumulate = !FAULT("zero_accumulate") && !lost});
    }
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
    for (int i = 0; i < UNIT_PARTS; i++)
        if (bucket_of(r, unit, (enum unit_part)i))
            op_fill(&r->ops,
                    &(struct fill_args){.y = whole_in(r, &r->units.grads, unit, (enum unit_part)i),
                                        .value = 0});
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
    for (int i = 0; i < UNIT_PARTS; i++) {
        enum unit_part part = (enum unit_part)i;
        slot->ticket[i] = (struct comm_ticket){0};
        if (bucket_of(r, unit, part))
            slot->ticket[i] =
                comm_reduce_scatter(&r->comm, sharing_group(part), share_in(r, s, unit, part),
                                    whole_in(r, s, unit, part), REDUCE_SUM);
    }
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

/* Parts of which there are several copies. */
static void find_buckets(struct rank *r)
{
    for (int unit = 0; unit <= last_unit(r); unit++)
        for (int part = 0; part < UNIT_PARTS; part++)
            r->units.bucket[unit][part] = -1;
    for (size_t i = 0; r->zero.stage > 1 && i < r->zero.n; i++) {
        const struct param *p = &r->params.at[r->zero.bucket[i].param];
        if (r->zero.bucket[i].shares > 1)
            r->units.bucket[zero_unit_of(&r->params, p)][unit_part_of(r, p)] = (int)i;
    }
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
        u->bucket = mem_new((size_t)c->spec.layers + 2, sizeof(*u->bucket));
        u->micros = mem_new((size_t)c->spec.layers + 2, sizeof(*u->micros));
        u->complete = mem_new((size_t)r->params.n + 1, sizeof(*u->complete));
    }
    find_buckets(r);
    bool shared = r->zero.stage == 3;
    r->weights = shared ? slots_take(r, &u->weights, ahead, &s[SLAB_PARAMETERS], c->real)
                        : slab_1d(&s[SLAB_PARAMETERS], c->real, r->zero.elements);
    weights_bind(&r->model.w, &r->params, r->model.stage, shared ? u->weights.t : r->weights,
                 u->weights.place);
    if (c->use != MODEL_TRAIN)
        return;
    shared = r->zero.stage > 1;
    r->grads = shared
                   ? slots_take(r, &u->grads, UNIT_SLOT_LAYERS - 1, &s[SLAB_GRADIENTS], r->ops.grad)
                   : slab_1d(&s[SLAB_GRADIENTS], r->ops.grad, r->zero.elements);
    weights_bind(&r->model.g, &r->params, r->model.stage, shared ? u->grads.t : r->grads,
                 u->grads.place);
}

struct units_whole units_whole(const struct unit_slots *s)
{
    struct units_whole w = {0};
    if (tensor_none(s->t))
        return w;
    w.layers = s->layers;
    for (int i = 0; i < UNIT_SLOTS; i++) {
        uint64_t bytes = 0;
        for (int part = 0; part < UNIT_PARTS; part++)
            bytes += (uint64_t)s->slot[i].size[part] * dtype_size(s->t.dtype);
        if (i >= s->layers)
            w.ends += bytes;
        else if (bytes > w.layer)
            w.layer = bytes;
    }
    return w;
}

void units_finish(struct rank *r)
{
    struct units *u = &r->units;
    free(u->weights.place);
    free(u->grads.place);
    free(u->ticket);
    free(u->issued);
    free(u->bucket);
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

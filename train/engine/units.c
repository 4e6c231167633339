/* SPDX-License-Identifier: Apache-2.0 */
#include "train/engine/units.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/fault.h"
#include "base/core/mem.h"
#include "train/engine/reduce.h"

/* ---- slots ------------------------------------------------------------------------------- */

static int last_unit(const struct zero *z)
{
    return (int)z->spec->layers + 1;
}

/* NULL: the unit has no such part, or the rank keeps all of it. */
static const struct zero_bucket *bucket_of(const struct zero *z, int unit, enum unit_part part)
{
    int i = z->bucket[unit][part];
    return i < 0 ? NULL : &z->split.bucket[i];
}

static enum unit_part unit_part_of(const struct zero *z, const struct param *p)
{
    return p->offset >= z->params->experts ? PART_EXPERTS : PART_SHARED;
}

static enum group sharing_group(enum unit_part part)
{
    return part == PART_EXPERTS ? GROUP_EDP : GROUP_SHARD;
}

static int64_t unit_size(const struct zero *z, int unit, enum unit_part part)
{
    const struct zero_bucket *b = bucket_of(z, unit, part);
    return b ? b->range.end - b->range.begin : 0;
}

static int slot_number(const struct zero *z, const struct unit_slots *s, int unit)
{
    bool end = unit == last_unit(z);
    if (unit == UNIT_EMBED || (end && !z->spec->tied))
        return s->layers;
    return end ? s->layers + 1 : (unit - 1) % s->layers;
}

static struct unit_slot *slot_of(const struct zero *z, struct unit_slots *s, int unit)
{
    return &s->slot[slot_number(z, s, unit)];
}

/* Where a parameter lies in what is kept, of which no other rank has a part. */
static int64_t place_of_kept(const struct zero *z, const struct param *p)
{
    size_t i = 0;
    struct zero_piece q = zero_piece(&z->split, i);
    while (p->offset >= q.end || p->offset < q.begin)
        q = zero_piece(&z->split, ++i);
    return q.at + p->offset - q.begin;
}

static void slots_place(const struct zero *z, struct unit_slots *s)
{
    if (!s->place)
        s->place = mem_new((size_t)z->params->n + 1, sizeof(*s->place));
    for (int i = 0; i < z->params->n; i++) {
        const struct param *p = &z->params->at[i];
        enum unit_part part = unit_part_of(z, p);
        int unit = zero_unit_of(z->params, p);
        const struct zero_bucket *b = bucket_of(z, unit, part);
        s->place[i] =
            b ? slot_of(z, s, unit)->at[part] + p->offset - b->range.begin : place_of_kept(z, p);
    }
}

/* Cuts what is kept, which is returned, and the slots. */
static struct tensor slots_take(const struct zero *z, struct unit_slots *s, int layers,
                                struct slab *slab, enum dtype d)
{
    int64_t all = z->split.kept;
    s->layers = layers;
    for (int i = 0; i < UNIT_SLOTS; i++)
        s->slot[i] = (struct unit_slot){.unit = UNIT_NONE};
    for (int unit = 0; unit <= last_unit(z); unit++)
        for (int part = 0; part < UNIT_PARTS; part++) {
            int64_t size = unit_size(z, unit, (enum unit_part)part);
            struct unit_slot *slot = slot_of(z, s, unit);
            slot->size[part] = slot->size[part] > size ? slot->size[part] : size;
        }
    for (int i = 0; i < UNIT_SLOTS; i++)
        for (int part = 0; part < UNIT_PARTS; all += s->slot[i].size[part++])
            s->slot[i].at[part] = all;
    s->t = slab_1d(slab, d, all);
    slots_place(z, s);
    return tensor_rows(s->t, 0, z->split.kept);
}

static void slots_drop(struct unit_slots *s)
{
    for (int i = 0; i < UNIT_SLOTS; i++)
        s->slot[i].unit = UNIT_NONE;
}

/* A part of the unit in its slot, and this rank's share of it there. */
static struct tensor whole_in(const struct zero *z, const struct unit_slots *s, int unit,
                              enum unit_part part)
{
    return tensor_rows(s->t, s->slot[slot_number(z, s, unit)].at[part], unit_size(z, unit, part));
}

static struct tensor share_in(const struct zero *z, const struct unit_slots *s, int unit,
                              enum unit_part part)
{
    const struct zero_bucket *b = bucket_of(z, unit, part);
    int64_t each = unit_size(z, unit, part) / b->shares;
    return tensor_rows(whole_in(z, s, unit, part), each * b->at, each);
}

/* What this rank keeps of it. */
static struct tensor kept_of(const struct zero *z, struct tensor t, int unit, enum unit_part part)
{
    size_t i = z->split.n - 1 - (size_t)z->bucket[unit][part];
    struct zero_piece p = zero_piece(&z->split, i);
    return tensor_rows(t, zero_place(&z->split, t.size[0], p), p.end - p.begin);
}

static void slot_wait(struct zero *z, struct unit_slot *s)
{
    for (int part = 0; part < UNIT_PARTS && s->pending; part++)
        comm_wait(z->comm, s->ticket[part]);
    s->pending = false;
}

/* ---- weights ----------------------------------------------------------------------------- */

static void gather_unit(struct zero *z, int unit)
{
    struct unit_slots *s = &z->weight_slots;
    struct unit_slot *slot = slot_of(z, s, unit);
    if (slot->unit == unit)
        return;
    slot_wait(z, slot);
    slot->unit = unit;
    slot->pending = true;
    for (int i = 0; i < UNIT_PARTS; i++) {
        enum unit_part part = (enum unit_part)i;
        slot->ticket[i] = (struct comm_ticket){0};
        if (bucket_of(z, unit, part))
            slot->ticket[i] =
                comm_all_gather(z->comm, sharing_group(part), whole_in(z, s, unit, part),
                                kept_of(z, z->weights, unit, part));
    }
}

static void wait_for_bucket(struct zero *z, size_t i)
{
    if (z->issued[i])
        comm_wait(z->comm, z->ticket[i]);
    z->issued[i] = false;
}

/* Buckets that have elements of a unit. */
static void wait_for_unit(struct zero *z, int unit)
{
    for (size_t i = 0; i < z->split.n; i++) {
        if (!z->issued[i])
            continue;
        struct zero_range all = z->split.bucket[i].range;
        for (int k = z->split.bucket[i].param;
             k < z->params->n && z->params->at[k].offset < all.end; k++)
            if (zero_unit_of(z->params, &z->params->at[k]) == unit)
                wait_for_bucket(z, i);
    }
}

static void unit_is_used(void *arg, int unit, int ahead)
{
    struct zero *z = arg;
    if (z->split.stage != 3) {
        wait_for_unit(z, unit);
        return;
    }
    gather_unit(z, unit);
    slot_wait(z, slot_of(z, &z->weight_slots, unit));
    if (ahead != UNIT_NONE && z->overlap_param_gather)
        gather_unit(z, ahead);
}

void gather_weights(struct zero *z)
{
    if (z->split.stage == 3 || z->split.kept == z->split.elements) {
        slots_drop(&z->weight_slots);
        return;
    }
    for (size_t i = z->split.n; i-- > 0;) { /* as the forward pass comes to them */
        const struct zero_bucket *b = &z->split.bucket[i];
        struct zero_range all = b->range, mine = zero_share(all, b->shares, b->at);
        z->ticket[i] = comm_all_gather(z->comm, b->experts ? GROUP_EDP : GROUP_SHARD,
                                       tensor_rows(z->weights, all.begin, all.end - all.begin),
                                       tensor_rows(z->weights, mine.begin, mine.end - mine.begin));
        z->issued[i] = !FAULT("gather_wait");
    }
    if (!z->overlap_param_gather)
        gather_wait(z);
}

void gather_wait(struct zero *z)
{
    for (size_t i = 0; i < z->split.n; i++)
        wait_for_bucket(z, i);
}

/* ---- gradients --------------------------------------------------------------------------- */

struct tensor gradient_of(const struct zero *z, const struct param *p)
{
    int64_t at = z->split.stage > 1 ? z->grad_slots.place[p - z->params->at] : p->offset;
    return tensor_rows(z->split.stage > 1 ? z->grad_slots.t : z->grads, at, p->count);
}

/* What has been reduced joins what is kept. */
static void settle_slot(struct zero *z, struct unit_slot *slot)
{
    if (!slot->pending)
        return;
    slot_wait(z, slot);
    for (int i = 0; i < UNIT_PARTS; i++) {
        enum unit_part part = (enum unit_part)i;
        bool lost = part == PART_EXPERTS && FAULT("experts_accumulate");
        if (bucket_of(z, slot->unit, part))
            op_copy(z->ops, &(struct copy_args){.y = kept_of(z, z->grads, slot->unit, part),
                                                .x = share_in(z, &z->grad_slots, slot->unit, part),
                                                .accumulate = !FAULT("zero_accumulate") && !lost});
    }
    slot->unit = UNIT_NONE;
}

void settle_gradients(struct zero *z)
{
    for (int i = 0; i < UNIT_SLOTS; i++)
        settle_slot(z, &z->grad_slots.slot[i]);
}

static void unit_is_added(void *arg, int unit)
{
    struct zero *z = arg;
    struct unit_slot *slot = z->split.stage > 1 ? slot_of(z, &z->grad_slots, unit) : NULL;
    if (!slot || (slot->unit == unit && !slot->pending))
        return;
    settle_slot(z, slot);
    BUG_ON(slot->unit != UNIT_NONE, "unit %d comes before %d is complete", unit, slot->unit);
    for (int i = 0; i < UNIT_PARTS; i++)
        if (bucket_of(z, unit, (enum unit_part)i))
            op_fill(z->ops,
                    &(struct fill_args){.y = whole_in(z, &z->grad_slots, unit, (enum unit_part)i),
                                        .value = 0});
    slot->unit = unit;
}

static void unit_is_done(void *arg, int unit)
{
    struct zero *z = arg;
    if (z->split.stage < 2) {
        reduce_unit(z, unit);
        return;
    }
    struct unit_slots *s = &z->grad_slots;
    struct unit_slot *slot = slot_of(z, s, unit);
    reduce_over_tensor_ranks(z, unit);
    for (int i = 0; i < UNIT_PARTS; i++) {
        enum unit_part part = (enum unit_part)i;
        slot->ticket[i] = (struct comm_ticket){0};
        if (bucket_of(z, unit, part))
            slot->ticket[i] =
                comm_reduce_scatter(z->comm, sharing_group(part), share_in(z, s, unit, part),
                                    whole_in(z, s, unit, part), REDUCE_SUM);
    }
    slot->pending = true;
    if (!z->overlap_grad_reduce)
        settle_slot(z, slot);
}

/* ---- memory ------------------------------------------------------------------------------ */

struct model_units zero_functions(struct zero *z)
{
    return (struct model_units){
        .use = unit_is_used, .add = unit_is_added, .done = unit_is_done, .arg = z};
}

/* Parts of which there are several copies. */
static void find_buckets(struct zero *z)
{
    for (int unit = 0; unit <= last_unit(z); unit++)
        for (int part = 0; part < UNIT_PARTS; part++)
            z->bucket[unit][part] = -1;
    for (size_t i = 0; z->split.stage > 1 && i < z->split.n; i++) {
        const struct param *p = &z->params->at[z->split.bucket[i].param];
        if (z->split.bucket[i].shares > 1)
            z->bucket[zero_unit_of(z->params, p)][unit_part_of(z, p)] = (int)i;
    }
}

void zero_take(struct zero *z)
{
    int ahead = z->overlap_param_gather ? UNIT_SLOT_LAYERS : UNIT_SLOT_LAYERS - 1;
    enum dtype grad = z->ops->grad;
    if (!z->added) {
        size_t units = (size_t)z->spec->layers + 2;
        z->ticket = mem_new(z->split.n + 1, sizeof(*z->ticket));
        z->issued = mem_new(z->split.n + 1, sizeof(*z->issued));
        z->bucket = mem_new(units, sizeof(*z->bucket));
        z->added = mem_new(units, sizeof(*z->added));
        z->complete = mem_new((size_t)z->params->n + 1, sizeof(*z->complete));
    }
    find_buckets(z);
    z->weights = z->split.stage == 3
                     ? slots_take(z, &z->weight_slots, ahead, z->parameters, z->real)
                     : slab_1d(z->parameters, z->real, z->split.elements);
    if (z->trains)
        z->grads = z->split.stage > 1
                       ? slots_take(z, &z->grad_slots, UNIT_SLOT_LAYERS - 1, z->gradients, grad)
                       : slab_1d(z->gradients, grad, z->split.elements);
}

/* Views of a flat tensor, or of what is kept and the slots. */
static void bind(const struct zero *z, struct stage stage, const struct unit_slots *s,
                 struct tensor flat, struct weights *ret)
{
    weights_bind(ret, z->params, stage, s->place ? s->t : flat, s->place);
}

void zero_bind(const struct zero *z, struct stage stage, struct weights *w, struct weights *g)
{
    bind(z, stage, &z->weight_slots, z->weights, w);
    if (z->trains)
        bind(z, stage, &z->grad_slots, z->grads, g);
}

struct slots_whole slots_whole(const struct unit_slots *s)
{
    struct slots_whole w = {0};
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

void zero_finish(struct zero *z)
{
    free(z->weight_slots.place);
    free(z->grad_slots.place);
    free(z->ticket);
    free(z->issued);
    free(z->bucket);
    free(z->added);
    free(z->complete);
    zero_split_finish(&z->split);
    *z = (struct zero){0};
}

void zero_begin(struct zero *z, int64_t micros)
{
    z->micros = micros;
    z->early = 0;
    memset(z->added, 0, ((size_t)z->spec->layers + 2) * sizeof(*z->added));
    memset(z->complete, 0, (size_t)z->params->n * sizeof(*z->complete));
}

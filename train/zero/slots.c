/* SPDX-License-Identifier: Apache-2.0 */
#include "train/zero/slots.h"

#include "base/core/mem.h"
#include "train/zero/zero.h"

int slots_last_unit(const struct zero *z)
{
    return (int)z->spec->layers + 1;
}

/* NULL: the unit has no such part, or the rank keeps all of it. */
const struct zero_bucket *slots_bucket(const struct zero *z, int unit, enum unit_part part)
{
    int i = z->bucket[unit][part];
    return i < 0 ? NULL : &z->split.bucket[i];
}

enum unit_part slots_param_part(const struct zero *z, const struct param *p)
{
    return p->offset >= z->params->experts ? PART_EXPERTS : PART_SHARED;
}

enum group slots_group(enum unit_part part)
{
    return part == PART_EXPERTS ? GROUP_EDP : GROUP_SHARD;
}

static int64_t unit_size(const struct zero *z, int unit, enum unit_part part)
{
    const struct zero_bucket *b = slots_bucket(z, unit, part);
    return b ? b->range.end - b->range.begin : 0;
}

static int slot_number(const struct zero *z, const struct unit_slots *s, int unit)
{
    bool end = unit == slots_last_unit(z);
    if (unit == UNIT_EMBED || (end && !z->spec->tied))
        return s->layers;
    return end ? s->layers + 1 : (unit - 1) % s->layers;
}

struct unit_slot *slots_find(const struct zero *z, struct unit_slots *s, int unit)
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
        enum unit_part part = slots_param_part(z, p);
        int unit = zero_unit_of(z->params, p);
        const struct zero_bucket *b = slots_bucket(z, unit, part);
        s->place[i] =
            b ? slots_find(z, s, unit)->at[part] + p->offset - b->range.begin : place_of_kept(z, p);
    }
}

/* Cuts what is kept, which is returned, and the slots. */
struct tensor slots_take(const struct zero *z, struct unit_slots *s, int layers, struct slab *slab,
                         enum dtype d)
{
    int64_t all = z->split.kept;
    s->layers = layers;
    for (int i = 0; i < UNIT_SLOTS; i++)
        s->slot[i] = (struct unit_slot){.unit = UNIT_NONE};
    for (int unit = 0; unit <= slots_last_unit(z); unit++)
        for (int part = 0; part < UNIT_PARTS; part++) {
            int64_t size = unit_size(z, unit, (enum unit_part)part);
            struct unit_slot *slot = slots_find(z, s, unit);
            slot->size[part] = slot->size[part] > size ? slot->size[part] : size;
        }
    for (int i = 0; i < UNIT_SLOTS; i++)
        for (int part = 0; part < UNIT_PARTS; all += s->slot[i].size[part++])
            s->slot[i].at[part] = all;
    s->t = slab_1d(slab, d, all);
    slots_place(z, s);
    return tensor_rows(s->t, 0, z->split.kept);
}

void slots_drop(struct unit_slots *s)
{
    for (int i = 0; i < UNIT_SLOTS; i++)
        s->slot[i].unit = UNIT_NONE;
}

/* A part of the unit in its slot, and this rank's share of it there. */
struct tensor slots_part(const struct zero *z, const struct unit_slots *s, int unit,
                         enum unit_part part)
{
    return tensor_rows(s->t, s->slot[slot_number(z, s, unit)].at[part], unit_size(z, unit, part));
}

struct tensor slots_share(const struct zero *z, const struct unit_slots *s, int unit,
                          enum unit_part part)
{
    const struct zero_bucket *b = slots_bucket(z, unit, part);
    int64_t each = unit_size(z, unit, part) / b->shares;
    return tensor_rows(slots_part(z, s, unit, part), each * b->at, each);
}

/* What this rank keeps of it. */
struct tensor slots_kept(const struct zero *z, struct tensor t, int unit, enum unit_part part)
{
    size_t i = z->split.n - 1 - (size_t)z->bucket[unit][part];
    struct zero_piece p = zero_piece(&z->split, i);
    return tensor_rows(t, zero_place(&z->split, t.size[0], p), p.end - p.begin);
}

void slots_wait(struct zero *z, struct unit_slot *s)
{
    for (int part = 0; part < UNIT_PARTS && s->pending; part++)
        comm_wait(z->comm, s->ticket[part]);
    s->pending = false;
}

/* Parts of which there are several copies. */
void slots_find_buckets(struct zero *z)
{
    for (int unit = 0; unit <= slots_last_unit(z); unit++)
        for (int part = 0; part < UNIT_PARTS; part++)
            z->bucket[unit][part] = -1;
    for (size_t i = 0; z->split.stage > 1 && i < z->split.n; i++) {
        const struct param *p = &z->params->at[z->split.bucket[i].param];
        if (z->split.bucket[i].shares > 1)
            z->bucket[zero_unit_of(z->params, p)][slots_param_part(z, p)] = (int)i;
    }
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

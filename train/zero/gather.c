/* SPDX-License-Identifier: Apache-2.0 */
#include "train/zero/gather.h"

#include "base/core/fault.h"

static void issue_unit(struct zero *z, int unit)
{
    struct unit_slots *s = &z->weight_slots;
    struct unit_slot *slot = slots_find(z, s, unit);
    if (slot->unit == unit)
        return;
    slots_wait(z, slot);
    slot->unit = unit;
    slot->pending = true;
    for (int i = 0; i < UNIT_PARTS; i++) {
        enum unit_part part = (enum unit_part)i;
        slot->ticket[i] = (struct comm_ticket){0};
        if (slots_bucket(z, unit, part))
            slot->ticket[i] =
                comm_all_gather(z->comm, slots_group(part), slots_part(z, s, unit, part),
                                slots_kept(z, z->weights, unit, part));
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

void gather_unit(void *arg, int unit, int ahead)
{
    struct zero *z = arg;
    if (z->split.stage != 3) {
        wait_for_unit(z, unit);
        return;
    }
    issue_unit(z, unit);
    slots_wait(z, slots_find(z, &z->weight_slots, unit));
    if (ahead != UNIT_NONE && z->overlap_param_gather)
        issue_unit(z, ahead);
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

/* SPDX-License-Identifier: Apache-2.0 */
#include "train/zero/zero.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/mem.h"
#include "train/zero/gather.h"
#include "train/zero/reduce.h"

struct model_units zero_functions(struct zero *z)
{
    return (struct model_units){
        .use = gather_unit, .add = reduce_begin_unit, .done = reduce_end_unit, .arg = z};
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
    slots_find_buckets(z);
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

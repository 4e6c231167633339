/* SPDX-License-Identifier: Apache-2.0 */
#include "train/optim/optim.h"

#include "base/core/fault.h"

void optim_take(struct optim *o, struct slab *optimizer, struct slab *activations, enum dtype real)
{
    o->m = slab_1d(optimizer, real, o->params->elements);
    o->v = slab_1d(optimizer, real, o->params->elements);
    o->total = slab_1d(activations, DTYPE_F64, 1);
    o->norm = slab_1d(activations, DTYPE_F64, 1);
    o->factor = slab_1d(activations, DTYPE_F64, 1);
    o->skip = slab_1d(activations, DTYPE_I32, 1);
}

static struct tensor part(struct tensor flat, const struct param *p)
{
    return tensor_rows(flat, p->offset, p->count);
}

void optim_step(struct optim *o, struct ops *ops, struct comm *comm, double lr, int64_t step)
{
    op_fill(ops, &(struct fill_args){.y = o->total, .value = 0});
    op_sumsq(ops, &(struct sumsq_args){.total = o->total, .x = o->grads});
    comm_all_reduce(comm, GROUP_TP, o->total, REDUCE_SUM);
    comm_wait(comm, GROUP_TP);
    op_clip(ops, &(struct clip_args){.total = o->total,
                                     .norm = o->norm,
                                     .factor = o->factor,
                                     .skip = o->skip,
                                     .max_norm = o->clip});
    for (int i = 0; i < o->params->n; i++) {
        const struct param *p = &o->params->at[i];
        if (!p->trained)
            continue;
        bool decay = FAULT("decay_mask") ? !p->decay : p->decay;
        op_adamw(ops, &(struct adamw_args){.p = part(o->weights, p),
                                           .g = part(o->grads, p),
                                           .m = part(o->m, p),
                                           .v = part(o->v, p),
                                           .factor = o->factor,
                                           .skip = o->skip,
                                           .lr = lr,
                                           .beta1 = o->beta1,
                                           .beta2 = o->beta2,
                                           .eps = o->eps,
                                           .decay = decay ? o->decay : 0,
                                           .step = step});
    }
}

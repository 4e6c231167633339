/* SPDX-License-Identifier: Apache-2.0 */
#include "train/ops/cpu/ref.h"

#include "base/core/fault.h"
#include "train/ops/dropout.h"

/* Row of the table that has `id`; NULL: it is not here. */
static real *table_row(struct tensor table, int32_t id, bool shard, int64_t first)
{
    int64_t i = id - (shard ? first : 0);
    return shard && (i < 0 || i >= table.size[0]) ? NULL : row(table, i);
}

static double embed_scale(double scale)
{
    return scale != 0 ? scale : 1;
}

void REF(embed)(struct ops *o, const void *args, void *scratch)
{
    const struct embed_args *a = args;
    int64_t n = a->y.size[0], width = a->y.size[1];
    (void)o;
    (void)scratch;
    for (int64_t i = 0; i < n; i++) {
        const real *tok = table_row(a->tok, ints(a->id)[i], a->shard, a->first);
        const real *pos = tensor_none(a->pos) ? NULL : row(a->pos, ints(a->position)[i]);
        for (int64_t j = 0; j < width; j++) {
            double sum =
                (tok ? (double)tok[j] * embed_scale(a->scale) : 0) + (pos ? (double)pos[j] : 0);
            if (a->noise > 0)
                sum +=
                    drop_noise_at(a->drop, a->noise, drop_element(a->drop, i, width) + (uint64_t)j);
            row(a->y, i)[j] = (real)(sum * drop_at(a->drop, i, j, width));
        }
    }
}

void REF(embed_bwd)(struct ops *o, const void *args, void *scratch)
{
    const struct embed_bwd_args *a = args;
    int64_t n = a->dy.size[0], width = a->dy.size[1];
    (void)o;
    (void)scratch;
    for (int64_t i = 0; i < n; i++) {
        real *dtok = NULL;
        if (!tensor_none(a->dtok))
            dtok = table_row(a->dtok, ints(a->id)[i], a->shard, a->first);
        real *dpos = tensor_none(a->dpos) ? NULL : row(a->dpos, ints(a->position)[i]);
        for (int64_t j = 0; j < width; j++) {
            real g = (real)((double)row(a->dy, i)[j] * drop_at(a->drop, i, j, width));
            if (dtok)
                dtok[j] = (FAULT("embed_bwd") ? 0 : dtok[j]) +
                          (real)((double)g * (FAULT("embed_scale") ? 1 : embed_scale(a->scale)));
            if (dpos)
                dpos[j] += g;
        }
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "train/stages.h"

#include <stdlib.h>

#include "base/core/mem.h"
#include "train/schedule/balance.h"

/* Virtual stages of each rank; 0: not given. */
static int chunks_of(const struct stage_flags *f, int64_t layers, int pp, int *ret, struct err *e)
{
    int64_t counted = layers + f->embedding + f->loss, each = f->virtual_layers;
    *ret = (int)f->chunks;
    if (!each)
        return 0;
    if (f->chunks)
        return err_set(e, ERR_USAGE,
                       "--num-layers-per-virtual-pipeline-stage and "
                       "--num-virtual-stages-per-pipeline-rank exclude each other");
    if (f->first >= 0 || f->last >= 0)
        return err_set(e, ERR_USAGE,
                       "--num-layers-per-virtual-pipeline-stage: with "
                       "--decoder-first-pipeline-num-layers or --decoder-last-pipeline-num-layers "
                       "expected --num-virtual-stages-per-pipeline-rank");
    if (counted % (pp * each))
        return err_set(e, ERR_USAGE,
                       "--num-layers-per-virtual-pipeline-stage %lld: %lld layers cannot be shared "
                       "out to --pipeline-model-parallel-size %d",
                       (long long)each, (long long)counted, pp);
    *ret = (int)(counted / (pp * each));
    return 0;
}

int stages_share(const struct stage_flags *f, int64_t layers, struct layout *l,
                 int64_t **ret_layers, struct err *e)
{
    int pp = l->mesh.pp, chunks;
    struct layer_range *range = NULL;
    *ret_layers = NULL;
    int code = chunks_of(f, layers, pp, &chunks, e);
    if (code)
        return code;
    const struct balance b = {.layers = layers,
                              .pp = pp,
                              .chunks = chunks,
                              .list = f->balance,
                              .first = f->first,
                              .last = f->last,
                              .embedding = f->embedding,
                              .loss = f->loss,
                              .method = f->method,
                              .layout = f->layout};
    code = balance_layers(&b, &range, &l->chunks, e);
    if (code || !balance_uneven(&b)) {
        free(range);
        return code;
    }
    int64_t *share = mem_new((size_t)pp * (size_t)l->chunks, sizeof(*share));
    for (int i = 0; i < pp * l->chunks; i++)
        share[i] = range[i].count;
    free(range);
    l->layers = *ret_layers = share;
    return 0;
}

void stages_describe(const struct layout *l, int64_t layers, struct buf *out)
{
    for (int i = 0; i < l->mesh.pp * l->chunks; i++)
        buf_addf(out, "%s%d", i ? "-" : "",
                 layout_stage(*l, layers, i % l->mesh.pp, i / l->mesh.pp).layers);
}

/* ---- recomputation ----------------------------------------------------------------------- */

enum { GRANULARITY_NONE, GRANULARITY_SELECTIVE, GRANULARITY_FULL };
enum { METHOD_NONE, METHOD_UNIFORM, METHOD_BLOCK };

static int full_recompute(const struct recompute_flags *f, int64_t layers, struct recompute *ret,
                          struct err *e)
{
    int method = f->checkpoint && !f->method ? METHOD_UNIFORM : f->method;
    int64_t each = f->checkpoint && !f->layers ? 1 : f->layers;
    if (method == METHOD_NONE)
        return err_set(
            e, ERR_USAGE,
            "--recompute-granularity full: expected --recompute-method uniform or block");
    if (each < 1 || each > layers)
        return err_set(e, ERR_USAGE,
                       "--recompute-granularity full: expected --recompute-num-layers from 1 to "
                       "%lld",
                       (long long)layers);
    ret->kind = method == METHOD_UNIFORM ? RECOMPUTE_UNIFORM : RECOMPUTE_BLOCK;
    ret->layers = (int)each;
    return 0;
}

int stages_recompute(const struct recompute_flags *f, const struct layout *l, int64_t layers,
                     struct recompute *ret, struct err *e)
{
    bool selective = f->granularity == GRANULARITY_SELECTIVE || f->activations;
    bool full = f->granularity == GRANULARITY_FULL || f->checkpoint;
    int code = 0;
    *ret = (struct recompute){.distribute = f->distribute};
    if (selective && full)
        return err_set(e, ERR_USAGE, "selective and full recomputation exclude each other");
    if (!full && f->method)
        return err_set(e, ERR_USAGE, "--recompute-method: expected --recompute-granularity full");
    if (selective)
        ret->kind = RECOMPUTE_SELECTIVE;
    else if (full)
        code = full_recompute(f, layers, ret, e);
    if (code || !f->distribute)
        return code;
    if (!full)
        return err_set(e, ERR_USAGE,
                       "--distribute-saved-activations: expected --recompute-granularity full");
    if (l->mesh.tp == 1)
        return err_set(e, ERR_USAGE,
                       "--distribute-saved-activations: expected a --tensor-model-parallel-size "
                       "above 1");
    if (l->sequence)
        return err_set(e, ERR_USAGE,
                       "--distribute-saved-activations: with --sequence-parallel each process has "
                       "a part of them already");
    return 0;
}

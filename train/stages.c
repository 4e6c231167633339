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

/* SPDX-License-Identifier: Apache-2.0 */
#include "train/model/model.h"

#include <stdlib.h>

#include "base/core/mem.h"

static struct tensor view(const struct params *p, struct tensor flat, enum param_kind kind,
                          int layer)
{
    const struct param *row = params_find(p, kind, layer);
    if (!row)
        return (struct tensor){0};
    struct tensor t = tensor_rows(flat, row->offset, row->count);
    return tensor_nd(t.data, t.dtype, row->rank, row->size);
}

void weights_bind(struct weights *w, const struct params *p, struct stage stage, struct tensor flat)
{
    if (!w->layer)
        w->layer = mem_new((size_t)stage.layers + 1, sizeof(*w->layer));
    w->embed = view(p, flat, PARAM_EMBED, -1);
    w->position = view(p, flat, PARAM_POSITION, -1);
    w->norm = view(p, flat, PARAM_NORM, -1);
    w->norm_b = view(p, flat, PARAM_NORM_B, -1);
    w->head = p->spec.tied ? w->embed : view(p, flat, PARAM_HEAD, -1);
    for (int i = 0, l = stage.first; i < stage.layers; i++, l++)
        w->layer[i] = (struct layer_weights){
            .norm1 = view(p, flat, PARAM_NORM1, l),
            .norm1_b = view(p, flat, PARAM_NORM1_B, l),
            .qkv = view(p, flat, PARAM_QKV, l),
            .qkv_b = view(p, flat, PARAM_QKV_B, l),
            .out = view(p, flat, PARAM_OUT, l),
            .out_b = view(p, flat, PARAM_OUT_B, l),
            .norm2 = view(p, flat, PARAM_NORM2, l),
            .norm2_b = view(p, flat, PARAM_NORM2_B, l),
            .up = view(p, flat, PARAM_UP, l),
            .up_b = view(p, flat, PARAM_UP_B, l),
            .down = view(p, flat, PARAM_DOWN, l),
            .down_b = view(p, flat, PARAM_DOWN_B, l),
        };
}

void weights_finish(struct weights *w)
{
    free(w->layer);
    *w = (struct weights){0};
}

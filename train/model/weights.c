/* SPDX-License-Identifier: Apache-2.0 */
#include "train/model/model.h"

#include <stdlib.h>

#include "base/core/mem.h"

/* Where parameters lie. */
struct flat {
    const struct params *params;
    struct tensor t;
    const int64_t *place;
};

static struct tensor view(const struct flat *f, enum param_kind kind, int layer)
{
    const struct param *row = params_find(f->params, kind, layer);
    if (!row)
        return (struct tensor){0};
    int64_t at = f->place ? f->place[row - f->params->at] : row->offset;
    struct tensor t = tensor_rows(f->t, at, row->count);
    return tensor_nd(t.data, t.dtype, row->rank, row->size);
}

/* Matrices of a layer's experts, which lie at equal distances. */
static struct tensor view_experts(const struct flat *f, enum param_kind kind, int layer)
{
    const struct params *p = f->params;
    const struct param *row = params_find(p, kind, layer), *end = row;
    if (!row)
        return (struct tensor){0};
    while (end < p->at + p->n && end->kind == kind && end->layer == layer)
        end++;
    int64_t n = end - row, each = n > 1 ? row[1].offset - row->offset : row->count;
    struct tensor first = view(f, kind, layer);
    struct tensor t =
        tensor_nd(first.data, first.dtype, 3, (const int64_t[]){n, row->size[0], row->size[1]});
    t.stride = each;
    return t;
}

void weights_bind(struct weights *w, const struct params *p, struct stage stage, struct tensor flat,
                  const int64_t *place)
{
    const struct flat f = {p, flat, place};
    if (!w->layer)
        w->layer = mem_new((size_t)stage.layers + 1, sizeof(*w->layer));
    w->embed = view(&f, PARAM_EMBED, -1);
    w->position = view(&f, PARAM_POSITION, -1);
    w->norm = view(&f, PARAM_NORM, -1);
    w->norm_b = view(&f, PARAM_NORM_B, -1);
    w->head = p->spec.tied ? w->embed : view(&f, PARAM_HEAD, -1);
    for (int i = 0, l = stage.first; i < stage.layers; i++, l++)
        w->layer[i] = (struct layer_weights){
            .norm1 = view(&f, PARAM_NORM1, l),
            .norm1_b = view(&f, PARAM_NORM1_B, l),
            .qkv = view(&f, PARAM_QKV, l),
            .qkv_b = view(&f, PARAM_QKV_B, l),
            .q_norm = view(&f, PARAM_Q_NORM, l),
            .k_norm = view(&f, PARAM_K_NORM, l),
            .out = view(&f, PARAM_OUT, l),
            .out_b = view(&f, PARAM_OUT_B, l),
            .post1 = view(&f, PARAM_POST1, l),
            .post2 = view(&f, PARAM_POST2, l),
            .norm2 = view(&f, PARAM_NORM2, l),
            .norm2_b = view(&f, PARAM_NORM2_B, l),
            .up = view(&f, PARAM_UP, l),
            .up_b = view(&f, PARAM_UP_B, l),
            .down = view(&f, PARAM_DOWN, l),
            .down_b = view(&f, PARAM_DOWN_B, l),
            .shared_up = view(&f, PARAM_SHARED_UP, l),
            .shared_down = view(&f, PARAM_SHARED_DOWN, l),
            .shared_gate = view(&f, PARAM_SHARED_GATE, l),
            .router = view(&f, PARAM_ROUTER, l),
            .expert_up = view_experts(&f, PARAM_EXPERT_UP, l),
            .expert_down = view_experts(&f, PARAM_EXPERT_DOWN, l),
        };
}

void weights_finish(struct weights *w)
{
    free(w->layer);
    *w = (struct weights){0};
}

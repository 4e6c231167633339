/* SPDX-License-Identifier: Apache-2.0 */
#include "train/engine/graphs.h"

#include "base/core/fault.h"
#include "base/core/log.h"
#include "train/engine/rank.h"

bool graphs_wanted(const struct rank_config *c, int64_t tokens, const struct dev_desc *desc)
{
    bool alone = mesh_world(c->layout.mesh) == 1 && c->layout.chunks <= 1;
    if (desc->host || !alone || c->use != MODEL_TRAIN || c->graphs == GRAPHS_OFF)
        return false;
    return c->graphs == GRAPHS_ON || tokens <= GRAPH_TOKENS;
}

/* Kernel by kernel. */
static void launch_kernels(struct rank *r, enum graph_part part, const struct model_pass *p)
{
    double scale = p->train ? 1 : 0;
    if (part == GRAPH_BACKWARD) {
        model_backward(&r->model, p);
        return;
    }
    model_forward(&r->model, p);
    if (FAULT("graph_argument"))
        scale *= 1 + (double)r->at.iteration;
    if (r->model.stage.head)
        model_loss(&r->model, p, tensor_rows(r->totals, 0, 1), scale);
}

/* NULL: there are too many others. */
static struct graph_kind *graph_kind_of(struct graphs *g, const struct model_pass *p)
{
    for (int i = 0; i < g->n; i++) {
        struct graph_kind *k = &g->kind[i];
        if (k->train == p->train && k->n == p->n &&
            (k->sequences == p->sequences || FAULT("graph_sequences")))
            return k;
    }
    if (g->n == GRAPH_KINDS)
        return NULL;
    g->kind[g->n] = (struct graph_kind){.n = p->n, .sequences = p->sequences, .train = p->train};
    return &g->kind[g->n++];
}

static struct dev_graph *record(struct rank *r, enum graph_part part, const struct model_pass *p)
{
    struct dev *d = &r->dev;
    struct dev_graph *ret = NULL;
    struct err e;
    int code = d->fn->capture_begin(d, STREAM_COMPUTE, &e);
    if (!code) {
        launch_kernels(r, part, p);
        code = d->fn->capture_end(d, STREAM_COMPUTE, &ret, &e);
    }
    if (!code)
        return ret;
    r->graphs.on = false;
    log_warn("kernels are launched one by one: a pass could not be recorded: %s", e.msg);
    return NULL;
}

void graphs_pass(struct rank *r, enum graph_part part, const struct model_pass *p)
{
    struct graph_kind *k = r->graphs.on && !r->ops.dry ? graph_kind_of(&r->graphs, p) : NULL;
    if (k && k->ran[part] && !k->recorded[part] && !dev_fault(&r->dev, NULL))
        k->recorded[part] = record(r, part, p);
    if (k && k->recorded[part]) {
        r->dev.fn->replay(&r->dev, STREAM_COMPUTE, k->recorded[part]);
        r->graphs.replays++;
        return;
    }
    launch_kernels(r, part, p);
    if (k)
        k->ran[part] = true;
}

void graphs_finish(struct rank *r)
{
    struct graphs *g = &r->graphs;
    for (int i = 0; i < g->n; i++)
        for (int part = 0; part < GRAPH_PARTS; part++)
            if (g->kind[i].recorded[part])
                r->dev.fn->graph_free(&r->dev, g->kind[i].recorded[part]);
    *g = (struct graphs){0};
}

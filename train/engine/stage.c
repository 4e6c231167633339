/* SPDX-License-Identifier: Apache-2.0 */
#include "train/engine/stage.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/fault.h"
#include "base/core/mem.h"
#include "train/model/context.h"

/* Rows of a micro-batch, of all context-parallel ranks. */
static int64_t all_rows(const struct rank *r)
{
    return r->config.micro_batch * r->config.seq_length;
}

static void take_slot(const struct rank *r, struct slab *s, struct stage_slot *slot)
{
    size_t each = sizeof(int32_t), bytes = (size_t)r->model.tokens * each;
    *slot = (struct stage_slot){.tokens = slab_bytes(s, bytes),
                                .labels = slab_bytes(s, bytes),
                                .position = slab_bytes(s, bytes),
                                .mask = slab_bytes(s, bytes),
                                .values = slab_bytes(s, tensor_bytes(r->model.a.micro))};
    if (!r->config.documents)
        return;
    slot->start = slab_bytes(s, (size_t)(all_rows(r) + 1) * each);
    slot->lengths = slab_bytes(s, (size_t)all_rows(r) * each);
    if (r->model.context.cp > 1)
        slot->context = slab_bytes(s, tensor_bytes(r->model.a.context));
}

void stage_take(struct rank *r, struct slab *staging)
{
    for (int i = 0; i < STAGE_SLOTS; i++)
        take_slot(r, staging, &r->stage[i]);
    if (r->model.context.cp > 1)
        r->numbers = slab_bytes(staging, (size_t)r->model.tokens * sizeof(*r->numbers));
}

struct model_pass rank_pass(const struct rank *r, const struct batch *b, bool train)
{
    int64_t length = r->config.seq_length, rows = r->config.micro_batch;
    int64_t sequences = r->config.documents ? b->nstretch : rows;
    return (struct model_pass){.n = r->model.tokens,
                               .sequences = sequences,
                               .max_len = length,
                               .parts = context_rows_most(r->model.context, sequences),
                               .train = train,
                               .even = !r->config.documents && r->model.context.cp == 1};
}

/* ---- what never changes ------------------------------------------------------------------ */

static void fill_context(struct rank *r, const int32_t *start)
{
    const struct context *c = &r->model.context;
    struct tensor to = r->model.a.context;
    int32_t *v = mem_new((size_t)to.size[0], sizeof(*v));
    for (int64_t i = 0; i < r->model.tokens; i++)
        r->numbers[i] = (int32_t)context_row(*c, i);
    context_fill(*c, r->model.layout, r->config.spec.layers, start, c->sequences, v, to.size[0]);
    rank_put(r, to, v);
    rank_put(r, r->model.a.row, r->numbers);
    r->dev.fn->sync(&r->dev, STREAM_COMPUTE);
    free(v);
}

/* Sequences of one length, side by side. */
void stage_fill(struct rank *r)
{
    int64_t rows = r->config.micro_batch, length = r->config.seq_length, n = r->model.tokens;
    int32_t *v = mem_new((size_t)(rows * length + rows + 1), sizeof(*v));
    for (int64_t s = 0; s <= rows; s++)
        v[s] = (int32_t)(s * length);
    rank_put(r, r->model.a.q_start, v);
    rank_put(r, r->model.a.k_start, v);
    if (r->model.context.cp > 1)
        fill_context(r, v);
    r->dev.fn->sync(&r->dev, STREAM_COMPUTE);
    for (int64_t i = 0; i < n; i++)
        v[i] = (int32_t)((r->numbers ? r->numbers[i] : i) % length);
    rank_put(r, r->model.a.position, v);
    r->dev.fn->sync(&r->dev, STREAM_COMPUTE);
    for (int64_t s = 0; s < rows; s++)
        v[s] = (int32_t)length;
    rank_put(r, r->model.a.k_len, v);
    r->dev.fn->sync(&r->dev, STREAM_COMPUTE);
    free(v);
}

/* ---- one micro-batch --------------------------------------------------------------------- */

static void stage_stretches(struct rank *r, const struct batch *b, const struct stage_slot *slot)
{
    const struct acts *a = &r->model.a;
    uint32_t n = b->nstretch;
    for (uint32_t s = 0; b->start && s < n; s++) /* the planner's batch has none */
        slot->lengths[s] = b->start[s + 1] - b->start[s];
    if (b->start)
        memcpy(slot->start, b->start, (n + 1) * sizeof(*slot->start));
    rank_put(r, tensor_rows(a->q_start, 0, n + 1), slot->start);
    rank_put(r, tensor_rows(a->k_start, 0, n), slot->start);
    rank_put(r, tensor_rows(a->k_len, 0, n), slot->lengths);
    if (!slot->context)
        return;
    if (b->start)
        context_fill(r->model.context, r->model.layout, r->config.spec.layers, b->start, n,
                     slot->context, a->context.size[0]);
    rank_put(r, a->context, slot->context);
}

/* This rank's rows of four bytes each. */
static void pick_rows(const struct rank *r, void *to, const void *from)
{
    int64_t n = r->model.tokens;
    if (!r->numbers) {
        memcpy(to, from, (size_t)n * sizeof(int32_t));
        return;
    }
    for (int64_t i = 0; i < n; i++)
        memcpy((int32_t *)to + i, (const int32_t *)from + r->numbers[i], sizeof(int32_t));
}

/* Labels in the loss of n rows of the batch, from row `at` on. */
static double counted(const struct batch *b, int64_t at, int64_t n)
{
    double sum = 0;
    for (int64_t i = at; i < at + n; i++)
        sum += (double)b->loss_mask[i];
    return sum;
}

static double fill_values(const struct rank *r, struct micro_values *to, const struct batch *b,
                          bool weighs)
{
    const struct micro_values *before = r->stage[(r->staged + 1) % STAGE_SLOTS].values;
    int64_t n = model_merged(&r->model), each = (int64_t)b->rows * b->seq_length / n;
    double all = 0;
    for (int64_t i = 0; i < n; i++) {
        double labels = counted(b, i * each, each);
        uint64_t row0 = b->first * (uint64_t)r->config.seq_length + (uint64_t)(i * each);
        all += labels;
        to[i] =
            (struct micro_values){.divisor = weighs ? rank_loss_divisor(r, labels, b->there) : 1,
                                  .origin = {.seed = r->config.seed, .row0 = row0}};
        if (FAULT("value_seed"))
            to[i].origin.seed = 1;
    }
    if (FAULT("value_divisor") && before->divisor > 0)
        to->divisor = before->divisor;
    if (FAULT("value_row0"))
        to->origin.row0 = before->origin.row0;
    for (int64_t i = 1; i < n && FAULT("merged_divisor"); i++)
        to[i].divisor = to[0].divisor;
    return all;
}

/*
 * The loader fills its batches again while the device may still read: so they leave from a slot of
 * the staging slab, which is filled when the copies of the micro-batch that was in it are over.
 */
double rank_stage(struct rank *r, const struct batch *b, bool weighs)
{
    const struct stage_slot *slot = &r->stage[r->staged];
    const struct acts *a = &r->model.a;
    int event = EVENT_STAGE + r->staged;
    double labels = 1;
    if (b->tokens) { /* the planner's batch has none */
        r->dev.fn->await(&r->dev, event);
        pick_rows(r, slot->tokens, b->tokens);
        pick_rows(r, slot->labels, b->labels);
        pick_rows(r, slot->mask, b->loss_mask);
        pick_rows(r, slot->position, b->position);
        labels = fill_values(r, slot->values, b, weighs);
        if (FAULT("context_positions"))
            for (int64_t i = 0; i < r->model.tokens; i++)
                slot->position[i] = (int32_t)(i % r->config.seq_length);
    }
    rank_put(r, a->id, slot->tokens);
    rank_put(r, a->label, slot->labels);
    rank_put(r, a->mask, slot->mask);
    rank_put(r, a->position, slot->position);
    rank_put(r, a->micro, slot->values);
    if (r->config.documents)
        stage_stretches(r, b, slot);
    if (b->tokens)
        r->dev.fn->record(&r->dev, STREAM_COMPUTE, event);
    r->staged = (r->staged + 1) % STAGE_SLOTS;
    return labels;
}

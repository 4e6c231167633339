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
    return r->effective.micro_batch * r->config.seq_length;
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

/* ---- padding that is not computed -------------------------------------------------------- */

/* Tokens of a pass are a multiple of this, which products of matrices like. */
enum { PASS_TOKENS = 64 };

/*
 * Whether the tokens of a micro-batch are put side by side without the padding of its rows. Not
 * where a token's row in the micro-batch has a meaning of its own: for the masks of dropout,
 * the noise of embeddings, and for ranks that hold a part of each sequence. Stages of a pipeline
 * send each other passes of one size, and experts' losses are means over all rows.
 */
static bool squeezes(const struct rank *r, bool train)
{
    const struct rank_config *c = &r->config;
    bool drops =
        train && (c->spec.hidden_dropout > 0 || c->spec.attention_dropout > 0 || c->noise > 0);
    return c->documents && c->layout.mesh.pp == 1 && c->layout.chunks <= 1 &&
           r->model.context.cp == 1 && model_merged(&r->model) == 1 && !c->spec.experts && !drops;
}

/* The pass that a micro-batch is: tokens, and segments, the last of which is `rest` tokens of
 * padding if there are any. */
struct squeezed {
    int64_t n, sequences, rest;
    bool less; /* than all tokens */
};

static bool is_padding(const struct batch *b, uint32_t segment)
{
    uint32_t begin = (uint32_t)b->start[segment];
    return begin % b->seq_length >= b->used[begin / b->seq_length];
}

static struct squeezed squeeze(const struct rank *r, const struct batch *b, bool train)
{
    struct squeezed s = {.n = r->model.tokens,
                         .sequences = r->config.documents ? b->nstretch : r->effective.micro_batch};
    if (!b->tokens || !squeezes(r, train)) /* the planner's batch has none */
        return s;
    int64_t used = 0, unit = PASS_TOKENS * r->config.layout.mesh.tp;
    for (uint32_t q = 0; q < b->rows; q++)
        used += b->used[q];
    int64_t n = used ? (used + unit - 1) / unit * unit : unit;
    if (n >= s.n)
        return s;
    s = (struct squeezed){.n = n, .rest = n - used, .less = true};
    for (uint32_t k = 0; k < b->nstretch; k++)
        s.sequences += !is_padding(b, k);
    s.sequences += s.rest > 0;
    return s;
}

struct model_pass rank_pass(struct rank *r, const struct batch *b, bool train)
{
    struct squeezed s = squeeze(r, b, train);
    r->tokens_passed += b->tokens && train ? r->model.tokens : 0;
    r->tokens_spared += b->tokens && train ? r->model.tokens - s.n : 0;
    return (struct model_pass){.n = s.n,
                               .sequences = s.sequences,
                               .max_len = r->config.seq_length,
                               .parts = context_rows_most(r->model.context, s.sequences),
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
    int64_t rows = r->effective.micro_batch, length = r->config.seq_length, n = r->model.tokens;
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

/* Where the segments begin, without those that are left out; `n` of them. */
static void put_starts(const struct batch *b, const struct squeezed *s,
                       const struct stage_slot *slot)
{
    int32_t at = 0;
    int64_t n = 0;
    for (uint32_t k = 0; k < b->nstretch; k++) {
        if (s->less && is_padding(b, k))
            continue;
        slot->start[n] = at;
        slot->lengths[n++] = b->start[k + 1] - b->start[k];
        at += b->start[k + 1] - b->start[k];
    }
    if (s->rest) {
        slot->start[n] = at;
        slot->lengths[n] = (int32_t)s->rest;
    }
    slot->start[s->sequences] = at + (int32_t)s->rest;
}

static void stage_stretches(struct rank *r, const struct batch *b, const struct squeezed *s,
                            const struct stage_slot *slot)
{
    const struct acts *a = &r->model.a;
    int64_t n = s->sequences;
    if (b->start) /* the planner's batch has none */
        put_starts(b, s, slot);
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
static void pick_rows(const struct rank *r, const struct batch *b, const struct squeezed *s,
                      void *to, const void *from)
{
    int64_t n = r->model.tokens, at = 0;
    size_t each = sizeof(int32_t);
    if (s->less) {
        for (uint32_t q = 0; q < b->rows; at += b->used[q++])
            memcpy((int32_t *)to + at,
                   (const int32_t *)from + (size_t)(FAULT("squeeze_rows") ? 0 : q) * b->seq_length,
                   b->used[q] * each);
        memset((int32_t *)to + at, 0, (size_t)s->rest * each);
        return;
    }
    if (!r->numbers) {
        memcpy(to, from, (size_t)n * each);
        return;
    }
    for (int64_t i = 0; i < n; i++)
        memcpy((int32_t *)to + i, (const int32_t *)from + r->numbers[i], each);
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
    struct squeezed s = squeeze(r, b, weighs);
    double labels = 1;
    if (b->tokens) { /* the planner's batch has none */
        r->dev.fn->await(&r->dev, event);
        pick_rows(r, b, &s, slot->tokens, b->tokens);
        pick_rows(r, b, &s, slot->labels, b->labels);
        pick_rows(r, b, &s, slot->mask, b->loss_mask);
        pick_rows(r, b, &s, slot->position, b->position);
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
        stage_stretches(r, b, &s, slot);
    if (b->tokens)
        r->dev.fn->record(&r->dev, STREAM_COMPUTE, event);
    r->staged = (r->staged + 1) % STAGE_SLOTS;
    return labels;
}

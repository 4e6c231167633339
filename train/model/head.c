/* SPDX-License-Identifier: Apache-2.0 */
#include "train/model/model.h"

#include <math.h>

#include "base/core/fault.h"
#include "train/ops/values.h"

/*
 * The head and its loss, by chunks of rows. Logits are the largest activation of a model: rows *
 * vocabulary, 3.9 GiB for 8,192 tokens and 128,256 ids in float. So those of a chunk exist in
 * workspace only: they are computed, overwritten by their own gradient, and used for dy and the
 * head's gradient before the next chunk. The backward pass of the head therefore belongs to the
 * forward pass here.
 *
 * That is why the weight of the loss is there with the micro-batch: the gradient of the logits is
 * (softmax - one-hot) * mask * weight, and the weight, the derivative of the step's objective by
 * one label's loss (1 / (n * micros), train/engine/step.c), must be known before any loss is.
 * Gradients carry the factor from here down to the embedding. `total` is the plain sum of losses,
 * without it.
 *
 * Rows that pad the vocabulary for the mesh take no part: the softmax is over the true vocabulary,
 * and their weights get no gradient. Under tensor parallelism a rank has the logits of its part of
 * the vocabulary, which may be none; what the softmax needs of all of them, two numbers a token and
 * the label's logit, is reduced, and dy is a partial sum.
 */

/* A chunk is large enough for a matrix product to run at full speed, small beside the weights. On a
 * GPU each chunk reads and writes the gradient of the head once more, which takes as long as the
 * products of some 200 rows: chunks are larger there, and alike. */
enum {
    CHUNK_BYTES = 256 << 20,
    CHUNK_GPU = 4,
    CHUNK_LEAST = 64,
    CHUNK_GPU_ROWS = 8192,
    CHUNK_TILE = 128
};

/* The same on all tensor-parallel ranks, also on one whose part is smaller: by the largest part. */
static int64_t chunk_rows(const struct model *m, int64_t n)
{
    int64_t part = m->spec->padded_vocab / comm_size(m->comm, GROUP_TP);
    int64_t columns = part < m->spec->vocab ? part : m->spec->vocab;
    bool host = m->ops->dev->desc.host;
    int64_t bytes = host ? CHUNK_BYTES : (int64_t)CHUNK_BYTES * CHUNK_GPU;
    int64_t rows = bytes / (columns * (int64_t)dtype_size(m->ops->real));
    int64_t least = host ? CHUNK_LEAST : CHUNK_GPU_ROWS;
    rows = rows / CHUNK_LEAST * CHUNK_LEAST;
    if (rows < least)
        rows = least;
    if (rows >= n)
        return n;
    if (host)
        return rows;
    int64_t chunks = (n + rows - 1) / rows, each = (n + chunks - 1) / chunks;
    return (each + CHUNK_TILE - 1) / CHUNK_TILE * CHUNK_TILE;
}

static void head_logits(struct model *m, struct tensor y, struct tensor logits)
{
    op_matmul(m->ops,
              &(struct matmul_args){
                  .y = logits, .a = y, .b = tensor_rows(m->w.head, 0, logits.size[1]), .tb = true});
    if (m->spec->head_cap > 0)
        op_cap(m->ops, &(struct cap_args){.x = logits, .cap = (float)m->spec->head_cap});
}

void model_logits(struct model *m, int64_t begin, int64_t rows, struct tensor logits)
{
    head_logits(m, tensor_rows(m->a.y, begin, rows), logits);
}

/* What the softmax of each row needs: [3, rows] in workspace. */
struct row_stats {
    struct tensor max, sum, target; /* [rows] */
    struct tensor both;             /* sum and target as one, for one reduction */
};

static struct row_stats take_stats(struct model *m, int64_t rows)
{
    struct row_stats s = {.max = slab_1d(m->ops->workspace, m->ops->stat, rows),
                          .both = slab_1d(m->ops->workspace, m->ops->stat, 2 * rows)};
    s.sum = tensor_rows(s.both, 0, rows);
    s.target = tensor_rows(s.both, rows, rows);
    return s;
}

static void put(struct model *m, struct tensor t, double value)
{
    op_fill(m->ops, &(struct fill_args){.y = t, .value = value});
}

/* The statistics over the whole vocabulary, from this rank's columns. */
static void reduce_stats(struct model *m, struct xent_stats_args a, struct tensor both)
{
    bool some = a.logits.size[1] > 0;
    if (some) {
        op_xent_stats(m->ops, &a);
    } else {
        put(m, a.max, -INFINITY);
        put(m, both, 0);
    }
    comm_wait(m->comm, comm_all_reduce(m->comm, GROUP_TP, a.max, REDUCE_MAX));
    a.max_given = true;
    if (some)
        op_xent_stats(m->ops, &a);
    comm_wait(m->comm, comm_all_reduce(m->comm, GROUP_TP, both, REDUCE_SUM));
}

/*
 * Rows of y and dy that a chunk has, and its logits: those of the true vocabulary, and `wide` with
 * those of rows that pad it, which a GPU's products take along to be fast. They take no part in the
 * softmax, and their gradients are zeros.
 */
struct chunk {
    int64_t begin, rows, micro; /* which of the micro-batches in the pass it is of */
    struct tensor y, dy, logits, wide;
};

/* Columns of `wide`: rows of the head, as many as fill 128 bytes where there are so many. */
static int64_t wide_columns(const struct model *m, int64_t columns)
{
    int64_t width = (columns + 63) / 64 * 64;
    bool fits = !m->ops->dev->desc.host && width <= m->w.head.size[0];
    return fits ? width : columns;
}

static void chunk_backward(struct model *m, const struct chunk *c)
{
    int64_t columns = c->wide.size[1], pads = columns - c->logits.size[1];
    if (!columns) {
        put(m, c->dy, 0);
        return;
    }
    if (pads)
        put(m, tensor_cols(c->wide, columns - pads, pads), 0);
    op_matmul(m->ops, &(struct matmul_args){
                          .y = c->dy, .a = c->wide, .b = tensor_rows(m->w.head, 0, columns)});
    op_matmul(m->ops, &(struct matmul_args){.y = tensor_rows(m->g.head, 0, columns),
                                            .a = c->wide,
                                            .b = c->y,
                                            .ta = true,
                                            .accumulate = true});
}

static void chunk_loss(struct model *m, const struct model_pass *p, const struct chunk *c,
                       struct tensor total, double scale)
{
    struct row_stats s = take_stats(m, c->rows);
    struct tensor label = tensor_rows(m->a.label, c->begin, c->rows);
    int64_t first = FAULT("head_first") ? 0 : model_vocab(m).first;

    if (c->logits.size[1])
        head_logits(m, c->y, c->wide);
    bool alone = comm_size(m->comm, GROUP_TP) == 1;
    if (!alone)
        reduce_stats(m,
                     (struct xent_stats_args){.logits = c->logits,
                                              .label = label,
                                              .max = s.max,
                                              .sum = s.sum,
                                              .target = s.target,
                                              .first = first},
                     s.both);
    op_xent_loss(m->ops, &(struct xent_loss_args){
                             .logits = c->logits,
                             .label = label,
                             .max = s.max,
                             .sum = s.sum,
                             .target = s.target,
                             .mask = tensor_rows(m->a.mask, c->begin, c->rows),
                             .loss = tensor_rows(m->a.loss, c->begin, c->rows),
                             .total = total,
                             .first = first,
                             .scale = scale,
                             .factor = step_value(m->values, STEP_SCALE),
                             .divisor = tensor_rows(m->a.micro, MICRO_DOUBLES * c->micro, 1),
                             .cap = (float)m->spec->head_cap,
                             .grad = p->train,
                             .alone = alone});
    if (p->train)
        chunk_backward(m, c);
}

void model_loss(struct model *m, const struct model_pass *p, struct tensor total, double scale)
{
    struct slab *ws = m->ops->workspace;
    size_t before = slab_mark(ws);
    int64_t micro = p->train ? p->n / model_merged(m) : p->n, chunk = chunk_rows(m, micro);
    struct comm_ticket all;
    struct tensor y = stream_gather(m, stream_rows(m, p, m->a.y), &all);
    struct tensor dy = {0}, part = {0};
    int unit = m->spec->tied ? UNIT_EMBED : unit_head(m);
    unit_use(m, unit, UNIT_NONE);
    if (p->train) {
        unit_add(m, unit);
        dy = stream_rows(m, p, m->a.dy);
        part = stream_partial(m, dy);
    }
    comm_wait(m->comm, all);
    for (int64_t begin = 0, n; begin < p->n; begin += n) {
        size_t mark = slab_mark(ws);
        int64_t left = micro - begin % micro; /* of the micro-batch */
        n = left < chunk ? left : chunk;
        struct chunk c = {.begin = begin, .rows = n, .micro = begin / micro};
        c.y = tensor_rows(y, begin, c.rows);
        if (p->train)
            c.dy = tensor_rows(part, begin, c.rows);
        int64_t columns = model_vocab(m).count;
        c.wide = slab_2d(ws, m->ops->real, c.rows, wide_columns(m, columns));
        c.logits = tensor_cols(c.wide, 0, columns);
        chunk_loss(m, p, &c, total, scale);
        slab_reset(ws, mark);
    }
    if (p->train)
        comm_wait(m->comm, stream_reduce(m, dy, part));
    slab_reset(ws, before);
}

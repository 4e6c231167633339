/* SPDX-License-Identifier: Apache-2.0 */
#include "train/model/model.h"

/*
 * The head and its loss, by chunks of rows. Logits are the largest activation of a model: rows *
 * vocabulary, 3.9 GiB for 8,192 tokens and 128,256 ids in float. So those of a chunk exist in
 * workspace only: they are computed, overwritten by their own gradient, and used for dy and the
 * head's gradient before the next chunk. The backward pass of the head therefore belongs to the
 * forward pass here.
 *
 * That is why `scale` is an argument: the gradient of the logits is (softmax - one-hot) * mask *
 * scale, and scale, the derivative of the step's objective by one label's loss (1 / (n * micros),
 * train/engine/step.c), must be known before any loss is. Gradients carry the factor from here
 * down to the embedding. `total` is the plain sum of losses, without it.
 *
 * Rows that pad the vocabulary for the mesh take no part: the softmax is over the true vocabulary,
 * and their weights get no gradient.
 */

/* A chunk is large enough for a matrix product to run at full speed, small beside the weights. */
enum { CHUNK_BYTES = 256 << 20, CHUNK_LEAST = 64 };

static int64_t chunk_rows(const struct model *m, int64_t n)
{
    int64_t rows = CHUNK_BYTES / (m->spec->vocab * (int64_t)dtype_size(m->ops->real));
    rows = rows / CHUNK_LEAST * CHUNK_LEAST;
    if (rows < CHUNK_LEAST)
        rows = CHUNK_LEAST;
    return rows < n ? rows : n;
}

void model_logits(struct model *m, int64_t begin, int64_t rows, struct tensor logits)
{
    op_matmul(m->ops, &(struct matmul_args){.y = logits,
                                            .a = tensor_rows(m->a.y, begin, rows),
                                            .b = tensor_rows(m->w.head, 0, m->spec->vocab),
                                            .tb = true});
}

static void chunk_loss(struct model *m, const struct model_pass *p, int64_t begin, int64_t rows,
                       struct tensor logits, struct tensor total, float scale)
{
    struct slab *ws = m->ops->workspace;
    struct tensor max = slab_1d(ws, m->ops->real, rows), sum = slab_1d(ws, m->ops->real, rows);
    struct tensor target = slab_1d(ws, m->ops->real, rows);
    struct tensor label = tensor_rows(m->a.label, begin, rows);

    model_logits(m, begin, rows, logits);
    op_xent_stats(m->ops,
                  &(struct xent_stats_args){
                      .logits = logits, .label = label, .max = max, .sum = sum, .target = target});
    op_xent_loss(m->ops, &(struct xent_loss_args){.logits = logits,
                                                  .label = label,
                                                  .max = max,
                                                  .sum = sum,
                                                  .target = target,
                                                  .mask = tensor_rows(m->a.mask, begin, rows),
                                                  .loss = tensor_rows(m->a.loss, begin, rows),
                                                  .total = total,
                                                  .scale = scale,
                                                  .grad = p->train});
    if (!p->train)
        return;
    op_matmul(m->ops, &(struct matmul_args){.y = tensor_rows(m->a.dy, begin, rows),
                                            .a = logits,
                                            .b = tensor_rows(m->w.head, 0, m->spec->vocab)});
    op_matmul(m->ops, &(struct matmul_args){.y = tensor_rows(m->g.head, 0, m->spec->vocab),
                                            .a = logits,
                                            .b = tensor_rows(m->a.y, begin, rows),
                                            .ta = true,
                                            .accumulate = true});
}

void model_loss(struct model *m, const struct model_pass *p, struct tensor total, float scale)
{
    struct slab *ws = m->ops->workspace;
    int64_t chunk = chunk_rows(m, p->n);
    for (int64_t begin = 0; begin < p->n; begin += chunk) {
        size_t mark = slab_mark(ws);
        int64_t rows = p->n - begin < chunk ? p->n - begin : chunk;
        struct tensor logits = slab_2d(ws, m->ops->real, rows, m->spec->vocab);
        chunk_loss(m, p, begin, rows, logits, total, scale);
        slab_reset(ws, mark);
    }
}

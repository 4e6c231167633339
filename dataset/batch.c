/* SPDX-License-Identifier: Apache-2.0 */
#include "dataset/batch.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/mem.h"

/*
 * Labels are the next tokens; what is padding carries no loss, and stands as id 0 for the kernels.
 */
static void cut(const int32_t *text, uint32_t length, int32_t pad, int32_t *tokens, int32_t *labels,
                float *mask)
{
    for (uint32_t t = 0; t < length; t++) {
        tokens[t] = text[t] == pad ? 0 : text[t];
        labels[t] = text[t + 1] == pad ? 0 : text[t + 1];
        mask[t] = text[t + 1] == pad ? 0.0f : 1.0f;
    }
}

/* Place of row 0 in the dataset's order. */
static int first_sample(const struct gpt *g, const struct batch_layout *l, uint64_t consumed,
                        uint64_t micro, uint64_t *ret, struct err *e)
{
    uint64_t first = consumed, end, step;
    if (!checked_mul((uint64_t)l->rows * l->ranks, micro, &step) ||
        !checked_add(first, step, &first) ||
        !checked_add(first, (uint64_t)l->rank * l->rows, &first) ||
        !checked_add(first, l->rows, &end) || end > gpt_count(g))
        return err_set(e, ERR_USAGE,
                       "%s: the %s data has %" PRIu64 " samples, none for micro-batch %" PRIu64
                       " behind %" PRIu64 " consumed ones",
                       g->shard->prefix, part_name(g->spec.part), gpt_count(g), micro, consumed);
    *ret = first;
    return 0;
}

int batch_fill(const struct gpt *g, const struct batch_layout *l, uint64_t consumed, uint64_t micro,
               struct batch *ret, struct err *e)
{
    uint32_t length = g->spec.seq_length;
    BUG_ON(g->spec.extra != 1, "labels need overlapping samples");
    BUG_ON(ret->rows != l->rows || ret->seq_length != length, "batch of %u x %u, not %u x %u",
           ret->rows, ret->seq_length, l->rows, length);
    int code = first_sample(g, l, consumed, micro, &ret->first, e);
    if (code)
        return code;
    int32_t *text = mem_new((size_t)length + 1, sizeof(*text));
    for (uint32_t q = 0; q < l->rows && !code; q++) {
        size_t at = (size_t)q * length;
        code = gpt_sample(g, ret->first + q, text, e);
        if (!code)
            cut(text, length, g->pad, ret->tokens + at, ret->labels + at, ret->loss_mask + at);
    }
    free(text);
    return code;
}

void batch_init(struct batch *b, uint32_t rows, uint32_t seq_length)
{
    size_t n = (size_t)rows * seq_length;
    int32_t *p = mem_new(n * 3, sizeof(*p));
    *b = (struct batch){.rows = rows,
                        .seq_length = seq_length,
                        .tokens = p,
                        .labels = p + n,
                        .loss_mask = (float *)(void *)(p + 2 * n)};
}

void batch_finish(struct batch *b)
{
    free(b->tokens);
    *b = (struct batch){0};
}

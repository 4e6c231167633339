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
static void cut_padded(const int32_t *text, uint32_t length, int32_t pad, int32_t *tokens,
                       int32_t *labels, float *mask)
{
    for (uint32_t t = 0; t < length; t++) {
        tokens[t] = text[t] == pad ? 0 : text[t];
        labels[t] = text[t + 1] == pad ? 0 : text[t + 1];
        mask[t] = text[t + 1] == pad ? 0.0f : 1.0f;
    }
}

/* A padding that is no id stands at the end of a text or nowhere. Rows of ones stay as they are. */
static void cut(const int32_t *text, uint32_t q, int32_t pad, struct batch *b)
{
    uint32_t n = b->seq_length;
    size_t at = (size_t)q * n;
    bool padded = pad >= 0 || text[n] == pad;
    if (padded) {
        cut_padded(text, n, pad, b->tokens + at, b->labels + at, b->loss_mask + at);
    } else {
        memcpy(b->tokens + at, text, n * sizeof(*text));
        memcpy(b->labels + at, text + 1, n * sizeof(*text));
        for (uint32_t t = 0; b->masked[q] && t < n; t++)
            b->loss_mask[at + t] = 1.0f;
    }
    b->masked[q] = padded;
}

static void mask_eods(const int32_t *text, uint32_t length, int32_t eod, float *mask)
{
    for (uint32_t t = 0; t < length; t++)
        mask[t] = text[t] == eod ? 0.0f : mask[t];
}

/* The end of a document has the position that it has in it, and what follows has 0. */
static void reset_positions(const int32_t *text, uint32_t length, int32_t eod, int32_t *position)
{
    int32_t at = 0;
    for (uint32_t t = 0; t < length; t++) {
        position[t] = at++;
        if (text[t] == eod)
            at = 0;
    }
}

/* Stretches of row q. */
static void cut_stretches(const int32_t *text, uint32_t length, int32_t eod, uint32_t q,
                          struct batch *b)
{
    int32_t row = (int32_t)(q * length);
    for (uint32_t t = 0; t < length; t++)
        if (text[t] == eod || t + 1 == length)
            b->start[++b->nstretch] = row + (int32_t)t + 1;
}

static void apply_eods(const struct batch_layout *l, const int32_t *text, uint32_t q,
                       struct batch *b)
{
    size_t at = (size_t)q * b->seq_length;
    if (l->eod_mask_loss) {
        b->masked[q] = true;
        mask_eods(text, b->seq_length, l->eod, b->loss_mask + at);
    }
    if (l->reset_position_ids)
        reset_positions(text, b->seq_length, l->eod, b->position + at);
    if (l->reset_attention_mask)
        cut_stretches(text, b->seq_length, l->eod, q, b);
}

/* What does not depend on the text is written once, or again if it was another layout's. */
static void whole_rows(const struct batch_layout *l, struct batch *b)
{
    size_t n = (size_t)b->rows * b->seq_length;
    for (size_t i = 0; b->own_position && !l->reset_position_ids && i < n; i++)
        b->position[i] = (int32_t)(i % b->seq_length);
    for (size_t q = 0; b->own_start && !l->reset_attention_mask && q <= b->rows; q++)
        b->start[q] = (int32_t)(q * b->seq_length);
    b->nstretch = l->reset_attention_mask ? 0 : b->rows;
    b->own_position = l->reset_position_ids;
    b->own_start = l->reset_attention_mask;
}

/* Rows that say themselves what is learnt and what sees what; `ends` has room for one of them. */
static int fill_rows(const struct feed *f, struct batch *b, int32_t *ends, struct err *e)
{
    int code = 0;
    b->nstretch = 0;
    b->own_position = b->own_start = true;
    memset(b->masked, true, b->rows);
    for (uint32_t q = 0; q < b->rows && !code; q++) {
        size_t at = (size_t)q * b->seq_length;
        struct feed_row r = {.tokens = b->tokens + at,
                             .labels = b->labels + at,
                             .loss_mask = b->loss_mask + at,
                             .position = b->position + at,
                             .ends = ends};
        code = f->row(f->self, b->first + q, &r, e);
        for (uint32_t i = 0; i < r.nends && !code; i++)
            b->start[++b->nstretch] = (int32_t)at + ends[i];
    }
    return code;
}

/* Place of row 0 in the dataset's order. */
static int first_sample(const struct feed *f, const struct batch_layout *l, uint64_t consumed,
                        uint64_t micro, uint64_t *ret, struct err *e)
{
    uint64_t first = consumed, end, step;
    if (!checked_mul((uint64_t)l->rows * l->ranks, micro, &step) ||
        !checked_add(first, step, &first) ||
        !checked_add(first, (uint64_t)l->rank * l->rows, &first) ||
        !checked_add(first, l->rows, &end) || end > f->count)
        return err_set(e, ERR_USAGE,
                       "%s: the %s data has %" PRIu64 " samples, none for micro-batch %" PRIu64
                       " behind %" PRIu64 " consumed ones",
                       f->name, f->part, f->count, micro, consumed);
    *ret = first;
    return 0;
}

int batch_fill(const struct feed *f, const struct batch_layout *l, uint64_t consumed,
               uint64_t micro, struct batch *ret, struct err *e)
{
    uint32_t length = f->seq_length;
    BUG_ON(ret->rows != l->rows || ret->seq_length != length, "batch of %u x %u, not %u x %u",
           ret->rows, ret->seq_length, l->rows, length);
    int code = first_sample(f, l, consumed, micro, &ret->first, e);
    if (code)
        return code;
    int32_t *text = mem_new((size_t)length + 1, sizeof(*text));
    if (f->row) {
        code = fill_rows(f, ret, text, e);
        free(text);
        return code;
    }
    whole_rows(l, ret);
    for (uint32_t q = 0; q < l->rows && !code; q++) {
        code = f->sample(f->self, ret->first + q, text, e);
        if (code)
            break;
        cut(text, q, f->pad, ret);
        apply_eods(l, text, q, ret);
    }
    free(text);
    return code;
}

void batch_init(struct batch *b, uint32_t rows, uint32_t seq_length)
{
    size_t n = (size_t)rows * seq_length;
    BUG_ON(n >= INT32_MAX, "micro-batch of %u x %u", rows, seq_length);
    int32_t *p = mem_new(n * 5 + 1, sizeof(*p));
    *b = (struct batch){.rows = rows,
                        .seq_length = seq_length,
                        .tokens = p,
                        .labels = p + n,
                        .loss_mask = (float *)(void *)(p + 2 * n),
                        .position = p + 3 * n,
                        .start = p + 4 * n,
                        .masked = mem_new(rows, sizeof(bool)),
                        .own_position = true,
                        .own_start = true};
    memset(b->masked, true, rows);
    whole_rows(&(struct batch_layout){.rows = rows}, b);
}

void batch_finish(struct batch *b)
{
    free(b->tokens);
    free(b->masked);
    *b = (struct batch){0};
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "dataset/sample/batch.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "base/core/bytes.h"
#include "base/core/fault.h"
#include "base/core/mem.h"
#include "dataset/sample/epochs.h"

/* Labels are the next tokens; padding carries no loss, and is id 0 for the kernels. */
static void mask_padding(const int32_t *text, uint32_t length, int32_t pad,
                         int32_t *restrict labels, float *restrict mask)
{
    for (uint32_t t = 0; t < length; t++) {
        labels[t] = text[t + 1] == pad ? 0 : text[t + 1];
        mask[t] = text[t + 1] == pad ? 0.0f : 1.0f;
    }
}

static void hide_padding(int32_t *text, uint32_t length, int32_t pad)
{
    for (uint32_t t = 0; t < length; t++)
        text[t] = text[t] == pad ? 0 : text[t];
}

static void mask_eods(const int32_t *text, uint32_t length, int32_t eod, float *mask)
{
    for (uint32_t t = 0; t < length; t++)
        mask[t] = text[t] == eod ? 0.0f : mask[t];
}

/* The end-of-document token has its position in the document; the next token has 0. */
static void reset_positions(const int32_t *text, uint32_t length, int32_t eod, int32_t *position)
{
    int32_t at = 0;
    for (uint32_t t = 0; t < length; t++) {
        position[t] = at++;
        if (text[t] == eod)
            at = 0;
    }
}

/* Segments of row q. */
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

/*
 * Row q, whose text is in place of its tokens and one more. If the padding is no id, padding occurs
 * only at the end of a text. Rows whose mask is all ones stay as they are.
 */
static void batch_cut(const struct batch_layout *l, uint32_t q, int32_t pad, struct batch *b)
{
    uint32_t n = b->seq_length;
    size_t at = (size_t)q * n;
    int32_t *text = b->tokens + at;
    bool padded = pad >= 0 || text[n] == pad;
    if (padded) {
        mask_padding(text, n, pad, b->labels + at, b->loss_mask + at);
    } else {
        memcpy(b->labels + at, text + 1, n * sizeof(*text));
        for (uint32_t t = 0; b->masked[q] && t < n; t++)
            b->loss_mask[at + t] = 1.0f;
    }
    b->masked[q] = padded;
    apply_eods(l, text, q, b);
    if (padded)
        hide_padding(text, n, pad);
}

/* Writes what does not depend on the text once, or again for another layout. */
static void whole_rows(const struct batch_layout *l, struct batch *b)
{
    size_t n = (size_t)b->rows * b->seq_length;
    for (size_t i = 0; b->own_position && !l->reset_position_ids && i < n; i++)
        b->position[i] = (int32_t)(i % b->seq_length);
    for (size_t q = 0; b->own_start && !l->reset_attention_mask && q <= b->rows; q++)
        b->start[q] = (int32_t)(q * b->seq_length);
    for (uint32_t q = 0; q < b->rows; q++)
        b->used[q] = b->seq_length;
    b->nstretch = l->reset_attention_mask ? 0 : b->rows;
    b->own_position = l->reset_position_ids;
    b->own_start = l->reset_attention_mask;
}

/* ---- samples --------------------------------------------------------------------------------- */

/* The rows of a micro-batch that are there; `end` as of first_sample. */
static uint32_t rows_there(const struct batch *b, uint64_t end)
{
    uint64_t left = b->first < end ? end - b->first : 0;
    return left < b->rows && !FAULT("epoch_rows") ? (uint32_t)left : b->rows;
}

/* The rows from `there` on are padding without a loss, each a segment of its own. */
static void pad_rows(struct batch *b, uint32_t there)
{
    size_t n = b->seq_length, at = there * n, all = b->rows * n;
    for (size_t i = at; i < all; i++) {
        b->tokens[i] = b->labels[i] = 0;
        b->loss_mask[i] = 0;
        b->position[i] = (int32_t)(i % n);
    }
    for (uint32_t q = there; q < b->rows; q++) {
        b->masked[q] = true;
        b->used[q] = 0;
        if (b->own_start)
            b->start[++b->nstretch] = (int32_t)((q + 1) * n);
    }
}

/* Rows with their own masks and boundaries; `ends` has space for one row. */
static int fill_rows(const struct feed *f, uint32_t there, struct batch *b, int32_t *ends,
                     struct err *e)
{
    int code = 0;
    b->nstretch = 0;
    b->own_position = b->own_start = true;
    memset(b->masked, true, b->rows);
    for (uint32_t q = 0; q < there && !code; q++) {
        size_t at = (size_t)q * b->seq_length;
        struct feed_row r = {.tokens = b->tokens + at,
                             .labels = b->labels + at,
                             .loss_mask = b->loss_mask + at,
                             .position = b->position + at,
                             .ends = ends,
                             .used = b->seq_length};
        code = f->row(f->self, (b->first + q) % f->count, &r, e);
        b->used[q] = r.used;
        for (uint32_t i = 0; i < r.nends && !code; i++)
            b->start[++b->nstretch] = (int32_t)at + ends[i];
    }
    return code;
}

/* In epochs: the samples consumed before the step of micro-batch *micro, which is made its number
 * in that step, and where its samples end. */
static uint64_t find_step(const struct batch_layout *l, uint64_t consumed, uint64_t *micro,
                          uint64_t *ret_end)
{
    uint64_t full = (uint64_t)l->rows * l->ranks * l->micros;
    uint64_t begin = epochs_after(l->epoch, full, consumed, *micro / l->micros);
    uint64_t left = l->epoch - begin % l->epoch;
    *micro %= l->micros;
    *ret_end = begin + (left < full ? left : full);
    return begin;
}

/* Number of row 0, and of the first row that is missing, UINT64_MAX: none is. */
static int first_sample(const struct feed *f, const struct batch_layout *l, uint64_t consumed,
                        uint64_t micro, struct batch *b, uint64_t *ret_end, struct err *e)
{
    uint64_t first = consumed, end, step;
    b->there = 0;
    *ret_end = UINT64_MAX;
    if (l->epoch) {
        first = find_step(l, consumed, &micro, ret_end);
        b->there = *ret_end - first;
    }
    if (!checked_mul((uint64_t)l->rows * l->ranks, micro, &step) ||
        !checked_add(first, step, &first) ||
        !checked_add(first, (uint64_t)l->rank * l->rows, &first) ||
        !checked_add(first, l->rows, &end) || !f->count)
        return err_set(e, ERR_USAGE,
                       "%s: the %s data has %" PRIu64 " samples, none for micro-batch %" PRIu64
                       " after %" PRIu64 " consumed ones",
                       f->name, f->part, f->count, micro, consumed);
    b->first = first;
    return 0;
}

/*
 * Before row q: prefetches what later rows of this and the next micro-batches need. Each step is as
 * many rows ahead as the data of the previous step take to arrive.
 */
static void look_ahead(const struct feed *f, const struct batch_layout *l, const struct batch *b,
                       uint32_t q)
{
    static const uint8_t far[FEED_STEPS] = {
        [FEED_ROW] = 9, [FEED_DOC] = 6, [FEED_ENTRY] = 3, [FEED_TOKENS] = 1, [FEED_DISK] = 128};
    enum feed_step end = b->cold ? FEED_STEPS : FEED_DISK;
    for (enum feed_step step = FEED_ROW; f->ahead && step < end; step++) {
        uint64_t row = (uint64_t)q + far[step];
        uint64_t k = b->first + row / l->rows * l->rows * l->ranks + row % l->rows;
        f->ahead(f->self, k % f->count, step);
    }
}

/*
 * Decides by the time that a batch took whether to read ahead for the next ones. A sample in memory
 * takes 1 to 5 us, one on disk 50 or more; a slow batch without page faults was descheduled.
 */
static void judge_disk(struct batch *b, int64_t ns)
{
    enum { SLOW_NS = 40000, WARM_NS = 10000, KEEP = 64 };
    struct rusage u;
    if (b->cold) {
        b->cold = ns > (int64_t)WARM_NS * b->rows ? KEEP : b->cold - 1;
    } else if (ns > SLOW_NS && !getrusage(RUSAGE_THREAD, &u)) {
        b->cold = u.ru_majflt != b->faults ? KEEP : 0;
        b->faults = u.ru_majflt;
    }
}

/* Row by row. */
static int fill_samples(const struct feed *f, const struct batch_layout *l, uint32_t there,
                        struct batch *b, struct err *e)
{
    struct timespec start, end;
    int code = 0;
    whole_rows(l, b);
    clock_gettime(CLOCK_MONOTONIC, &start);
    for (uint32_t q = 0; q < there && !code; q++) {
        look_ahead(f, l, b, q);
        code =
            f->sample(f->self, (b->first + q) % f->count, b->tokens + (size_t)q * b->seq_length, e);
        if (!code)
            batch_cut(l, q, f->pad, b);
    }
    clock_gettime(CLOCK_MONOTONIC, &end);
    judge_disk(b, (end.tv_sec - start.tv_sec) * 1000000000 + (end.tv_nsec - start.tv_nsec));
    return code;
}

int batch_fill(const struct feed *f, const struct batch_layout *l, uint64_t consumed,
               uint64_t micro, struct batch *ret, struct err *e)
{
    uint32_t length = f->seq_length;
    BUG_ON(ret->rows != l->rows || ret->seq_length != length, "batch of %u x %u, not %u x %u",
           ret->rows, ret->seq_length, l->rows, length);
    uint64_t end;
    int code = first_sample(f, l, consumed, micro, ret, &end, e);
    if (code)
        return code;
    uint32_t there = rows_there(ret, end);
    if (!f->row) {
        code = fill_samples(f, l, there, ret, e);
    } else {
        int32_t *ends = mem_new(length, sizeof(*ends));
        code = fill_rows(f, there, ret, ends, e);
        free(ends);
    }
    if (!code)
        pad_rows(ret, there);
    return code;
}

void batch_init(struct batch *b, uint32_t rows, uint32_t seq_length)
{
    enum { SPILL = 16 }; /* the last text is one token longer than its row; a cache line */
    size_t n = (size_t)rows * seq_length;
    BUG_ON(n >= INT32_MAX, "micro-batch of %u x %u", rows, seq_length);
    int32_t *p = mem_new(n * 5 + SPILL + 1, sizeof(*p));
    *b = (struct batch){.rows = rows,
                        .seq_length = seq_length,
                        .tokens = p,
                        .labels = p + SPILL + n,
                        .loss_mask = (float *)(void *)(p + SPILL + 2 * n),
                        .position = p + SPILL + 3 * n,
                        .start = p + SPILL + 4 * n,
                        .used = mem_new(rows, sizeof(*b->used)),
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
    free(b->used);
    *b = (struct batch){0};
}

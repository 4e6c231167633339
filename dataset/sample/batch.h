/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DATASET_SAMPLE_BATCH_H
#define DATASET_SAMPLE_BATCH_H

/*
 * Micro-batches as plain arrays. A batch is a pure function of (dataset, consumed samples,
 * micro-batch, data-parallel rank and size): row q of micro-batch m on rank r of R is the sample
 *     (consumed + m * b * R + r * b + q) mod n,   b = rows of a micro-batch, n samples in the feed,
 * so the only state of a run is its count of consumed samples, and data that are used up begin
 * again, in the same order.
 *
 * In epochs the last step of each has fewer samples: rows beyond its last one are missing. They are
 * padding that attends to nothing else and has no loss, and the next step begins with the next
 * epoch (epochs.h).
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/core/err.h"
#include "dataset/sample/feed.h"

struct batch_layout {
    uint32_t rows; /* micro-batch size b */
    uint32_t rank; /* data-parallel */
    uint32_t ranks;
    /* What ends of documents do: Megatron-LM's options of these names, the only users of eod. */
    int32_t eod;
    bool eod_mask_loss;        /* no loss for what is predicted from an end of document */
    bool reset_position_ids;   /* positions restart after one */
    bool reset_attention_mask; /* tokens after one do not attend to those before */
    /* Steps end where epochs of so many samples do; `consumed` is at the end of a step. 0: they do
     * not. */
    uint64_t epoch;
    uint32_t micros; /* with epochs: micro-batches of a step on this rank */
};

struct batch {
    uint32_t rows, seq_length; /* b, T */
    uint64_t first;            /* number of row 0, counted on where the data begin again */
    uint64_t there;            /* samples of the whole step in epochs, of all ranks; else 0 */
    int32_t *tokens;           /* [b][T] */
    int32_t *labels;           /* [b][T]: the token after each */
    float *loss_mask;          /* [b][T]: 1, or 0 where the label is padding or by eod_mask_loss */
    int32_t *position;         /* [b][T]: from 0 in each row */
    /*
     * Segments that do not attend to each other: segment s is tokens start[s] .. start[s + 1] - 1
     * of b T, none empty. One per row, or per document with reset_attention_mask.
     */
    int32_t *start; /* [nstretch + 1], space for b T + 1 */
    uint32_t nstretch;
    /* [b]: tokens of each row before its padding, which no other token attends to and which is
     * segments of its own; T where there is none */
    uint32_t *used;
    /* private: rows whose mask is not all ones, arrays that differ from what batch_init set, for
     * how many more batches to read ahead, and page faults so far */
    bool *masked;
    bool own_position, own_start;
    uint32_t cold;
    int64_t faults;
};

/* `ret` comes from batch_init, with the layout's rows and the feed's seq_length. */
int batch_fill(const struct feed *f, const struct batch_layout *l, uint64_t consumed,
               uint64_t micro, struct batch *ret, struct err *e);

/* All arrays in one allocation. */
void batch_init(struct batch *b, uint32_t rows, uint32_t seq_length);
void batch_finish(struct batch *b);

/*
 * A loader has a thread that reads the next micro-batches ahead, in order from `consumed` on. The
 * dataset must stay open until loader_destroy. Only one thread may call loader_next.
 */
struct loader;

/* depth: batches read ahead, >= 1. */
int loader_create(const struct feed *f, const struct batch_layout *l, uint64_t consumed,
                  uint32_t depth, struct loader **ret, struct err *e);

/* The next micro-batch, valid until the next call; or the error that it met, now and in all further
 * calls. */
int loader_next(struct loader *l, const struct batch **ret, struct err *e);

/* After such an error, for a rank that must go on until the others know of it: a batch of ids 0
 * without a counted label. */
const struct batch *loader_blank(struct loader *l);

/* Joins the thread. Accepts NULL. */
void loader_destroy(struct loader *l);

#endif

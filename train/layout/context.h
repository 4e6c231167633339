/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_LAYOUT_CONTEXT_H
#define TRAIN_LAYOUT_CONTEXT_H

/*
 * Context parallelism: which tokens of each sequence a rank has, and which keys of a rank its
 * queries see. A sequence is 2 x cp pieces of equal length; rank r has pieces r and 2 cp - 1 - r,
 * so that all have the same number of pairs of a query and an earlier key (the zigzag of ring
 * attention). A rank's rows are its first pieces of all sequences of the micro-batch, one after the
 * other, then its second pieces: its two halves.
 */

#include <stdbool.h>
#include <stdint.h>

struct context {
    int cp, rank;
    int64_t length;    /* of a sequence: a multiple of 2 cp */
    int64_t sequences; /* of the micro-batch */
};

struct context_place {
    int rank;
    int64_t row; /* of the rank's rows */
};

/* Tokens of a piece; a rank has 2 x sequences pieces. */
int64_t context_piece_length(struct context c);
/* Number of the piece that is in `half` (0, 1) of the rank's rows. */
int64_t context_piece(struct context c, int half);

/* The global row (sequence x length + position) of a row of this rank, and back. */
int64_t context_row(struct context c, int64_t row);
struct context_place context_place(struct context c, int64_t global);

/*
 * Ragged rows of op_attention (train/ops/ops.h): queries of one half of this rank against keys of
 * one half of the rank `key_rank`, both without the other half's rows. q_start has one element
 * more. Arrays are per call; the results of all calls of one half are merged.
 */
struct context_rows {
    int32_t *q_start, *k_start, *k_len, *ahead, *drop_row, *drop_key;
};

/* The most of them that there may be: documents of the micro-batch. */
int64_t context_rows_most(struct context c, int64_t documents);

/*
 * `document` [documents + 1]: where documents begin in the global rows, ascending, from 0 to the
 * end; each sequence begins one. A query sees keys of its own document only. Returns how many
 * ragged sequences there are; 0: no query sees any key, and there is nothing to call.
 */
int64_t context_rows(struct context c, const int32_t *document, int64_t documents, int half,
                     int key_rank, int key_half, struct context_rows ret);

#endif

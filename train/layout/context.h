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

/* Tokens of a piece; a rank has 2 x sequences pieces. */
int64_t context_piece_length(struct context c);
/* Number of the piece that is in `half` (0, 1) of the rank's rows. */
int64_t context_piece(struct context c, int half);

/* The global row (sequence x length + position) of a row of this rank. */
int64_t context_row(struct context c, int64_t row);

/* How keys and values reach the queries: names of --cp-comm-type. */
enum context_comm {
    CONTEXT_P2P,        /* they go round the ranks, and the parts' results are merged */
    CONTEXT_ALL_GATHER, /* each rank has all of them while it computes a layer's attention */
    CONTEXT_A2A,        /* each rank has whole sequences of a part of the heads meanwhile */
    CONTEXT_COMMS
};
const char *context_comm_name(enum context_comm c); /* "p2p" */

/* Queries of one half of this rank against keys of one half of another. */
struct context_call {
    int half, key_rank, key_half;
};

/*
 * P2P: in step 0 .. cp - 1 a rank has the keys of the rank (rank - step) mod cp. The calls of a
 * step: those in which any query may see any key. The first call of either half is in step 0.
 * Returns how many; the first of a step has the number context_call_number(step), and there are
 * context_call_number(cp) calls together.
 */
enum { CONTEXT_CALLS = 3 };
int context_calls(struct context c, int step, struct context_call ret[CONTEXT_CALLS]);
int context_call_number(int step);

/*
 * Ragged rows of op_attention (train/ops/ops.h) for one call, queries and keys both without the
 * other half's rows. q_start has one element more. The results of all calls of one half are merged.
 */
struct context_rows {
    int32_t *q_start, *k_start, *k_len, *ahead, *drop_row, *drop_key;
};

/* The most of them that there may be in a micro-batch of so many documents. */
int64_t context_rows_most(struct context c, int64_t documents);

/*
 * `document` [documents + 1]: where documents begin in the global rows, ascending, from 0 to the
 * end; each sequence begins one. A query sees keys of its own document only. Returns how many
 * ragged sequences there are: all queries of the half are in one, and its keys may be none.
 */
int64_t context_rows(struct context c, const int32_t *document, int64_t documents,
                     struct context_call call, struct context_rows ret);

/* ALL_GATHER: the same for queries of one half against all keys, which lie in global rows. */
int64_t context_rows_whole(struct context c, const int32_t *document, int64_t documents, int half,
                           struct context_rows ret);

/* Sequences without queries and keys behind the `n` that there are, up to `to`. */
void context_rows_pad(struct context_rows r, int64_t n, int64_t to);

#endif

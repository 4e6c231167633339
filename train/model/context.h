/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_MODEL_CONTEXT_H
#define TRAIN_MODEL_CONTEXT_H

/*
 * Attention of context-parallel ranks, each of which has two pieces of every sequence
 * (train/layout/context.h): how keys and values reach the queries, and their gradients the way
 * back. All of it is between the products of q, k, v and of the output: nothing else in the model
 * looks at another token.
 */

#include "train/model/model.h"

/* As attention_run, attention_run_again and attention_run_bwd. With CONTEXT_A2A acts.qkv and lse
 * are afterwards those of this rank's heads, of all tokens. */
void context_attention(struct model *m, const struct model_pass *p, int l, bool again);
void context_attention_bwd(struct model *m, const struct model_pass *p, int l, struct tensor datt,
                           struct tensor dqkv);

/*
 * acts.context has sets of ragged rows, one for each call of attention: two for all keys at once
 * (ALL_GATHER), by half, then the calls of P2P in their order. A set is six arrays of one size,
 * struct context_rows's, of which model_pass.parts (q_start: one more) elements are used.
 */
enum { CONTEXT_WHOLE = 0, CONTEXT_STEPS = 2 };
/* Of all sets, for at most so many documents. */
int64_t context_ints(struct context c, int64_t documents);

/*
 * Fills the sets that the layout needs, on the host, for documents as context_rows takes them.
 */
void context_fill(struct context c, const struct layout *l, int64_t layers, const int32_t *document,
                  int64_t documents, int32_t *ints, int64_t size);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_MODEL_ATTENTION_H
#define TRAIN_MODEL_ATTENTION_H

/*
 * The attention of a layer alone: from q, k and v, turned by their positions, to its output, and
 * back. What it keeps are the layer's activations: qkv, att and lse. Context-parallel ranks
 * exchange keys and values here (context.c), and nowhere else in the model.
 */

#include "train/model/model.h"

/* acts.qkv -> acts.att, lse */
void attention_run(struct model *m, const struct model_pass *p, int l);
/* Once more, from what the layer has kept: att and lse alone are missing. */
void attention_run_again(struct model *m, const struct model_pass *p, int l);
/* datt [n, H D], dqkv [n, Q] */
void attention_run_bwd(struct model *m, const struct model_pass *p, int l, struct tensor datt,
                       struct tensor dqkv);

/* All queries of a layer against all keys that this rank has. */
struct attention_args attention_args_of(const struct model *m, const struct model_pass *p, int l);

#endif

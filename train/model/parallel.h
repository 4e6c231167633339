/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_MODEL_PARALLEL_H
#define TRAIN_MODEL_PARALLEL_H

/*
 * The parallel residual of GPT-NeoX (Wang & Komatsuzaki 2021): attention and MLP both read the
 * block's input r1, each through a norm of its own,
 *     r2 = r1 + attention(norm1(r1)), next block's r1 = r2 + mlp(norm2(r1)).
 * What stands between attention and MLP differs from a serial block, the rest of it does not.
 */

#include "train/model/model.h"

/* After the attention: y2 from the block's input `r1`, r2 = r1 and what waits in sub. */
void parallel_forward(struct model *m, const struct model_pass *p, int l, struct tensor r1);

/*
 * Before the attention's backward: dsub is its gradient, and that of y2 moves from dy to workspace,
 * where the caller keeps it for parallel_backward_norm, which adds it to dr through the norm.
 */
struct tensor parallel_backward(struct model *m, const struct model_pass *p, int l);
void parallel_backward_norm(struct model *m, const struct model_pass *p, int l, struct tensor r1,
                            struct tensor dy2);

#endif

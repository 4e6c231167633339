/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_MODEL_SHARED_H
#define TRAIN_MODEL_SHARED_H

/*
 * A shared expert (Dai et al. 2024): an MLP that every token passes beside those that its router
 * chooses, and whose output may be multiplied by a sigmoid of its own (Qwen2-MoE). It is not part
 * of expert parallelism: tensor-parallel ranks cut its channels, as those of any MLP.
 */

#include "train/model/model.h"

/* The layer's, where the model has one. */
void shared_take(const struct model *m, struct slab *activations, struct layer_acts *a);

/* Adds its output for y2 to sub; nothing without a shared expert. */
void shared_forward(struct model *m, const struct model_pass *p, int l);
/* From dsub, adds to dy, with the weights' gradients. */
void shared_backward(struct model *m, const struct model_pass *p, int l);

#endif

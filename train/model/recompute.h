/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_MODEL_RECOMPUTE_H
#define TRAIN_MODEL_RECOMPUTE_H

/*
 * Recomputation (Chen et al. 2016; selectively, Korthikanti et al. 2022): layers of a stage that
 * keep their input alone, and go forward once more before they go backward. What a layer computes
 * lies in memory that such layers share, the n-th of a group in the n-th set; between forward and
 * backward of a micro-batch each group has the residual stream before its first layer. As dropout
 * is a function of numbers, and ops give the same bytes for the same arguments, the gradients are
 * those without recomputation, bit for bit.
 */

#include "train/model/model.h"

/* Sets that layers share: 0, or as many as the largest group has layers. */
int recompute_sets(const struct model *m);

/* The set of a layer of the stage; -1: it keeps what it computes. */
int recompute_set(const struct model *m, int l);

/* Whether the input of layer l is shared out over the tensor-parallel ranks, and the elements of
 * the part of each. */
bool recompute_distributes(const struct model *m, int l);
int64_t recompute_part(const struct model *m);

/* After block_forward of layer l: keeps this rank's part of a group's input. */
void recompute_keep(struct model *m, const struct model_pass *p, int l);

/* Before block_backward of layer l: once more forward, if it is the last of a group and another
 * group has used the shared sets since. */
void recompute_group(struct model *m, const struct model_pass *p, int l);

#endif

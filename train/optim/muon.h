/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_OPTIM_MUON_H
#define TRAIN_OPTIM_MUON_H

/*
 * Muon (Jordan et al. 2024, kellerjordan.github.io/posts/muon): matrices move by their momentum,
 * made orthogonal by Newton-Schulz steps. With g' the clipped gradient of a matrix
 *     m = momentum m + (1 - momentum) g',  u = momentum m + (1 - momentum) g' (Nesterov), else m
 *     p = p (1 - lr decay) - lr scale orthogonal(u)
 * A matrix is one tensor of a checkpoint: queries, keys and values apart, gate and up, each expert.
 * Embeddings, positions, the head and all vectors follow AdamW with the same learning rate.
 *
 * The matrices are whole whatever cuts them: each rank puts what it counts of `u` in its place,
 * the sum over tensor-parallel ranks and those that share out the optimizer's state (ZeRO) is u,
 * and every rank computes all of it in the type of the master weights and takes its own part.
 *
 * Scales, for [rows, columns]: shape_scaling sqrt(max(1, rows / columns)), as published; spectral
 * sqrt(max(rows, columns)); unit_rms_norm sqrt(rows / columns); each by tuning.muon_extra.
 */

#include "train/optim/optim.h"

bool muon_takes(const struct param *q);
void muon_whole(struct optim *o, struct ops *ops, struct comm *comm, const struct param *q);
double muon_scale_of(const struct optim_tuning *t, int64_t rows, int64_t columns);

/* x [m, n] of the type `master`, without gaps: orthogonal by so many Newton-Schulz steps. Takes
 * workspace. */
void muon_orthogonal(struct ops *ops, struct tensor x, int steps);

#endif

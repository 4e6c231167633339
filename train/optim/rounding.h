/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_OPTIM_ROUNDING_H
#define TRAIN_OPTIM_ROUNDING_H

/*
 * Where the tensors of a checkpoint lie in a rank's slab of parameters, as the table that the ops
 * read for stochastic rounding (train/ops/rounding.h).
 */

#include "train/optim/optim.h"
#include "train/ops/rounding.h"

/* The table into fresh memory (free). Returns how many runs. Padding rows continue the tensor that
 * they belong to; gaps hold zeros, which no rounding changes. */
int rounding_runs(const struct params *p, struct number_run **ret);

/* For a call whose first element is that element of the slab; zeroed without stochastic rounding.
 */
struct rounding rounding_from(const struct optim *o, int64_t first);

#endif

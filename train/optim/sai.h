/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_OPTIM_SAI_H
#define TRAIN_OPTIM_SAI_H

/*
 * SGD-SaI (Xu et al. 2024, arXiv 2412.11768; package sgd-sai 1.0.3): SGD with momentum whose
 * learning rate is scaled once, at the first step, for each block: by its gsnr, |g| / (s + eps), s
 * being the standard deviation of the block's gradients. A block is one of Megatron-LM's tensors:
 * the fused projections of queries, keys and values, gate with up, one expert.
 *
 * The statistics are those of the whole block, without padding, whatever the layout: in double, the
 * mean first, then the deviations from it. optim.gsnr has a number for each block of the model, on
 * every rank. With tuning.sai_shard they are, as upstream, those of what a tensor-parallel rank
 * holds, padding included: a column for each of these ranks.
 *
 * The package's gsnr is not divided by the greatest one, as the paper's is: tuning.sai_max. Without
 * momentum m = g.
 */

#include "train/optim/optim.h"

/* Blocks that the model could have; some numbers stand for none. */
int sai_blocks(const struct params *p);

/* Where a parameter's number is in optim.gsnr, on this rank. */
struct tensor sai_gsnr(const struct optim *o, const struct param *q);

void sai_first(struct optim *o, struct ops *ops, struct comm *comm);
void sai_update(const struct optim *o, struct ops *ops, const struct optim_piece *x);

/* After the first step, from o->gsnr and from the counts of o->stats as they are on the host: how
 * many blocks have gsnr 0 (their gradient was: they stay where they are), and how many a single
 * element (its gsnr is |g| / eps). */
struct sai_odd {
    int still, single;
};
struct sai_odd sai_find_odd(const double *gsnr, const double *count, int64_t n);

#endif

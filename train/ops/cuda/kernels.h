/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_OPS_CUDA_KERNELS_H
#define TRAIN_OPS_CUDA_KERNELS_H

/*
 * The entries of the table, each where its kernels are. Those bounded by memory also take BF16 or
 * F16 for what grows with the rows, and for the weights that they read; statistics, losses and
 * tables of angles stay F32:
 *     embed y, tok, pos; embed_bwd dy; norm y, r, x, a, bias, w, b; norm_bwd dr, dy, r, w, da;
 *     glu and glu_bwd all; rope x; xent_stats and xent_loss logits; cap x; head_norm x, pre, w;
 *     head_norm_bwd dx, pre, w; route logits; route_bwd dlogits; permutations, products of groups
 *     and gates all but weights of tokens and gradients that are added to.
 * Attention takes them, and a matmul but for what it accumulates into. Gradients
 * of weights are F32, or BF16 where the rest is. AdamW and SGD take any of these types for each of
 * their tensors (optim/flat.cuh).
 */

#include "train/ops/ops.h"
#include "train/ops/values.h"

void cuda_embed(struct ops *o, const void *args, void *scratch);
void cuda_embed_bwd(struct ops *o, const void *args, void *scratch);
void cuda_norm(struct ops *o, const void *args, void *scratch);
void cuda_norm_bwd(struct ops *o, const void *args, void *scratch);
void cuda_glu(struct ops *o, const void *args, void *scratch);
void cuda_glu_bwd(struct ops *o, const void *args, void *scratch);
void cuda_rope(struct ops *o, const void *args, void *scratch);
void cuda_attention(struct ops *o, const void *args, void *scratch);
void cuda_attention_bwd(struct ops *o, const void *args, void *scratch);
void cuda_xent_stats(struct ops *o, const void *args, void *scratch);
void cuda_xent_loss(struct ops *o, const void *args, void *scratch);
void cuda_adamw(struct ops *o, const void *args, void *scratch);
void cuda_sgd(struct ops *o, const void *args, void *scratch);
void cuda_moments(struct ops *o, const void *args, void *scratch);
void cuda_gsnr(struct ops *o, const void *args, void *scratch);
void cuda_momentum(struct ops *o, const void *args, void *scratch);
void cuda_decayed(struct ops *o, const void *args, void *scratch);
void cuda_combine(struct ops *o, const void *args, void *scratch);
void cuda_unit(struct ops *o, const void *args, void *scratch);
void cuda_sumsq(struct ops *o, const void *args, void *scratch);
void cuda_clip(struct ops *o, const void *args, void *scratch);
void cuda_select(struct ops *o, const void *args, void *scratch);
void cuda_fill(struct ops *o, const void *args, void *scratch);
void cuda_copy(struct ops *o, const void *args, void *scratch);
void cuda_cap(struct ops *o, const void *args, void *scratch);
/* families/ */
void cuda_head_norm(struct ops *o, const void *args, void *scratch);
void cuda_head_norm_bwd(struct ops *o, const void *args, void *scratch);
void cuda_route(struct ops *o, const void *args, void *scratch);
void cuda_route_bwd(struct ops *o, const void *args, void *scratch);
void cuda_route_loss(struct ops *o, const void *args, void *scratch);
void cuda_permute(struct ops *o, const void *args, void *scratch);
void cuda_permute_bwd(struct ops *o, const void *args, void *scratch);
void cuda_unpermute(struct ops *o, const void *args, void *scratch);
void cuda_unpermute_bwd(struct ops *o, const void *args, void *scratch);
void cuda_grouped(struct ops *o, const void *args, void *scratch);
void cuda_grouped_bwd(struct ops *o, const void *args, void *scratch);
void cuda_gate(struct ops *o, const void *args, void *scratch);
void cuda_gate_bwd(struct ops *o, const void *args, void *scratch);

size_t cuda_embed_bwd_scratch(const struct dev_desc *d, const void *args);
size_t cuda_norm_bwd_scratch(const struct dev_desc *d, const void *args);
size_t cuda_attention_bwd_scratch(const struct dev_desc *d, const void *args);
size_t cuda_moments_scratch(const struct dev_desc *d, const void *args);
size_t cuda_unit_scratch(const struct dev_desc *d, const void *args);
size_t cuda_sumsq_scratch(const struct dev_desc *d, const void *args);
size_t cuda_head_norm_bwd_scratch(const struct dev_desc *d, const void *args);
size_t cuda_route_loss_scratch(const struct dev_desc *d, const void *args);

/* Numbers between -1 and 1 that look random: tensor cores take longer over them than over zeros. */
void cuda_noise(struct ops *o, struct tensor t);

/* What a matmul does after its product, and the sums of columns that a weight gradient adds. */
void cuda_epilogue(struct ops *o, const struct matmul_args *a);
void cuda_dbias(struct ops *o, const struct matmul_args *a, void *scratch);
size_t cuda_dbias_scratch(const struct matmul_args *a);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_OPS_CUDA_FLASH_F32_H
#define TRAIN_OPS_CUDA_FLASH_F32_H

/*
 * Attention in F32 without any library, the forms of flash.h. Products are of fp32 numbers by the
 * ordinary units (F32_EXACT), or of numbers rounded to TF32 by the tensor cores with sums in fp32
 * (F32_TF32); scores, weights and sums are fp32 in both. Scores are never written out.
 *
 * The backward is one kernel: a block has some keys and goes through the queries that see them, so
 * five products make dk, dv and dq. Blocks add to a query's dq in turn, the last keys first, each
 * when the counter of the queries says that it is its turn: equal arguments give equal bytes.
 *
 * Heads have at most 256 dimensions, a multiple of 4, and rows begin at multiples of 16 bytes. GPUs
 * whose blocks have less shared memory than those of compute capability 9.0 take narrower heads
 * only.
 */

#include "train/ops/ops.h"

enum f32_products { F32_EXACT, F32_TF32 };

bool flash_f32_takes(const struct dev_desc *d, const struct attention_args *a,
                     enum f32_products products);
bool flash_f32_takes_bwd(const struct dev_desc *d, const struct attention_bwd_args *b,
                         enum f32_products products);

/* On the device's STREAM_COMPUTE; scratch has flash_f32_bwd_scratch bytes. */
void flash_f32_attention(struct dev *d, const struct attention_args *a, enum f32_products products);
void flash_f32_attention_bwd(struct dev *d, const struct attention_bwd_args *b,
                             enum f32_products products, void *scratch);
size_t flash_f32_bwd_scratch(const struct attention_bwd_args *b);

#endif

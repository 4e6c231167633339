/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_OPS_CUDA_FLASH_H
#define TRAIN_OPS_CUDA_FLASH_H

/*
 * Attention on tensor cores (compute capability 8.0 and newer) without any library, every form of
 * the op: ragged rows, windows, grouped heads, dropout, caps. GPUs of compute capability 9.0 have
 * kernels of their own (flash_wgmma*.cu), used where the build has code for 90a (-Dgpu_arch),
 * except for caps. q, k, v, o and their gradients are BF16 or F16, lse F32; products are of that
 * type with sums in fp32. Scores are never written out (Dao, FlashAttention-2, 2023). The backward
 * takes dq and dk, dv in two kernels, each with one order of its sums, so equal arguments give
 * equal bytes. With dropout over even rows its scratch has a bit for each weight.
 *
 * Heads have at most 128 dimensions, a multiple of 8, and rows begin at multiples of 16 bytes.
 */

#include "train/ops/ops.h"

bool flash_takes(const struct attention_args *a);
/* The kernels for compute capability 9.0 are this call's fastest, if flash_takes it. */
bool flash_by_wgmma(const struct dev_desc *d, const struct attention_args *a);
bool flash_takes_bwd(const struct attention_bwd_args *a);

enum flash_kernels {
    FLASH_FASTEST, /* for the device */
    FLASH_PORTABLE /* those of every device; for tests */
};

/* On the device's STREAM_COMPUTE; scratch has flash_bwd_scratch bytes. */
void flash_attention(struct dev *d, const struct attention_args *a, enum flash_kernels which);
void flash_attention_bwd(struct dev *d, const struct attention_bwd_args *a,
                         enum flash_kernels which, void *scratch);
size_t flash_bwd_scratch(const struct attention_bwd_args *a);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_OPS_CUDA_OPS_CUDA_H
#define TRAIN_OPS_CUDA_OPS_CUDA_H

/*
 * The ops table on an NVIDIA GPU. Every entry issues its work to STREAM_COMPUTE and returns; what
 * goes wrong becomes the device's fault. Tensors and scratch are in device memory. Sums run in an
 * order that sizes alone decide, so equal arguments give equal bytes.
 */

#include "train/ops/ops.h"

/* Fills the table for a device of dev_cuda_open; an entry of struct rank_backends. ops_close closes
 * it. ERR_RESOURCE: cuBLASLt is missing. */
int ops_cuda_open(struct ops *o, struct dev *d, struct slab *workspace, const struct ops_config *c,
                  struct err *e);

#endif

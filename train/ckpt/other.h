/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_CKPT_OTHER_H
#define TRAIN_CKPT_OTHER_H

/*
 * Checkpoints of other programs, known by the names of the files in a folder or one below it:
 * Megatron-LM's (torch, torch_dist, zarr), DeepSpeed's, and those of torch.distributed.checkpoint
 * (DCP, FSDP). None of them is read.
 */

#include "base/core/err.h"

/*
 * ERR_DATA if `path` is such a folder: what it is, with the version where a file says so, and how
 * it becomes a model of Hugging Face, which is read. 0 for all else, our own checkpoints too, and
 * for what cannot be looked into.
 */
int ckpt_other(const char *path, struct err *e);

#endif

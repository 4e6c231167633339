/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_JOB_SERVED_H
#define TRAIN_JOB_SERVED_H

/* Which kernels serve attention on a GPU, for people: once a step is planned. */

#include "base/core/buf.h"
#include "train/engine/rank.h"

/* "cuDNN 9.19.0 (22 layers, window 512), own wgmma (4 layers, full)" */
void served_add(const struct rank *r, struct buf *out);
/* Logs why a kind of layers is not served by what is fastest; plain loops are a warning. */
void served_tell(const struct rank *r);

#endif

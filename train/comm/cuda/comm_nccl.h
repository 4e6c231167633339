/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_COMM_CUDA_COMM_NCCL_H
#define TRAIN_COMM_CUDA_COMM_NCCL_H

/*
 * Collectives of ranks that are processes with a GPU each, through NCCL (opened at run time).
 * Tensors in device memory travel by NCCL, those of the host by the comm of the processes, over
 * which the ranks also meet, and which tells them of a rank that fails or is lost.
 *
 * Each group has a communicator and a stream of its own, and so has each direction between two
 * ranks that exchange messages: calls of different groups do not wait for each other. A sum is
 * added in NCCL's order, which repeats on the same machines but is not that of the other backends.
 */

#include "train/comm/comm.h"
#include "train/tensor/dev.h"

struct comm_nccl_options {
    const char *library_path; /* see train/tensor/cuda/library.h; NULL: none */
    double timeout;           /* seconds that a call may take; 0: 600 */
    unsigned rings;           /* 1 << group, of groups beside PP and CP */
};

/*
 * Replaces *c, the open comm of the processes, by one of their GPUs; `d` is this rank's, open, and
 * outlives it. Called by all ranks. ERR_RESOURCE: NCCL is missing or refuses; *c is as it was.
 */
int comm_nccl_open(struct comm *c, struct dev *d, const struct comm_nccl_options *o, struct err *e);

#endif

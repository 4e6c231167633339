/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_TENSOR_CUDA_DEV_CUDA_H
#define TRAIN_TENSOR_CUDA_DEV_CUDA_H

/*
 * The device table on an NVIDIA GPU, through the CUDA runtime (linked statically; the driver is
 * found at run time). This header needs no header of CUDA. A device belongs to one thread at a
 * time.
 */

#include "train/tensor/dev.h"

/*
 * Opens GPU `ordinal`, with a stream for each STREAM_*. ERR_RESOURCE says why there is none: no
 * driver, no such GPU, or one older than compute capability 8.0.
 */
int dev_cuda_open(struct dev *ret, int ordinal, struct err *e);

/* GPU `which` of those that CUDA_VISIBLE_DEVICES leaves, or the only one that it leaves (some
 * launchers give each process one), with threads of the host as dev_host_open has them. */
int dev_cuda_start(struct dev *ret, int which, int threads, struct err *e);
/* What it opens; it is opened and closed again to see. */
int dev_cuda_describe(struct dev_desc *ret, int which, int threads, struct err *e);

/* An H100 with 80 GB, for plans where there is no GPU. */
void dev_cuda_assume(struct dev_desc *ret);

/* For the GPU's own code: access to an open CUDA device. */
struct dev_cuda_info {
    int capability;      /* 90 for 9.0 */
    int processors;      /* streaming multiprocessors */
    int shared;          /* bytes of shared memory that a block may ask for */
    int driver, runtime; /* as CUDA numbers its versions: 13000 */
};
struct dev_cuda_info dev_cuda_info(const struct dev *d);

/* A cudaStream_t. */
void *dev_cuda_stream(const struct dev *d, int stream);

/* Records the error of the last launch, if there is one, as the device's fault: "WHAT: sentence".
 */
void dev_cuda_check(struct dev *d, const char *what);
/* Records a fault that a library reported. Only the first is kept. */
void dev_cuda_fail(struct dev *d, const char *what, const char *why);

/* Milliseconds between two recorded events; waits for the second. */
double dev_cuda_elapsed(struct dev *d, int first, int second);

#endif

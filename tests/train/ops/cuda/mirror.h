/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_TRAIN_OPS_CUDA_MIRROR_H
#define TESTS_TRAIN_OPS_CUDA_MIRROR_H

/*
 * Runs the calls of twins on a GPU: the tensors of a world, with their guards and gaps, are copied
 * to device memory, the op runs there, and everything is copied back over the host's tensors.
 */

#include "tests/train/ops/twins.h"

struct mirror {
    struct dev dev;
    struct slab workspace;
    struct ops ops;
    char *memory;
    size_t size;
};

/* Skips the case where no GPU can be used. The workspace has `workspace` bytes. */
void mirror_open(struct mirror *m, size_t workspace);
void mirror_close(struct mirror *m);

/* Scratch is poisoned first. A fault of the device, or a write outside of a tensor, fails the
 * case. */
void mirror_run(struct mirror *m, struct world *w, const struct call *c);

/* A tensor on the host, anywhere in a piece of `w`, as it lies in device memory since the last
 * mirror_upload. */
struct tensor mirror_tensor(const struct mirror *m, const struct world *w, struct tensor t);
void mirror_upload(struct mirror *m, const struct world *w);
void mirror_download(struct mirror *m, struct world *w);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_TENSOR_CUDA_LIBRARY_H
#define TRAIN_TENSOR_CUDA_LIBRARY_H

/*
 * Shared libraries of NVIDIA that are opened when they are needed, so that a program built with
 * CUDA starts where they are absent. They are looked for in the folders of `path` (separated by
 * colons; NULL: none), where the system's loader looks, in Python environments and folders of
 * packages that `path` names, in the CUDA toolkit's folder, and where pip puts PyTorch's: in the
 * environments of VIRTUAL_ENV and of the first python3 of PATH, and in ~/.local.
 */

#include "base/core/err.h"

struct library {
    void *handle;
    char file[512]; /* as it was opened */
};

/*
 * Opens the first of `names` (NULL behind the last) that exists. ERR_RESOURCE names the first of
 * them and the loader's reason.
 */
int library_open(struct library *ret, const char *path, const char *const *names, struct err *e);

/* The addresses of n functions, into an array of pointers to functions. ERR_RESOURCE names the
 * function that is missing. */
int library_functions(const struct library *l, const char *const *names, int n, void *ret,
                      struct err *e);

void library_close(struct library *l);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_TENSOR_SLAB_H
#define TRAIN_TENSOR_SLAB_H

/*
 * A slab is one named block of memory from which tensors are cut in order. It is used twice by the
 * same code: first unbound, when it only measures (the tensors have addresses that nobody may
 * touch), then bound to memory of exactly the size that was measured. Pieces are aligned to 256
 * bytes. The workspace slab is used as a stack: mark, take, reset; its size is the peak.
 */

#include "train/tensor/dev.h"
#include "train/tensor/tensor.h"

struct slab {
    const char *name; /* "parameters" */
    enum place place;
    char *base;        /* NULL: measuring */
    size_t size;       /* bytes bound */
    size_t used, peak; /* bytes */
};

void slab_init(struct slab *s, const char *name, enum place place);

struct tensor slab_take(struct slab *s, enum dtype d, int rank, const int64_t *size);
struct tensor slab_1d(struct slab *s, enum dtype d, int64_t n);
struct tensor slab_2d(struct slab *s, enum dtype d, int64_t rows, int64_t cols);
void *slab_bytes(struct slab *s, size_t bytes);

static inline size_t slab_mark(const struct slab *s)
{
    return s->used;
}

static inline void slab_reset(struct slab *s, size_t mark)
{
    s->used = mark;
}

/* Binds memory of the measured peak, zeroed, and starts again from the front. ERR_RESOURCE names
 * slab and bytes. */
int slab_bind(struct slab *s, struct dev *d, struct err *e);
void slab_release(struct slab *s, struct dev *d);

#endif

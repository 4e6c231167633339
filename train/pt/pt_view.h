/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_PT_PT_VIEW_H
#define TRAIN_PT_PT_VIEW_H

/* Tensors of a PyTorch file whose elements need not follow one another, for pt.c alone. */

#include "base/core/arena.h"
#include "train/ckpt/safetensors.h"

struct pt_view {
    struct st_entry entry;       /* begin: the first element in the file */
    int64_t stride[ST_RANK_MAX]; /* elements */
};

/* What a struct st_file of PyTorch owns. */
struct pt_own {
    struct arena arena;   /* names */
    struct pt_view *view; /* those with strides of their own, by the addresses of their names */
    size_t n;
};

/* Makes *s a file whose boxes are read by these functions, and which frees the result. */
struct pt_own *pt_views_begin(struct st_file *s);

/* Makes n tensors the entries of `s`, which pt_views_begin has begun. ERR_DATA for two of one name.
 */
int pt_views_take(struct pt_own *own, const char *name, const struct pt_view *view, size_t n,
                  struct st_file *s, struct err *e);

#endif

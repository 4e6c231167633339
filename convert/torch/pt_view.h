/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CONVERT_TORCH_PT_VIEW_H
#define CONVERT_TORCH_PT_VIEW_H

/* Tensors of a PyTorch file whose elements need not follow one another, for pt.c alone. */

#include <pthread.h>

#include "base/core/arena.h"
#include "train/ckpt/safetensors.h"

struct pt_view {
    struct st_entry entry;       /* begin: the first element in the file */
    int64_t stride[ST_RANK_MAX]; /* elements */
};

/* A member of the archive, and a piece of one that was read. */
struct pt_member {
    const char *name;
    uint64_t at, size; /* in the file */
    uint32_t crc;      /* 0: none */
};

struct pt_seen {
    uint64_t at, n;
    uint32_t crc;
};

/* What a struct st_file of PyTorch owns. */
struct pt_own {
    struct arena arena;   /* names */
    struct pt_view *view; /* those with strides of their own, by the addresses of their names */
    size_t n;
    struct pt_member *member; /* stored ones, by name */
    size_t members;
    pthread_mutex_t lock; /* of what follows */
    struct pt_seen *seen;
    size_t nseen, cap;
    bool lost; /* there were too many pieces to note */
};

/* Makes *s a file whose boxes are read by these functions, and which frees the result. */
struct pt_own *pt_views_begin(struct st_file *s);

/* Makes n tensors the entries of `s`, which pt_views_begin has begun. ERR_DATA for two of one name.
 */
int pt_views_take(struct pt_own *own, const char *name, const struct pt_view *view, size_t n,
                  struct st_file *s, struct err *e);

/* st_check and the noting of what is read (safetensors.h). */
void pt_saw(const struct st_file *s, uint64_t at, const void *p, size_t n);
int pt_check(const struct st_file *s, struct err *e);

#endif

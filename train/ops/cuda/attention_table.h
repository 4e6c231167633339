/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_OPS_CUDA_ATTENTION_TABLE_H
#define TRAIN_OPS_CUDA_ATTENTION_TABLE_H

/*
 * Which kernels serve a call of attention: the first row of the table that takes it. What a row
 * takes follows from shapes, types and the device's description, so the choice can be told without
 * a GPU; of cuDNN's row it is what it is asked for, and preparing decides (attend.h).
 */

#include "train/ops/ops.h"

struct attention_call {
    const struct dev_desc *desc;
    const struct attention_args *fwd;
    const struct attention_bwd_args *bwd; /* NULL: the forward is called */
    bool tf32;                            /* products of F32 may be in TF32 */
};

struct attention_row {
    const char *name; /* for users */
    double times;     /* how long forward and backward take, measured in those of cuDNN, where
                         both take a call */
    bool loops;       /* one thread or warp for a score: to be warned of */
    /* What of the call it does not take, as in "takes no ..."; NULL: it takes it. */
    const char *(*lacks)(const struct attention_call *c);
    /* as entries of the table; NULL in cuDNN's row, which attend.h runs */
    void (*forward)(struct ops *o, const void *args, void *scratch);
    void (*backward)(struct ops *o, const void *args, void *scratch);
};

enum { ATTENTION_CUDNN, ATTENTION_OWN /* the first row that needs no library */ };

/* The first row from `first` on; there is one for every call. */
const struct attention_row *attention_row_of(const struct attention_call *c, int first);
bool attention_row_is_cudnn(const struct attention_row *r);

/* Of the backward, by any row of our own. */
size_t attention_own_scratch(const struct dev_desc *d, const struct attention_bwd_args *b);

/* ---- what was chosen while a step was planned: for each kind of layer a row ---- */

struct attention_uses {
    struct attention_use *at;
    size_t n;
    char names[160]; /* of all rows, each once */
};

/* `version` of cuDNN, or NULL; `why` cuDNN refused the call that it was asked for, or NULL. */
void attention_uses_add(struct attention_uses *u, const struct attention_row *r,
                        const struct attention_call *c, int layer, const char *version,
                        const char *why);
/* The i-th kind of layers, as ops_served tells it; false past the last. */
bool attention_uses_get(const struct attention_uses *u, size_t i, struct ops_served *ret);
void attention_uses_finish(struct attention_uses *u);

#endif

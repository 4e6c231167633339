/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_OPS_CPU_FAST_H
#define TRAIN_OPS_CPU_FAST_H

/*
 * The faster entries, for float: threads of the device's pool over vectors of vec.h. Work is cut
 * into tasks by sizes alone; what a task adds up it adds in a fixed order.
 */

#include "train/ops/cpu/vec.h"
#include "train/ops/ops.h"

#define FAST(name) VEC(name)

/* Elements that are worth a task: some 10 us of memory traffic. */
enum { GRAIN = 16384 };

/* Consecutive pieces (rows, elements) in the hands of one task. */
struct range {
    int64_t begin, end;
};

static inline int64_t at_least_one(int64_t n)
{
    return n > 1 ? n : 1;
}

/* Rows for one task when each has `width` elements. */
static inline int64_t grain_rows(int64_t width)
{
    return at_least_one(GRAIN / at_least_one(width));
}

static inline int grain_tasks(int64_t n, int64_t width)
{
    int64_t rows = grain_rows(width);
    return (int)((n + rows - 1) / rows);
}

static inline struct range grain_range(int64_t n, int64_t width, int task)
{
    int64_t rows = grain_rows(width), begin = task * rows;
    return (struct range){begin, begin + rows < n ? begin + rows : n};
}

/* Part `i` of `parts`, as even as can be. */
static inline struct range even_range(int64_t n, int64_t parts, int64_t i)
{
    return (struct range){n * i / parts, n * (i + 1) / parts};
}

static inline float *row(struct tensor t, int64_t i)
{
    return (float *)t.data + i * t.stride;
}

static inline const int32_t *ints(struct tensor t)
{
    return t.data;
}

void FAST(fill_table)(struct ops *o);

void FAST(embed)(struct ops *o, const void *args, void *scratch);
void FAST(embed_bwd)(struct ops *o, const void *args, void *scratch);
void FAST(norm)(struct ops *o, const void *args, void *scratch);
void FAST(norm_bwd)(struct ops *o, const void *args, void *scratch);
size_t FAST(norm_bwd_scratch)(const struct dev_desc *d, const void *args);
void FAST(glu)(struct ops *o, const void *args, void *scratch);
void FAST(glu_bwd)(struct ops *o, const void *args, void *scratch);
void FAST(gate)(struct ops *o, const void *args, void *scratch);
void FAST(gate_bwd)(struct ops *o, const void *args, void *scratch);
void FAST(head_norm)(struct ops *o, const void *args, void *scratch);
void FAST(head_norm_bwd)(struct ops *o, const void *args, void *scratch);
size_t FAST(head_norm_bwd_scratch)(const struct dev_desc *d, const void *args);
void FAST(cap)(struct ops *o, const void *args, void *scratch);
void FAST(rope)(struct ops *o, const void *args, void *scratch);
void FAST(matmul)(struct ops *o, const void *args, void *scratch);
size_t FAST(matmul_scratch)(const struct dev_desc *d, const void *args);
/* Scratch of a matmul of at most these sizes. */
size_t FAST(matmul_most)(int64_t m, int64_t n, int64_t k);
void FAST(grouped)(struct ops *o, const void *args, void *scratch);
size_t FAST(grouped_scratch)(const struct dev_desc *d, const void *args);
void FAST(grouped_bwd)(struct ops *o, const void *args, void *scratch);
size_t FAST(grouped_bwd_scratch)(const struct dev_desc *d, const void *args);
void FAST(permute)(struct ops *o, const void *args, void *scratch);
void FAST(permute_bwd)(struct ops *o, const void *args, void *scratch);
void FAST(unpermute)(struct ops *o, const void *args, void *scratch);
void FAST(unpermute_bwd)(struct ops *o, const void *args, void *scratch);

void FAST(attention)(struct ops *o, const void *args, void *scratch);
size_t FAST(attention_scratch)(const struct dev_desc *d, const void *args);
void FAST(merge)(struct ops *o, const void *args, void *scratch);
void FAST(attention_bwd)(struct ops *o, const void *args, void *scratch);
size_t FAST(attention_bwd_scratch)(const struct dev_desc *d, const void *args);

void FAST(xent_stats)(struct ops *o, const void *args, void *scratch);
void FAST(xent_loss)(struct ops *o, const void *args, void *scratch);
size_t FAST(xent_loss_scratch)(const struct dev_desc *d, const void *args);
void FAST(adamw)(struct ops *o, const void *args, void *scratch);
void FAST(sgd)(struct ops *o, const void *args, void *scratch);
void FAST(sumsq)(struct ops *o, const void *args, void *scratch);
size_t FAST(sumsq_scratch)(const struct dev_desc *d, const void *args);
void FAST(fill)(struct ops *o, const void *args, void *scratch);
void FAST(copy)(struct ops *o, const void *args, void *scratch);

#endif

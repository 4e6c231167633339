/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_OPS_CPU_REF_H
#define TRAIN_OPS_CPU_REF_H

/*
 * Plain C that defines each op. The ref_*.c files are compiled twice, with WEFT_REAL 32 and 64: the
 * same lines define the op for float, and for the double in which gradients are checked. One
 * thread, no tricks; whatever is summed or evaluated is so in double and rounded when it is stored.
 */

#include "train/ops/ops.h"

#if WEFT_REAL == 32
typedef float real;
#define REF(name) ref32_##name
#elif WEFT_REAL == 64
typedef double real;
#define REF(name) ref64_##name
#else
#error "WEFT_REAL must be 32 or 64"
#endif

/* Row i of a tensor: of a matrix, or of [n, heads, dim]. */
static inline real *row(struct tensor t, int64_t i)
{
    return (real *)t.data + i * t.stride;
}

/* Head h of row i of [n, heads, dim]. */
static inline real *head(struct tensor t, int64_t i, int64_t h)
{
    return row(t, i) + h * t.size[2];
}

static inline const int32_t *ints(struct tensor t)
{
    return t.data;
}

void REF(embed)(struct ops *o, const void *args, void *scratch);
void REF(embed_bwd)(struct ops *o, const void *args, void *scratch);
void REF(norm)(struct ops *o, const void *args, void *scratch);
void REF(norm_bwd)(struct ops *o, const void *args, void *scratch);
void REF(matmul)(struct ops *o, const void *args, void *scratch);
void REF(glu)(struct ops *o, const void *args, void *scratch);
void REF(glu_bwd)(struct ops *o, const void *args, void *scratch);
void REF(rope)(struct ops *o, const void *args, void *scratch);
void REF(attention)(struct ops *o, const void *args, void *scratch);
void REF(attention_bwd)(struct ops *o, const void *args, void *scratch);
size_t REF(attention_scratch)(const struct dev_desc *d, const void *args);
size_t REF(attention_bwd_scratch)(const struct dev_desc *d, const void *args);
void REF(merge)(struct ops *o, const void *args, void *scratch);
void REF(xent_stats)(struct ops *o, const void *args, void *scratch);
void REF(xent_loss)(struct ops *o, const void *args, void *scratch);
void REF(cap)(struct ops *o, const void *args, void *scratch);
void REF(adamw)(struct ops *o, const void *args, void *scratch);
void REF(sgd)(struct ops *o, const void *args, void *scratch);
void REF(sumsq)(struct ops *o, const void *args, void *scratch);
void REF(clip)(struct ops *o, const void *args, void *scratch);
void REF(fill)(struct ops *o, const void *args, void *scratch);
void REF(copy)(struct ops *o, const void *args, void *scratch);
void REF(route)(struct ops *o, const void *args, void *scratch);
void REF(route_bwd)(struct ops *o, const void *args, void *scratch);
void REF(route_loss)(struct ops *o, const void *args, void *scratch);
void REF(permute)(struct ops *o, const void *args, void *scratch);
void REF(permute_bwd)(struct ops *o, const void *args, void *scratch);
void REF(unpermute)(struct ops *o, const void *args, void *scratch);
void REF(unpermute_bwd)(struct ops *o, const void *args, void *scratch);
void REF(grouped)(struct ops *o, const void *args, void *scratch);
void REF(grouped_bwd)(struct ops *o, const void *args, void *scratch);
void REF(gate)(struct ops *o, const void *args, void *scratch);
void REF(gate_bwd)(struct ops *o, const void *args, void *scratch);
void REF(head_norm)(struct ops *o, const void *args, void *scratch);
void REF(head_norm_bwd)(struct ops *o, const void *args, void *scratch);

void REF(moments)(struct ops *o, const void *args, void *scratch);
void REF(gsnr)(struct ops *o, const void *args, void *scratch);
void REF(momentum)(struct ops *o, const void *args, void *scratch);
void REF(decayed)(struct ops *o, const void *args, void *scratch);
void REF(combine)(struct ops *o, const void *args, void *scratch);
void REF(unit)(struct ops *o, const void *args, void *scratch);
void REF(select)(struct ops *o, const void *args, void *scratch);

#endif

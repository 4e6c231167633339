/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_TENSOR_BOX_OPS_H
#define TRAIN_TENSOR_BOX_OPS_H

/*
 * What a conversion does to boxes besides copying them (box.h). Each works on what the boxes have
 * in common, casts where types differ, and calculates in float with one rounding at the end. Memory
 * of the two sides must not overlap. Nothing is owned.
 */

#include "train/tensor/box.h"

/*
 * to[r, c] = from[c, r]: the box of `from` is one of the transposed tensor. Returns the number of
 * elements copied.
 */
int64_t box_copy_transposed(struct box_mem to, struct box_mem from);

/* m[r, c] += v, as of norms that are stored less one. */
void box_add(struct box_mem m, float v);

/*
 * m[r, c] += scale * (sum over k of b[r, k] * a[k, c]): a low-rank update by matrices [rows, rank]
 * and [rank, columns] of the whole tensor, row after row.
 */
void box_add_low_rank(struct box_mem m, const float *b, const float *a, int64_t rank,
                      int64_t columns, float scale);

#endif

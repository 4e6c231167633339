/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_TENSOR_BOX_H
#define TRAIN_TENSOR_BOX_H

/*
 * Boxes of global tensors and the one copy engine: intersect, check that all is covered once,
 * copy with strides, cast. Saving, loading and every conversion are made of these calls.
 *
 * A global tensor has one or two dimensions; one of n elements counts as [n, 1]. A box is a
 * range of rows and a range of columns of it. Plain values; nothing is owned.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "train/tensor/tensor.h"

struct box {
    int64_t begin[2], count[2];
};

/* A box of a tensor's elements in host memory: row r of the box begins at data + r * stride. */
struct box_mem {
    void *data; /* the box's first element; need not be aligned */
    enum dtype dtype;
    struct box box; /* of the global tensor */
    int64_t stride; /* elements between rows */
};

/* The whole of a tensor of rank 1 or 2. */
struct box box_whole(int rank, const int64_t *size);
int64_t box_count(struct box b); /* elements */
bool box_inside(struct box b, struct box whole);
bool box_equal(struct box a, struct box b);

/* False when they have no element in common; `*ret` is then empty. */
bool box_intersect(struct box a, struct box b, struct box *ret);

enum box_flaw { BOX_COVERED, BOX_OUTSIDE, BOX_OVERLAP, BOX_HOLE, BOX_TOO_MANY };
enum { BOX_PARTS_MAX = 1 << 15 };

/*
 * Whether `parts` cover `whole` exactly once. Reorders the parts by where they begin. If not, `*at`
 * is the index (in the new order) of the part that is out of bounds or overlaps the one before; n
 * for a hole. Empty parts are allowed anywhere inside.
 */
enum box_flaw box_cover(struct box whole, struct box *parts, size_t n, size_t *at);

/* What a cast needs: both are floating types, or both are the same. */
bool box_can_cast(enum dtype from, enum dtype to);

/*
 * Copies what the two have in common, casting to the nearest value (ties to even) where types
 * differ. Returns the number of elements copied. Memory must not overlap.
 */
int64_t box_copy(struct box_mem to, struct box_mem from);

/* n elements from one type to another; equal types are copied. A NaN stays one. */
void box_cast(void *to, enum dtype to_type, const void *from, enum dtype from_type, int64_t n);

/* The same element by element between floating types: what box_cast is held against. */
void box_cast_plain(void *to, enum dtype to_type, const void *from, enum dtype from_type,
                    int64_t n);

/*
 * The elements [begin, end) of `whole`, counted row by row, as at most three boxes in their order:
 * a range of a flat ZeRO buffer. Returns how many.
 */
size_t box_of_range(struct box whole, int64_t begin, int64_t end, struct box ret[3]);

#endif

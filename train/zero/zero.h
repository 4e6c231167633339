/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_ZERO_ZERO_H
#define TRAIN_ZERO_ZERO_H

/*
 * Who owns which gradients, as integers: the flat slab of a rank's parameters (params.elements, in
 * the order of the parameter table) is padded, cut into buckets, and each bucket into equal shares
 * of the ranks that hold the same parameters (ZeRO; Megatron-LM's distributed optimizer). A share
 * begins anywhere in a parameter; as a part of global tensors it is a list of boxes, which is what
 * checkpoints are made of.
 */

#include <stdint.h>

#include "train/spec/param.h"
#include "train/tensor/box.h"

/* A box of a global tensor that lies in a range of the slab. */
struct zero_box {
    int param, source; /* params.at[param].source[source] */
    struct box box;    /* of the global tensor */
    int64_t at;        /* element of the slab that holds the box's first one */
    int64_t stride;    /* elements from a row of the box to the next */
};

/*
 * The elements [begin, end) of the slab, in its order, into fresh memory (free): at most three
 * boxes for each tensor. Gaps and padding rows belong to none. Returns how many; none leaves *ret
 * NULL.
 */
size_t zero_boxes(const struct params *p, int64_t begin, int64_t end, struct zero_box **ret);

/* A range of the slab. */
struct zero_range {
    int64_t begin, end;
};

/* Elements of the slab when it is shared out to `shares` ranks: a multiple of 64 x shares. */
int64_t zero_padded(int64_t elements, int shares);

/*
 * A bucket's gradients are complete when those of the parameters from `param` to the last one are:
 * backward completes the parameters of the table from the end to the beginning (a tied embedding
 * with the embedding, not with the head).
 */
struct zero_bucket {
    struct zero_range range; /* a multiple of 64 x shares elements */
    int param;               /* the first that has elements in it, as an index of params.at */
};

/*
 * Buckets in the order in which they are complete, into fresh memory (free): together the padded
 * slab, each of at least `size` elements (but the last), rounded up to what shares out evenly.
 * Returns how many.
 */
size_t zero_buckets(const struct params *p, int64_t size, int shares, struct zero_bucket **ret);

/* Megatron-LM's usual size of a bucket (--ddp-bucket-size), in elements. */
int64_t zero_bucket_size(int shares);

/* The share of rank `k` of a range that shares out evenly. */
struct zero_range zero_share(struct zero_range r, int shares, int k);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_ZERO_SPLIT_H
#define TRAIN_ZERO_SPLIT_H

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
    bool experts;            /* in the experts' part of the slab */
    int shares, at;          /* ranks that share it out, and this one's number (zero_split) */
};

/*
 * Buckets in the order in which they are complete, into fresh memory (free): together the padded
 * slab, each of at least `size` elements (but the last), rounded up to what shares out evenly.
 * Returns how many.
 */
size_t zero_buckets(const struct params *p, int64_t size, int shares, struct zero_bucket **ret);

/*
 * The same where a layer is what is gathered and freed (ZeRO 2 and 3): one bucket for each unit of
 * the model, the last first: the final norm with the head, the layers, the embedding with positions
 * (struct model_units). params_build has padded each to a multiple of 64 x shares. Without the
 * experts' part of the slab.
 */
size_t zero_units(const struct params *p, int shares, struct zero_bucket **ret);

/* The unit that a parameter belongs to: 0 the embedding's, 1 + layer, layers + 1 the head's. */
int zero_unit_of(const struct params *p, const struct param *q);

/*
 * What a rank keeps under ZeRO: its share of each bucket. A tensor of the kept elements has them in
 * the order of the slab, without gaps.
 */
struct zero_split {
    int stage;      /* 0 to 3; 0: all ranks keep all, and there is one piece */
    int shares, at; /* ranks that share out the slab, and this one's number */
    struct zero_bucket *bucket;
    size_t n;         /* buckets */
    int64_t elements; /* of the slab */
    int64_t kept;
    int64_t experts, kept_before; /* where the experts' part begins, what is kept before it */
};

/* The part of a bucket that is kept: elements of the slab, and the first one's place among those
 * kept. */
struct zero_piece {
    int64_t begin, end, at;
};

void zero_split_build(struct zero_split *ret, const struct params *p, int stage, int64_t size,
                      int shares, int at);
/* Shares out the experts' part to its own ranks, where a model has one: after zero_split_build. Its
 * buckets come first, as backward completes the end of the slab first; under ZeRO 2 and 3 they are
 * one for each layer with experts. */
void zero_split_experts(struct zero_split *z, const struct params *p, int64_t size, int shares,
                        int at);
void zero_split_finish(struct zero_split *z);

/* Pieces in the order of the slab: 0 to zero_pieces - 1. */
size_t zero_pieces(const struct zero_split *z);
struct zero_piece zero_piece(const struct zero_split *z, size_t i);

/* The same for what a tensor of `numbers` holds: all elements of the slab in one piece, or those
 * that are kept. */
size_t zero_pieces_of(const struct zero_split *z, int64_t numbers);
struct zero_piece zero_piece_of(const struct zero_split *z, int64_t numbers, size_t i);

/* Cuts the piece to [begin, end); false: nothing is left. */
bool zero_cut(struct zero_piece *p, int64_t begin, int64_t end);

/* Where the elements of a kept piece lie in a tensor of `numbers`. */
int64_t zero_place(const struct zero_split *z, int64_t numbers, struct zero_piece p);

/* Megatron-LM's usual size of a bucket (--ddp-bucket-size), in elements. */
int64_t zero_bucket_size(int shares);

/* The share of rank `k` of a range that shares out evenly. */
struct zero_range zero_share(struct zero_range r, int shares, int k);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_TUNE_TUNE_H
#define TRAIN_TUNE_TUNE_H

/*
 * The algorithms of matrix products (struct ops_choice) where they are kept: in the file of
 * --tune-gemm, and in a checkpoint, among its kernels as "matmul SHAPE".
 *
 * The file is text. Lines that begin with # and empty ones mean nothing; each other line is
 *
 *     SHAPE ALGORITHM [MICROSECONDS [THOSE OF THE FIRST CHOICE]]
 *
 * of which the table of ops alone knows what the first two mean.
 */

#include "train/ckpt/ckpt.h"
#include "train/ops/ops.h"

struct tune {
    struct ops_choice *at; /* the first of a shape counts */
    size_t n, room;
    size_t in_file; /* of which came out of the file */
};

/* Zeroed is empty. */
void tune_finish(struct tune *t);

/*
 * Those of the file (none if it does not exist; `path` NULL: no file), then those of the checkpoint
 * (`m` NULL: none). ERR_DATA names the file and the line.
 */
int tune_open(struct tune *t, const char *path, const struct ckpt_meta *m, struct err *e);

/* What a table has come to. */
struct tune_result {
    size_t products, timed;
    size_t lacking;    /* not in the file and not timed, or not taken by the library */
    size_t others;     /* of the checkpoint's that are done by other algorithms now */
    char example[160]; /* the first of these */
};
struct tune_result tune_result(const struct tune *t, const struct ops *o);

/* Writes the file if anything was timed, and logs that, or what differs from what was wanted. */
int tune_report(const struct tune *t, const struct ops *o, const char *path, struct err *e);

/* A checkpoint's kernels: what does products, norms and attention, then each choice. Free by
 * tune_pairs_finish. */
struct tune_pairs {
    struct ckpt_pair *pair;
    size_t n;
    char (*text)[2][200];
};
void tune_pairs(struct tune_pairs *ret, const struct ops *o);
void tune_pairs_finish(struct tune_pairs *p);

#endif

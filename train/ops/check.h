/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_OPS_CHECK_H
#define TRAIN_OPS_CHECK_H

/* What a call's tensors must be, for the files of this module; a mistake ends in BUG. */

#include "train/ops/ops.h"

struct check {
    enum op op;
    const struct ops *o;
};

#define CHECK_OF(id) ((struct check){id, o})

/* Type and shape, enough stride, memory behind it. */
void ops_need(struct check c, const char *what, struct tensor t, enum dtype d, int rank,
              const int64_t *size);

/* A vector of n, a matrix of rows x cols. */
void ops_need_1d(struct check c, const char *what, struct tensor t, enum dtype d, int64_t n);
void ops_need_2d(struct check c, const char *what, struct tensor t, enum dtype d, int64_t rows,
                 int64_t cols);

/* n x heads x dim of the type `real`. */
void ops_need_3d(struct check c, const char *what, struct tensor t, int64_t n, int64_t heads,
                 int64_t dim);

/* Nothing is given; `why` ends the sentence "it is given ...". */
void ops_need_none(struct check c, const char *what, struct tensor t, const char *why);

/* That the table is the host's, for a form of an op that only its tables have. */
void ops_need_host(const struct ops *o, enum op op, const char *form);

/* n: rows of the tensor; 0 where they cannot have numbers of their own. */
void ops_need_drop(struct check c, struct dropout d, int64_t n);

/* What stochastic rounding reads, if there is any (rounding.h). */
void ops_need_rounding(struct check c, struct rounding r);

#endif

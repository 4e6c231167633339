/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_OPS_EXPERTS_H
#define TRAIN_OPS_EXPERTS_H

/*
 * The ops of a mixture of experts; a part of ops.h, whose rules hold. n tokens, E experts, k of
 * them for each token, slots: the n * k pairs of a token and one of its experts, ordered by expert
 * and then by token. Tensors of routing are `stat` (prob, lse, weight and their gradients) or I32.
 * No token is dropped.
 */

#include "train/ops/ops.h"

/*
 * The router: prob [n,E] = softmax of each row of logits [n,E], lse [n] the log of its sum of
 * exponentials. choice [n,k]: the k experts of the largest probability, largest first, of equals
 * the first; weight [n,k] their probabilities, with `normalize` divided by their sum (which is the
 * softmax over the k logits alone, as of Mixtral). count [E]: tokens of each expert; slot [n,k]:
 * the number of each pair among the slots; start [E+1] the first slot of each expert, and n * k.
 */
struct route_args {
    struct tensor logits, prob, lse, weight;
    struct tensor choice, slot /* I32 [n,k] */, count /* I32 [E] */, start /* I32 [E+1] or none */;
    bool normalize;
};

/*
 * dlogits [n,E] of dweight [n,k], and of two losses: balance * sum over i, e of
 * prob[i,e] * total[e], and z * sum over i of lse[i]^2. total [E] is a count that no gradient goes
 * through. A loss with the factor 0 takes no part. Both factors are multiplied by `scale`.
 */
struct route_bwd_args {
    struct tensor dlogits, dweight, prob, lse, weight, choice, total /* I32 [E] */;
    struct tensor scale; /* F64 [1] or none: 1 */
    bool normalize;
    double balance, z;
};

/*
 * The two losses themselves: sums (F64 [2]) += balance * sum of prob[i,e] * total[e], and
 * z * sum of lse[i]^2, in double.
 */
struct route_loss_args {
    struct tensor sums, prob, lse, total;
    double balance, z;
};

/* to[slot[i,j], C] = x[i, C] */
struct permute_args {
    struct tensor to, x, slot;
};

/* dx[i] = sum over j of dto[slot[i,j]], in the order of j. */
struct permute_bwd_args {
    struct tensor dx, dto, slot;
};

/* y[i] = sum over j of weight[i,j] * from[slot[i,j]], in the order of j. */
struct unpermute_args {
    struct tensor y, from, slot, weight;
};

/* dfrom[slot[i,j]] = weight[i,j] * dy[i]; dweight[i,j] = dy[i] . from[slot[i,j]] */
struct unpermute_bwd_args {
    struct tensor dfrom, dweight, dy, from, slot, weight;
};

/*
 * One product for each group of rows: rows start[g] .. start[g+1] - 1 of y and x, with the matrix
 * g % E of w [E,O,I]: y = x w^T (x [rows,I], y [rows,O]), with `backward` y = x w (x [rows,O],
 * y [rows,I]). start [groups+1] is I32, begins with 0 and does not fall; groups are a multiple of
 * E. Rows from start[groups] on are neither read nor written. `expected`: rows that op_cost counts;
 * 0: all.
 */
struct grouped_args {
    struct tensor y, x, w, start;
    bool backward;
    int64_t expected;
};

/* dw[g % E] += dy^T x over the rows of each group, in the order of groups. dw [E,O,I] is `grad`. */
struct grouped_bwd_args {
    struct tensor dw, dy, x, start;
    int64_t expected;
};

/* y[i] = x[i] * sigmoid(logit[i]); y, x [n,F], logit [n,1]: the gate of a shared expert. */
struct gate_args {
    struct tensor y, x, logit;
};

/* dx[i] = dy[i] * sigmoid(logit[i]); dlogit[i] = dy[i] . x[i] * sigmoid'(logit[i]). dx may be dy.
 */
struct gate_bwd_args {
    struct tensor dx, dlogit, dy, x, logit;
};

void op_route(struct ops *o, const struct route_args *a);
void op_route_bwd(struct ops *o, const struct route_bwd_args *a);
void op_route_loss(struct ops *o, const struct route_loss_args *a);
void op_permute(struct ops *o, const struct permute_args *a);
void op_permute_bwd(struct ops *o, const struct permute_bwd_args *a);
void op_unpermute(struct ops *o, const struct unpermute_args *a);
void op_unpermute_bwd(struct ops *o, const struct unpermute_bwd_args *a);
void op_grouped(struct ops *o, const struct grouped_args *a);
void op_grouped_bwd(struct ops *o, const struct grouped_bwd_args *a);
void op_gate(struct ops *o, const struct gate_args *a);
void op_gate_bwd(struct ops *o, const struct gate_bwd_args *a);

/* Of op_cost, for these. */
struct op_cost experts_cost(enum op op, const void *args);

#endif

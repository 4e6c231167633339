/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_MODEL_EXPERTS_H
#define TRAIN_MODEL_EXPERTS_H

/*
 * A layer's mixture of experts in the place of its MLP (experts.c). E experts, e of them on this
 * rank, k for each token; r rows of the stream that this rank routes, p = r k pairs of a row and an
 * expert, m the rows that the experts of this rank have room for, F channels of an expert here.
 *
 * Every row goes to its k experts, whatever the others choose: no token is dropped. What an expert
 * gets is known only when the router has run. If all ranks' experts were chosen alike, each rank's
 * would get p rows; they have room for model.expert_factor as many, but for no more than can come.
 * Where a rank gets more than m, rows travel in several rounds of at most m to a rank, and the
 * backward pass computes them again (rounds.h): any choice has a result in the same memory.
 */

#include "train/comm/comm.h"
#include "train/ops/experts.h"

struct model;
struct model_pass;

/* What a forward pass keeps for its backward pass. */
struct expert_acts {
    struct tensor prob, lse, weight;   /* [r,E] [r] [r,k] */
    struct tensor choice, slot, total; /* [r,k] [r,k], [E] rows of each expert, of all ranks that
                                          share the sequences */
    struct tensor in, pre, h;          /* [m,C] [m,2F] [m,F]: rows of the last round by sender and
                                          expert */
    struct tensor out;                 /* [p,C]: of each pair */
    struct tensor start;               /* [senders e + 1]: where each group of rows begins */
    /* On the host: pairs of each expert by rank of the group [senders, E]; and of a round start,
     * rows to and from each rank, and where those to it begin among this rank's pairs. */
    int32_t *counts, *starts;
    int64_t *give, *take, *at;
};

/* Of p, where a model does not say; 2 is the most that two ranks can get. */
enum { EXPERT_FACTOR = 2 };

/* Sizes of this rank. */
struct expert_shape {
    int64_t rows, pairs, room; /* r, p, m */
    int64_t experts, first;    /* those of this rank */
    int64_t ffn;
    int senders; /* ranks over which experts are spread */
};
struct expert_shape experts_shape(const struct model *m, int64_t tokens);

/* Cuts activations for one layer. Called twice, as slabs are; memory of the host is made once. */
void experts_take(const struct model *m, struct slab *activations, struct expert_acts *a);

/* From y2 to sub, as the MLP. */
void experts_forward(struct model *m, const struct model_pass *p, int l);
/* From dsub to dy, with the weights' gradients. */
void experts_backward(struct model *m, const struct model_pass *p, int l);

/* Adds the balancing and z losses of a layer to m->route_sums. Once a micro-batch. */
void experts_losses(struct model *m, const struct model_pass *p, int l);

#endif

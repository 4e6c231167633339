/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_MODEL_ROUNDS_H
#define TRAIN_MODEL_ROUNDS_H

/*
 * The way of a mixture's rows to the ranks of their experts and back, where several ranks share
 * out the experts. The rows that a rank gets are numbered by sender, then by expert; a round takes
 * `room` of these numbers on every rank, so that it is one round unless a rank gets more. All ranks
 * know the counts of all, and so the same rounds, without asking each other.
 *
 * Alone a rank has all rows where they are: one round, nothing travels.
 */

#include "train/model/model.h"

struct routing {
    struct expert_shape shape;
    struct expert_acts a; /* of the rows in hand */
    int rounds;
    int64_t got;              /* rows that this rank's experts have in this round */
    struct tensor in, pre, h; /* a's, of these rows */
};

/* How many rounds there are, from the router's `count` [E] of this rank's pairs. Else than alone
 * the counts of all ranks come to the host, which is waited for. */
void rounds_exchange(struct model *m, struct routing *g, struct tensor count);

/* In the backward pass: what the forward pass knew, and its last round. */
void rounds_resume(const struct model *m, struct routing *g);

/* Which rows travel in a round, and where each group of them begins. */
void rounds_begin(struct model *m, struct routing *g, int round);

/*
 * The round's rows of this rank's `pairs` to the ranks of their experts, whose `rows` [got] they
 * are there; and back from rows to pairs. `spare` has room for all pairs: rows that travel in
 * several rounds are put together in it.
 */
void rounds_send(struct model *m, const struct routing *g, struct tensor rows, struct tensor pairs,
                 struct tensor spare);
void rounds_return(struct model *m, const struct routing *g, struct tensor pairs,
                   struct tensor rows, struct tensor spare);

#endif

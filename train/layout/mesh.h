/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_LAYOUT_MESH_H
#define TRAIN_LAYOUT_MESH_H

/*
 * The mesh of ranks: integers only. A rank's place is (tp, dp, pp), with tensor parallel fastest
 * and pipeline slowest, as in Megatron, so that placements written for it hold. A group is the set
 * of ranks that differ from one another along one axis (or, GROUP_WORLD, all of them).
 */

#include "base/core/err.h"

enum group { GROUP_TP, GROUP_DP, GROUP_PP, GROUP_WORLD, GROUP_COUNT };

struct mesh {
    int tp, dp, pp; /* degrees, each at least 1 */
};

struct coord {
    int tp, dp, pp;
};

/* ERR_USAGE unless the degrees are positive and their product is `world`. */
int mesh_check(struct mesh m, int world, struct err *e);
struct coord mesh_coord(struct mesh m, int rank);
int mesh_rank(struct mesh m, struct coord c);
int mesh_group_size(struct mesh m, enum group g);
/* This rank's index within its group. */
int mesh_group_index(struct mesh m, int rank, enum group g);

#endif

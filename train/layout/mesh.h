/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_LAYOUT_MESH_H
#define TRAIN_LAYOUT_MESH_H

/*
 * The mesh of ranks: integers only. The world is tp x cp x dp x pp ranks. Experts cut the ranks of
 * a pipeline stage a second way, etp x ep x edp with edp = tp x cp x dp / (etp x ep), so ep is not
 * a factor of the world. Ranks are numbered as by Megatron-LM core_v0.12.3 (parallel_state.py, the
 * orders tp-cp-dp-pp and etp-ep-edp-pp, the first axis fastest), so that placements written for it
 * hold; with pp_before_dp (--use-tp-pp-dp-mapping) the orders are tp-cp-pp-dp and etp-ep-pp-edp.
 *
 * A group is the set of ranks that differ only along the group's axes. Its members are ordered by
 * those axes, the first fastest.
 */

#include <stdbool.h>

#include "base/core/err.h"

enum group {
    GROUP_TP,
    GROUP_CP,
    GROUP_DP,
    GROUP_DP_CP, /* context parallel fastest: those that hold the same weights */
    GROUP_PP,
    GROUP_EP,
    GROUP_ETP,
    GROUP_EDP,
    GROUP_SHARD, /* of GROUP_DP_CP, those that share out one copy of the optimizer's state (ZeRO) */
    GROUP_REPLICA, /* of GROUP_DP_CP, those that keep the same share: one rank of each copy */
    GROUP_ENDS,    /* the first and the last stage of a pipeline; ranks between are in none */
    GROUP_WORLD,
    GROUP_COUNT
};

/* Degrees, each at least 1. */
struct mesh {
    int tp, cp, dp, pp;
    int etp, ep; /* etp: tp or 1 */
    bool pp_before_dp;
    int instances; /* copies of the optimizer's state in GROUP_DP_CP; 0: one */
};

/* A rank's place in both cuts. */
struct coord {
    int tp, cp, dp, pp;
    int etp, ep, edp;
};

/* All degrees 1. */
struct mesh mesh_single(void);
/* Without experts: etp is tp, ep is 1. */
struct mesh mesh_dense(int tp, int cp, int dp, int pp);

/*
 * ERR_USAGE unless the degrees are positive, their product is `world`, the experts' degrees divide
 * it as described, and `instances` divides dp x cp. All functions below require a valid mesh.
 */
int mesh_check(struct mesh m, int world, struct err *e);

bool mesh_equal(struct mesh a, struct mesh b);
int mesh_world(struct mesh m);
int mesh_edp(struct mesh m);
/* Whether ranks of a stage hold different experts than they hold other weights. */
bool mesh_spreads_experts(struct mesh m);
struct coord mesh_coord(struct mesh m, int rank);
/* From tp, cp, dp and pp; the experts' members are not read. */
int mesh_rank(struct mesh m, struct coord c);

/* "data-parallel": for sentences. */
const char *mesh_group_name(enum group g);
int mesh_group_size(struct mesh m, enum group g);
/* This rank's index within its group; -1: it is in none (GROUP_ENDS). */
int mesh_group_index(struct mesh m, int rank, enum group g);
/* World rank of the member `index` of the group that `rank` is in. */
int mesh_group_rank(struct mesh m, int rank, enum group g, int index);

#endif

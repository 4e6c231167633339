/* SPDX-License-Identifier: Apache-2.0 */
#include "train/layout/mesh.h"

#include "tests/t.h"

static void ranks_and_coordinates_are_inverse(void)
{
    for (int tp = 1; tp <= 4; tp++)
        for (int dp = 1; dp <= 3; dp++)
            for (int pp = 1; pp <= 3; pp++) {
                struct mesh m = {tp, dp, pp};
                for (int r = 0; r < tp * dp * pp; r++)
                    T_EQ(mesh_rank(m, mesh_coord(m, r)), r);
            }
}

/* As in Megatron: tensor parallel fastest, then data, then pipeline. */
static void order_is_tp_dp_pp(void)
{
    struct mesh m = {2, 3, 2};
    T_EQ(mesh_coord(m, 1).tp, 1);
    T_EQ(mesh_coord(m, 2).dp, 1);
    T_EQ(mesh_coord(m, 6).pp, 1);
    T_EQ(mesh_group_size(m, GROUP_WORLD), 12);
    T_EQ(mesh_group_size(m, GROUP_DP), 3);
    T_EQ(mesh_group_index(m, 5, GROUP_DP), 2);
    T_EQ(mesh_group_index(m, 5, GROUP_WORLD), 5);
}

static void degrees_must_fit_the_world(void)
{
    struct err e;
    T_OK(mesh_check((struct mesh){2, 2, 2}, 8, &e), &e);
    T_ERR(mesh_check((struct mesh){2, 2, 2}, 7, &e), &e, ERR_USAGE, "number of ranks, 7");
    T_ERR(mesh_check((struct mesh){0, 2, 2}, 0, &e), &e, ERR_USAGE, "positive");
}

T_MAIN(T_CASE(ranks_and_coordinates_are_inverse), T_CASE(order_is_tp_dp_pp),
       T_CASE(degrees_must_fit_the_world))

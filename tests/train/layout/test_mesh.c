/* SPDX-License-Identifier: Apache-2.0 */
#include "train/layout/mesh.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/buf.h"
#include "base/io/path.h"
#include "tests/t.h"

static void ranks_and_coordinates_are_inverse(void)
{
    for (int tp = 1; tp <= 4; tp++)
        for (int cp = 1; cp <= 2; cp++)
            for (int dp = 1; dp <= 3; dp++)
                for (int pp = 1; pp <= 3; pp++)
                    for (int order = 0; order < 2; order++) {
                        struct mesh m = mesh_dense(tp, cp, dp, pp);
                        m.pp_before_dp = order != 0;
                        for (int r = 0; r < tp * cp * dp * pp; r++)
                            T_EQ(mesh_rank(m, mesh_coord(m, r)), r);
                    }
}

/* ---- rank_generator.txt: the groups that Megatron-LM's RankGenerator made (record.py) ---------
 */

static enum group group_named(const char *name)
{
    static const char *const names[GROUP_COUNT] = {
        [GROUP_TP] = "TP",     [GROUP_CP] = "CP",      [GROUP_DP] = "DP",   [GROUP_DP_CP] = "DP_CP",
        [GROUP_PP] = "PP",     [GROUP_EP] = "EP",      [GROUP_ETP] = "ETP", [GROUP_EDP] = "EDP",
        [GROUP_ENDS] = "ENDS", [GROUP_WORLD] = "WORLD"};
    for (int g = 0; g < GROUP_COUNT; g++)
        if (names[g] && strcmp(name, names[g]) == 0)
            return (enum group)g;
    t_fail(__FILE__, __LINE__, "group %s", name);
}

/* "0,1|2,3": each rank of each group finds itself and the others. Marks those that are in one. */
static void check_groups(struct mesh m, enum group g, const char *ranks, bool *member)
{
    while (*ranks) {
        int at[16], n = 0;
        do {
            char *end;
            T_CHECK(n < 16);
            at[n++] = (int)strtol(ranks, &end, 10);
            ranks = end;
        } while (*ranks++ == ',');
        T_EQ(mesh_group_size(m, g), n);
        for (int i = 0; i < n; i++) {
            member[at[i]] = true;
            T_EQ(mesh_group_index(m, at[i], g), i);
            for (int k = 0; k < n; k++)
                T_EQ(mesh_group_rank(m, at[i], g, k), at[k]);
        }
        if (!ranks[-1])
            break;
    }
}

static void groups_are_those_of_megatron(void)
{
    struct buf text = {0};
    struct err e;
    T_OK(file_read(t_source("tests/train/layout/rank_generator.txt"), 1 << 20, &text, &e), &e);
    buf_add(&text, "", 1);
    int lines = 0;
    char *next = text.data;
    for (char *line; (line = strsep(&next, "\n")) && *line; lines++) {
        struct mesh m = {0};
        char last[8], name[8];
        int at = 0;
        T_EQ(sscanf(line, "%d %d %d %d %d %d %7s %7s %n", &m.tp, &m.cp, &m.dp, &m.pp, &m.etp, &m.ep,
                    last, name, &at),
             8);
        m.pp_before_dp = strcmp(last, "dp") == 0;
        T_OK(mesh_check(m, mesh_world(m), &e), &e);
        bool member[16] = {0};
        enum group g = group_named(name);
        check_groups(m, g, line + at, member);
        for (int r = 0; r < mesh_world(m); r++)
            T_EQ(mesh_group_index(m, r, g) >= 0, member[r]);
    }
    T_EQ(lines, 1536);
    buf_finish(&text);
}

static void the_world_is_in_order_of_rank(void)
{
    for (int order = 0; order < 2; order++) {
        struct mesh m = mesh_dense(2, 1, 3, 2);
        m.pp_before_dp = order != 0;
        T_EQ(mesh_group_size(m, GROUP_WORLD), 12);
        for (int r = 0; r < 12; r++) {
            T_EQ(mesh_group_index(m, r, GROUP_WORLD), r);
            T_EQ(mesh_group_rank(m, 7, GROUP_WORLD, r), r);
        }
    }
}

/* As Megatron-LM's partial data-parallel groups: consecutive members of each data- and
 * context-parallel group have one copy of the optimizer's state. */
static void instances_cut_the_data_parallel_group(void)
{
    struct mesh m = mesh_dense(2, 2, 4, 1);
    struct err e;
    for (m.instances = 0; m.instances <= 8; m.instances = m.instances ? 2 * m.instances : 1) {
        int copies = m.instances ? m.instances : 1, shares = 8 / copies;
        T_OK(mesh_check(m, 16, &e), &e);
        T_EQ(mesh_group_size(m, GROUP_SHARD), shares);
        T_EQ(mesh_group_size(m, GROUP_REPLICA), copies);
        for (int r = 0; r < 16; r++) {
            int at = mesh_group_index(m, r, GROUP_DP_CP);
            T_EQ(mesh_group_index(m, r, GROUP_SHARD), at % shares);
            T_EQ(mesh_group_index(m, r, GROUP_REPLICA), at / shares);
            for (int k = 0; k < shares; k++)
                T_EQ(mesh_group_rank(m, r, GROUP_SHARD, k),
                     mesh_group_rank(m, r, GROUP_DP_CP, at / shares * shares + k));
            for (int k = 0; k < copies; k++)
                T_EQ(mesh_group_rank(m, r, GROUP_REPLICA, k),
                     mesh_group_rank(m, r, GROUP_DP_CP, k * shares + at % shares));
        }
    }
    m.instances = 3;
    T_ERR(mesh_check(m, 16, &e), &e, ERR_USAGE, "num-distributed-optimizer-instances 3");
}

/* ---- what is refused ---------------------------------------------------------------------------
 */

static void degrees_must_fit_the_world(void)
{
    struct err e;
    T_OK(mesh_check(mesh_dense(2, 1, 2, 2), 8, &e), &e);
    T_OK(mesh_check(mesh_single(), 1, &e), &e);
    T_ERR(mesh_check(mesh_dense(2, 1, 2, 2), 7, &e), &e, ERR_USAGE, "number of ranks, 7");
    T_ERR(mesh_check(mesh_dense(2, 2, 2, 2), 8, &e), &e, ERR_USAGE, "number of ranks, 8");
    T_ERR(mesh_check(mesh_dense(0, 1, 2, 2), 0, &e), &e, ERR_USAGE, "positive");
    T_ERR(mesh_check(mesh_dense(1 << 16, 1 << 16, 1 << 16, 1 << 16), INT_MAX, &e), &e, ERR_USAGE,
          "number of ranks");
    struct mesh m = mesh_single();
    m.ep = 0;
    T_ERR(mesh_check(m, 1, &e), &e, ERR_USAGE, "positive");
}

static void experts_must_fit_a_stage(void)
{
    struct err e;
    struct mesh m = mesh_dense(4, 1, 2, 1);
    m.etp = 2;
    T_ERR(mesh_check(m, 8, &e), &e, ERR_USAGE, "expected tensor-model-parallel-size, 4, or 1");
    m.etp = 1;
    m.ep = 8;
    T_OK(mesh_check(m, 8, &e), &e);
    T_EQ(mesh_edp(m), 1);
    m.etp = 4;
    T_ERR(mesh_check(m, 8, &e), &e, ERR_USAGE, "divisor of the 8 ranks of a pipeline stage");
    m.ep = 1 << 30;
    T_ERR(mesh_check(m, 8, &e), &e, ERR_USAGE, "divisor of the 8 ranks of a pipeline stage");
    m = mesh_dense(1, 1, 8, 1);
    m.etp = 2;
    T_ERR(mesh_check(m, 8, &e), &e, ERR_USAGE, "with tensor-model-parallel-size 1: expected 1");
    m = mesh_dense(2, 1, 2, 2);
    m.etp = 1;
    m.pp_before_dp = true;
    T_ERR(mesh_check(m, 8, &e), &e, ERR_USAGE, "data-parallel size, 4, to be");
    m.ep = 2;
    T_OK(mesh_check(m, 8, &e), &e);
    m = mesh_dense(2, 1, 4, 1); /* one stage: the order of the pipeline says nothing */
    m.etp = 1;
    m.pp_before_dp = true;
    T_OK(mesh_check(m, 8, &e), &e);
}

T_MAIN(T_CASE(ranks_and_coordinates_are_inverse), T_CASE(groups_are_those_of_megatron),
       T_CASE(the_world_is_in_order_of_rank), T_CASE(instances_cut_the_data_parallel_group),
       T_CASE(degrees_must_fit_the_world), T_CASE(experts_must_fit_a_stage))

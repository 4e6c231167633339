/* SPDX-License-Identifier: Apache-2.0 */
#include "train/layout/mesh.h"

int mesh_check(struct mesh m, int world, struct err *e)
{
    if (m.tp < 1 || m.dp < 1 || m.pp < 1 || m.tp * m.dp * m.pp != world)
        return err_set(e, ERR_USAGE,
                       "tensor %d x data %d x pipeline %d parallel: expected positive degrees "
                       "whose product is the number of ranks, %d",
                       m.tp, m.dp, m.pp, world);
    return 0;
}

struct coord mesh_coord(struct mesh m, int rank)
{
    BUG_ON(rank < 0 || rank >= m.tp * m.dp * m.pp, "rank %d", rank);
    return (struct coord){.tp = rank % m.tp, .dp = rank / m.tp % m.dp, .pp = rank / m.tp / m.dp};
}

int mesh_rank(struct mesh m, struct coord c)
{
    return (c.pp * m.dp + c.dp) * m.tp + c.tp;
}

int mesh_group_size(struct mesh m, enum group g)
{
    switch (g) {
    case GROUP_TP:
        return m.tp;
    case GROUP_DP:
        return m.dp;
    case GROUP_PP:
        return m.pp;
    case GROUP_WORLD:
        return m.tp * m.dp * m.pp;
    case GROUP_COUNT:
        break;
    }
    BUG("group %d", (int)g);
}

int mesh_group_index(struct mesh m, int rank, enum group g)
{
    struct coord c = mesh_coord(m, rank);
    return g == GROUP_TP ? c.tp : g == GROUP_DP ? c.dp : g == GROUP_PP ? c.pp : rank;
}

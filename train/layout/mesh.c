/* SPDX-License-Identifier: Apache-2.0 */
#include "train/layout/mesh.h"

#include <stdint.h>

/* The axes of one cut, fastest first: three within a stage and the pipeline's. */
enum { AXES = 4 };
enum axis { AXIS_FAST, AXIS_MIDDLE, AXIS_DATA, AXIS_PIPE };

/* Size of each axis, and by how many ranks its neighbours are apart. */
struct cut {
    int size[AXES], stride[AXES];
};

static const struct {
    const char *name;
    bool expert;
    unsigned axes; /* bits of enum axis */
} groups[GROUP_COUNT] = {
    [GROUP_TP] = {"tensor-parallel", false, 1 << AXIS_FAST},
    [GROUP_CP] = {"context-parallel", false, 1 << AXIS_MIDDLE},
    [GROUP_DP] = {"data-parallel", false, 1 << AXIS_DATA},
    [GROUP_DP_CP] = {"data- and context-parallel", false, 1 << AXIS_MIDDLE | 1 << AXIS_DATA},
    [GROUP_PP] = {"pipeline-parallel", false, 1 << AXIS_PIPE},
    [GROUP_EP] = {"expert-parallel", true, 1 << AXIS_MIDDLE},
    [GROUP_ETP] = {"expert tensor-parallel", true, 1 << AXIS_FAST},
    [GROUP_EDP] = {"expert data-parallel", true, 1 << AXIS_DATA},
    [GROUP_SHARD] = {"optimizer-sharding", false, 1 << AXIS_MIDDLE | 1 << AXIS_DATA},
    [GROUP_REPLICA] = {"optimizer-replica", false, 1 << AXIS_MIDDLE | 1 << AXIS_DATA},
    [GROUP_ENDS] = {"first and last stage's", false, 1 << AXIS_PIPE},
    [GROUP_WORLD] = {"world's", false, (1 << AXES) - 1},
};

struct mesh mesh_single(void)
{
    return mesh_dense(1, 1, 1, 1);
}

struct mesh mesh_dense(int tp, int cp, int dp, int pp)
{
    return (struct mesh){.tp = tp, .cp = cp, .dp = dp, .pp = pp, .etp = tp, .ep = 1};
}

static int check_experts(struct mesh m, struct err *e)
{
    if (m.tp == 1 && m.etp != 1)
        return err_set(e, ERR_USAGE,
                       "expert-tensor-parallel-size %d with tensor-model-parallel-size 1: expected "
                       "1",
                       m.etp);
    if (m.etp != m.tp && m.etp != 1)
        return err_set(e, ERR_USAGE,
                       "expert-tensor-parallel-size %d: expected tensor-model-parallel-size, %d, "
                       "or 1",
                       m.etp, m.tp);
    int stage = m.tp * m.cp * m.dp;
    if (m.ep > stage || stage % ((int64_t)m.etp * m.ep))
        return err_set(e, ERR_USAGE,
                       "expert-tensor-parallel-size %d x expert-model-parallel-size %d: expected a "
                       "divisor of the %d ranks of a pipeline stage (tensor %d x context %d x data "
                       "%d)",
                       m.etp, m.ep, stage, m.tp, m.cp, m.dp);
    if (m.pp_before_dp && m.pp > 1 && mesh_edp(m) != m.dp)
        return err_set(e, ERR_USAGE,
                       "use-tp-pp-dp-mapping with %d pipeline stages: expected the experts' "
                       "data-parallel size, %d, to be the data-parallel size, %d",
                       m.pp, mesh_edp(m), m.dp);
    return 0;
}

int mesh_check(struct mesh m, int world, struct err *e)
{
    const int degree[] = {m.tp, m.cp, m.dp, m.pp};
    int64_t product = 1;
    bool positive = m.etp > 0 && m.ep > 0;
    for (int i = 0; i < AXES; i++) {
        positive = positive && degree[i] > 0;
        /* beyond `world` it only has to stay there */
        product = product > world ? product : product * degree[i];
    }
    if (!positive)
        return err_set(e, ERR_USAGE,
                       "tensor %d x context %d x data %d x pipeline %d parallel, expert tensor %d, "
                       "expert %d: expected positive degrees",
                       m.tp, m.cp, m.dp, m.pp, m.etp, m.ep);
    if (product != world)
        return err_set(e, ERR_USAGE,
                       "tensor %d x context %d x data %d x pipeline %d parallel: expected degrees "
                       "whose product is the number of ranks, %d",
                       m.tp, m.cp, m.dp, m.pp, world);
    if (m.instances < 0 || (m.instances && m.dp * m.cp % m.instances))
        return err_set(e, ERR_USAGE,
                       "num-distributed-optimizer-instances %d: expected a divisor of the %d "
                       "data-parallel (%d) x context-parallel (%d) ranks",
                       m.instances, m.dp * m.cp, m.dp, m.cp);
    return check_experts(m, e);
}

static int instances_of(struct mesh m)
{
    return m.instances ? m.instances : 1;
}

bool mesh_equal(struct mesh a, struct mesh b)
{
    return a.tp == b.tp && a.cp == b.cp && a.dp == b.dp && a.pp == b.pp && a.etp == b.etp &&
           a.ep == b.ep && a.pp_before_dp == b.pp_before_dp && instances_of(a) == instances_of(b);
}

int mesh_world(struct mesh m)
{
    return m.tp * m.cp * m.dp * m.pp;
}

int mesh_edp(struct mesh m)
{
    return m.tp * m.cp * m.dp / (m.etp * m.ep);
}

bool mesh_spreads_experts(struct mesh m)
{
    return m.ep > 1 || m.etp != m.tp;
}

static struct cut cut_of(struct mesh m, bool expert)
{
    struct cut c = {
        .size = {expert ? m.etp : m.tp, expert ? m.ep : m.cp, expert ? mesh_edp(m) : m.dp, m.pp}};
    c.stride[AXIS_FAST] = 1;
    c.stride[AXIS_MIDDLE] = c.size[AXIS_FAST];
    int inner = c.size[AXIS_FAST] * c.size[AXIS_MIDDLE];
    c.stride[AXIS_DATA] = m.pp_before_dp ? inner * m.pp : inner;
    c.stride[AXIS_PIPE] = m.pp_before_dp ? inner : inner * c.size[AXIS_DATA];
    return c;
}

static int along(const struct cut *c, int rank, enum axis a)
{
    return rank / c->stride[a] % c->size[a];
}

struct coord mesh_coord(struct mesh m, int rank)
{
    BUG_ON(rank < 0 || rank >= mesh_world(m), "rank %d of %d", rank, mesh_world(m));
    struct cut d = cut_of(m, false), x = cut_of(m, true);
    return (struct coord){.tp = along(&d, rank, AXIS_FAST),
                          .cp = along(&d, rank, AXIS_MIDDLE),
                          .dp = along(&d, rank, AXIS_DATA),
                          .pp = along(&d, rank, AXIS_PIPE),
                          .etp = along(&x, rank, AXIS_FAST),
                          .ep = along(&x, rank, AXIS_MIDDLE),
                          .edp = along(&x, rank, AXIS_DATA)};
}

int mesh_rank(struct mesh m, struct coord c)
{
    struct cut d = cut_of(m, false);
    return c.tp * d.stride[AXIS_FAST] + c.cp * d.stride[AXIS_MIDDLE] + c.dp * d.stride[AXIS_DATA] +
           c.pp * d.stride[AXIS_PIPE];
}

const char *mesh_group_name(enum group g)
{
    return groups[g].name;
}

int mesh_group_size(struct mesh m, enum group g)
{
    if (g == GROUP_ENDS)
        return m.pp > 1 ? 2 : 1;
    struct cut c = cut_of(m, groups[g].expert);
    int size = 1;
    for (int a = 0; a < AXES; a++)
        size *= groups[g].axes >> a & 1 ? c.size[a] : 1;
    return g == GROUP_SHARD ? size / instances_of(m) : g == GROUP_REPLICA ? instances_of(m) : size;
}

int mesh_group_index(struct mesh m, int rank, enum group g)
{
    struct cut c = cut_of(m, groups[g].expert);
    if (g == GROUP_WORLD)
        return rank;
    if (g == GROUP_ENDS) {
        int stage = along(&c, rank, AXIS_PIPE);
        return stage == 0 ? 0 : stage == m.pp - 1 ? 1 : -1;
    }
    int index = 0, step = 1;
    for (int a = 0; a < AXES; a++)
        if (groups[g].axes >> a & 1) {
            index += along(&c, rank, (enum axis)a) * step;
            step *= c.size[a];
        }
    /* consecutive ranks of GROUP_DP_CP have one copy */
    int shares = step / instances_of(m);
    return g == GROUP_SHARD ? index % shares : g == GROUP_REPLICA ? index / shares : index;
}

int mesh_group_rank(struct mesh m, int rank, enum group g, int index)
{
    BUG_ON(index < 0 || index >= mesh_group_size(m, g) || mesh_group_index(m, rank, g) < 0,
           "member %d of the %s group of rank %d", index, mesh_group_name(g), rank);
    if (g == GROUP_WORLD)
        return index;
    if (g == GROUP_ENDS)
        index *= m.pp - 1;
    int shares = mesh_group_size(m, GROUP_SHARD);
    if (g == GROUP_SHARD)
        index += mesh_group_index(m, rank, GROUP_REPLICA) * shares;
    if (g == GROUP_REPLICA)
        index = index * shares + mesh_group_index(m, rank, GROUP_SHARD);
    struct cut c = cut_of(m, groups[g].expert);
    for (int a = 0; a < AXES; a++)
        if (groups[g].axes >> a & 1) {
            rank += (index % c.size[a] - along(&c, rank, (enum axis)a)) * c.stride[a];
            index /= c.size[a];
        }
    return rank;
}

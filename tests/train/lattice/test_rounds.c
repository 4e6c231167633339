/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/t.h"
#include "tests/train/lattice/world.h"

/*
 * Experts that have no room for all rows at once: these travel in several rounds, and every number
 * is still that of the single rank. Slabs are as planned, whatever the router does.
 */

static int cells;

/* What the ranks of a cell have seen. */
struct seen {
    int64_t crowded[CELL_WORLD_MAX], all;
    int rounds[CELL_WORLD_MAX], most;
    double share, least; /* of passes, in the last step of a cell; of all cells */
};

static void look(void *arg, struct rank *r, struct loader *in)
{
    struct seen *s = arg;
    (void)in;
    s->crowded[r->config.rank] = r->model.crowded;
    s->rounds[r->config.rank] = r->model.most_rounds;
}

static void run_cell(struct cell c, const struct cell_single *single, double tolerance,
                     struct seen *all)
{
    char name[128], why[600];
    struct seen s = {0};
    c.seed = (uint64_t)++cells;
    c.overlap = (unsigned)c.seed % 4;
    c.evaluates = c.seed % 4 == 1 && !c.begin;
    c.look = look;
    c.look_arg = &s;
    c.crowded = &s.share;
    cell_name(&c, name, sizeof(name));
    if (cell_run(&c, single, tolerance, why, sizeof(why)))
        t_fail(__FILE__, __LINE__, "%s: %s", name, why);
    T_CHECK(s.share >= 0 && s.share <= 1);
    all->least = s.share < all->least ? s.share : all->least;
    for (int i = 0; i < mesh_world(c.layout.mesh); i++) {
        all->all += s.crowded[i];
        all->most = s.rounds[i] > all->most ? s.rounds[i] : all->most;
    }
}

static struct layout spread(int tp, int dp, int pp, int ep, int etp, int zero)
{
    struct layout l = layout_plain(mesh_dense(tp, 1, dp, pp));
    l.mesh.ep = ep;
    l.mesh.etp = etp;
    l.sequence = tp > 1;
    l.zero = zero;
    return l;
}

static struct layout context(int cp, int dp, int ep)
{
    struct layout l = layout_plain(mesh_dense(1, cp, dp, 1));
    l.mesh.ep = ep;
    return l;
}

/* Of one expert for each token: a rank may get what all have. */
static struct spec one_of_eight(void)
{
    struct spec s = cell_mixtral();
    s.experts = 8;
    s.topk = 1;
    s.route_before = true;
    return s;
}

static struct seen run_layouts(struct cell c, const struct layout *all, size_t n, double tolerance)
{
    struct cell_single single;
    struct seen ret = {.least = 1};
    char why[600];
    c.layout = layout_plain(mesh_single());
    if (cell_run_single(&c, &single, why, sizeof(why)))
        t_fail(__FILE__, __LINE__, "%s", why);
    for (size_t i = 0; i < n; i++) {
        c.layout = all[i];
        c.recompute = (struct recompute){i % 3 == 1   ? RECOMPUTE_UNIFORM
                                         : i % 3 == 2 ? RECOMPUTE_BLOCK
                                                      : RECOMPUTE_NONE,
                                         i % 3 ? 1 : 0, false};
        run_cell(c, &single, tolerance, &ret);
    }
    cell_single_finish(&single);
    printf("# %lld layers without room for all rows, at most %d rounds\n", (long long)ret.all,
           ret.most);
    return ret;
}

static void by_an_even_share(void)
{
    const struct layout all[] = {spread(1, 2, 1, 2, 1, 0), spread(1, 4, 1, 4, 1, 0),
                                 spread(1, 8, 1, 4, 1, 1), spread(2, 2, 1, 4, 1, 2),
                                 spread(2, 2, 1, 2, 2, 3), spread(1, 4, 2, 4, 1, 0),
                                 spread(4, 1, 1, 4, 1, 0)};
    for (int i = 0; i < 4; i++) {
        struct cell c = {.spec = i & 1 ? one_of_eight() : cell_mixtral(),
                         .real = i & 2 ? DTYPE_F32 : DTYPE_F64,
                         .optimizer = i & 2 ? OPTIM_SGD_PLAIN : OPTIM_ADAM,
                         .expert_factor = 1,
                         .micros = 8,
                         .steps = CELL_SAVED};
        struct seen s = run_layouts(c, all, sizeof(all) / sizeof(all[0]), i & 2 ? 3e-5 : 1e-9);
        T_CHECK(s.all > 100 && s.most > 1); /* of the last step */
    }
}

/* Of equal logits the first experts are chosen: one rank gets the rows of all. */
static void collapse(void *arg, struct rank *r)
{
    (void)arg;
    for (int l = 0; l < r->model.stage.layers; l++) {
        struct tensor w = r->model.w.layer[l].router;
        memset(w.data, 0, tensor_bytes(w));
    }
}

static void of_a_collapsed_router(void)
{
    const struct layout all[] = {spread(1, 4, 1, 4, 1, 0), spread(1, 8, 1, 8, 1, 0),
                                 spread(2, 2, 1, 4, 1, 0), spread(1, 4, 2, 4, 1, 1),
                                 context(2, 2, 4)};
    for (int i = 0; i < 2; i++) {
        struct cell c = {.spec = one_of_eight(),
                         .real = DTYPE_F64,
                         .begin = collapse,
                         .expert_factor = i,
                         .micros = 8,
                         .steps = 1};
        struct seen s = run_layouts(c, all, sizeof(all) / sizeof(all[0]), 1e-9);
        T_CHECK(s.least == 1);
        T_EQ(s.most, i ? 8 : 4); /* of 8 times an even share, with room for 1 or 2 */
    }
}

/* Products of 16 bits are widened in workspace: a plan has room for what several rounds need. */
static void in_sixteen_bits(void)
{
    struct seen s = {0};
    struct cell c = {.spec = one_of_eight(),
                     .real = DTYPE_BF16,
                     .begin = collapse,
                     .expert_factor = 1,
                     .layout = spread(1, 8, 1, 8, 1, 0),
                     .micros = 8,
                     .steps = 1};
    run_cell(c, NULL, 0, &s);
    T_EQ(s.most, 8);
}

T_MAIN(T_CASE(by_an_even_share), T_CASE(of_a_collapsed_router), T_CASE(in_sixteen_bits))

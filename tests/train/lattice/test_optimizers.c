/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>

#include "tests/t.h"
#include "tests/train/lattice/world.h"
#include "tests/train/layout/list.h"

/*
 * Optimizers that look at whole tensors, in layouts that cut these every way, against the single
 * rank in double; and their checkpoints, taken up by other layouts.
 */

static int cells;

static void run_cell(struct cell c, const struct cell_single *single)
{
    char name[128], why[600];
    c.seed = (uint64_t)++cells;
    c.overlap = (unsigned)c.seed % 4;
    cell_name(&c, name, sizeof(name));
    if (cell_run(&c, single, 1e-9, why, sizeof(why)))
        t_fail(__FILE__, __LINE__, "%s, optimizer %d: %s", name, (int)c.optimizer, why);
}

static void single_of(struct cell *c, struct cell_single *ret)
{
    char why[600];
    c->layout = layout_plain(mesh_single());
    if (cell_run_single(c, ret, why, sizeof(why)))
        t_fail(__FILE__, __LINE__, "%s", why);
}

static bool can_run(const struct cell *c, const struct layout *l)
{
    int64_t micros = c->micros / l->mesh.dp;
    return c->micros % l->mesh.dp == 0 && (l->chunks == 1 || micros % l->mesh.pp == 0);
}

/* One of `every` layouts of a model; all with WEFT_FULL. */
static void run_layouts(struct cell c, int every)
{
    static int seen;
    struct cell_single single = {0};
    struct layout_model m = spec_layout_model(&c.spec);
    m.seq_length = CELL_LENGTH;
    single_of(&c, &single);
    for (int world = 2; world <= CELL_WORLD_MAX; world *= 2) {
        struct layout *all;
        size_t n = layout_list(&m, world, &all);
        for (size_t i = 0; i < n; i++)
            if (can_run(&c, &all[i]) && (seen++ % every == 0 || getenv("WEFT_FULL"))) {
                c.layout = all[i];
                run_cell(c, &single);
            }
        free(all);
    }
    cell_single_finish(&single);
}

static const struct optim_tuning plain = {.muon.momentum = 0.95,
                                          .muon.extra = 1,
                                          .muon.nesterov = true,
                                          .muon.scale = MUON_SHAPE_SCALING,
                                          .muon.steps = 5};

static struct cell cell_of(int model, enum optim_kind kind)
{
    return (struct cell){.spec = model == 2   ? cell_mixtral()
                                 : model == 1 ? cell_llama()
                                              : cell_gpt(),
                         .real = DTYPE_F64,
                         .optimizer = kind,
                         .tuning = plain,
                         .micros = 8,
                         .steps = CELL_STEPS};
}

static void optimizer_in_layouts(enum optim_kind kind, bool max)
{
    int before = cells;
    for (int model = 0; model < 3; model++) {
        struct cell c = cell_of(model, kind);
        c.tuning.sai.max = max;
        run_layouts(c, model == 2 ? 61 : 17);
    }
    printf("# %d cells\n", cells - before);
}

static void sai(void)
{
    optimizer_in_layouts(OPTIM_SAI, false);
}

static void sai_by_the_greatest(void)
{
    optimizer_in_layouts(OPTIM_SAI_PLAIN, true);
}

static void muon(void)
{
    optimizer_in_layouts(OPTIM_MUON, false);
}

static struct layout cut(int tp, int dp, int pp, int zero, int ep)
{
    struct layout l = layout_plain(mesh_dense(tp, 1, dp, pp));
    l.zero = zero;
    l.mesh.ep = ep;
    l.sequence = tp > 1 && ep > 1;
    return l;
}

/* Each layout's checkpoint is taken up by the next. */
static void resume(enum optim_kind kind)
{
    static int folders;
    for (int model = 1; model < 3; model++) {
        bool spread = model == 2;
        const struct layout all[] = {cut(1, 1, 1, 0, 1),
                                     cut(2, 2, 1, 1, spread ? 2 : 1),
                                     cut(1, 4, 1, spread ? 1 : 3, spread ? 4 : 1),
                                     cut(4, 1, 1, 0, 1),
                                     cut(2, 1, 2, 0, 1),
                                     cut(1, 4, 1, 1, 1)};
        int n = sizeof(all) / sizeof(all[0]);
        struct cell c = cell_of(model, kind);
        struct cell_single single = {0};
        single_of(&c, &single);
        for (int i = 0; i < n; i++) {
            char path[32];
            snprintf(path, sizeof(path), "save%d", folders++);
            struct cell first = c, then = c;
            first.layout = all[i];
            first.steps = CELL_SAVED;
            first.save = t_path(path);
            run_cell(first, &single);
            then.layout = all[(i + 1) % n];
            then.load = first.save;
            run_cell(then, &single);
        }
        cell_single_finish(&single);
    }
}

static void sai_resumes_in_other_layouts(void)
{
    resume(OPTIM_SAI);
}

static void muon_resumes_in_other_layouts(void)
{
    resume(OPTIM_MUON);
}

T_MAIN(T_CASE(sai), T_CASE(sai_by_the_greatest), T_CASE(muon), T_CASE(sai_resumes_in_other_layouts),
       T_CASE(muon_resumes_in_other_layouts))

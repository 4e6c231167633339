/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <stdio.h>
#include <string.h>

#include "tests/t.h"
#include "tests/train/lattice/world.h"

/* Cells beside the sweeps: the objective over tokens, and single cells for planted faults. */

static int cells;

static void run_cell(struct cell c, const struct cell_single *single)
{
    char name[128], why[600];
    c.seed = (uint64_t)++cells;
    c.evaluates = !c.rows;
    cell_name(&c, name, sizeof(name));
    if (cell_run(&c, single, c.real == DTYPE_F32 ? 1e-5 : 1e-9, why, sizeof(why)))
        t_fail(__FILE__, __LINE__, "%s: %s", name, why);
}

/* The other objective: as one rank, whatever the size of a micro-batch; and of a single micro-batch
 * it is the first one. */
static void per_token_loss(void)
{
    static const struct cell_shares all[] = {
        {1, 1, 1, 1, false, 0, {4}},          {1, 4, 1, 1, false, 0, {4}},
        {2, 2, 1, 1, true, 1, {4}},           {1, 2, 2, 1, false, 1, {2, 2}},
        {1, 1, 2, 2, false, 0, {1, 1, 1, 1}}, {1, 2, 1, 1, false, 3, {4}, 2},
        {2, 2, 1, 1, false, 2, {4}},
    };
    static const int64_t rows[] = {CELL_ROWS, 1, 4};
    int before = cells;
    for (int i = 0; i < 4; i++) {
        struct cell c = {.spec = i & 1 ? cell_llama() : cell_gpt(),
                         .real = i & 2 ? DTYPE_F32 : DTYPE_F64,
                         .optimizer = i & 2 ? OPTIM_SGD_PLAIN : OPTIM_ADAM,
                         .per_token = true,
                         .micros = 8,
                         .steps = CELL_STEPS};
        struct cell_single single;
        char why[600];
        c.spec.hidden_dropout = c.spec.attention_dropout = 0.2;
        c.layout = layout_plain(mesh_single());
        if (cell_run_single(&c, &single, why, sizeof(why)))
            t_fail(__FILE__, __LINE__, "%s", why);
        for (size_t k = 0; k < 3 * (sizeof(all) / sizeof(all[0])); k++) {
            struct cell other = c;
            other.layout = cell_layout(&all[k / 3]);
            other.rows = rows[k % 3];
            other.micros = c.micros * CELL_ROWS / other.rows;
            run_cell(other, &single);
        }
        cell_single_finish(&single);
        c.micros = 1;
        if (cell_run_single(&c, &single, why, sizeof(why)))
            t_fail(__FILE__, __LINE__, "%s", why);
        c.per_token = false;
        c.other_grads = true;
        run_cell(c, &single);
        cell_single_finish(&single);
    }
    printf("# %d cells\n", cells - before);
}

/* One step of one layout each: the planted fault comm_skip leaves out one of its collectives or
 * messages after the other (tests/fault/faults.txt). */
static void run_one(const struct cell_shares *s, bool llama, struct recompute how)
{
    struct cell c = {.spec = llama ? cell_llama() : cell_gpt(),
                     .real = DTYPE_F64,
                     .micros = 2 * s->dp,
                     .noise = 5,
                     .steps = 1};
    struct cell_single single;
    char why[600];
    c.spec.hidden_dropout = 0.2;
    c.layout = layout_plain(mesh_single());
    if (cell_run_single(&c, &single, why, sizeof(why)))
        t_fail(__FILE__, __LINE__, "%s", why);
    c.layout = cell_layout(s);
    c.recompute = how;
    run_cell(c, &single);
    cell_single_finish(&single);
}

static const struct recompute none;

static void one_tensor(void)
{
    run_one(&(struct cell_shares){4, 1, 1, 1, false, 0, {4}}, true, none);
}

static void one_sequence(void)
{
    run_one(&(struct cell_shares){2, 1, 1, 1, true, 0, {4}}, false, none);
}

static void one_data(void)
{
    run_one(&(struct cell_shares){1, 2, 1, 1, false, 0, {4}}, false, none);
}

static void one_zero(void)
{
    run_one(&(struct cell_shares){1, 4, 1, 1, false, 1, {4}}, false, none);
}

static void one_pipeline(void)
{
    run_one(&(struct cell_shares){1, 1, 4, 1, false, 0, {0, 2, 1, 1}}, false, none);
}

static void one_context(void)
{
    run_one(&(struct cell_shares){1, 1, 1, 1, false, 0, {4}, 2}, true, none);
}

static void one_shared_out(void)
{
    run_one(&(struct cell_shares){1, 4, 1, 1, false, 3, {4}}, true, none);
}

static void one_interleaved(void)
{
    run_one(&(struct cell_shares){1, 1, 2, 2, false, 0, {1, 1, 1, 1}}, true, none);
}

static void one_recomputed(void)
{
    run_one(&(struct cell_shares){2, 1, 1, 1, false, 0, {4}}, false,
            (struct recompute){RECOMPUTE_UNIFORM, 2, true});
}

static void run_layout(struct spec spec, struct layout l)
{
    struct cell c = {.spec = spec, .real = DTYPE_F64, .micros = l.mesh.dp, .steps = 1};
    struct cell_single single;
    char why[600];
    c.layout = layout_plain(mesh_single());
    if (cell_run_single(&c, &single, why, sizeof(why)))
        t_fail(__FILE__, __LINE__, "%s", why);
    c.layout = l;
    run_cell(c, &single);
    cell_single_finish(&single);
}

/* Two copies of the optimizer's state, each shared out to two ranks. */
static void one_of_copies(void)
{
    struct layout l = layout_plain(mesh_dense(1, 1, 4, 1));
    l.zero = 2;
    l.mesh.instances = 2;
    run_layout(cell_gpt(), l);
}

/* Keys and values go round four ranks. */
static void one_ring(void)
{
    struct layout l = layout_plain(mesh_dense(1, 4, 1, 1));
    struct spec s = cell_llama();
    s.layers = 1;
    l.context = CONTEXT_P2P;
    run_layout(s, l);
}

/* Tokens are traded for heads, and the counts of a router added up over the sequence. */
static void one_traded(void)
{
    struct layout l = layout_plain(mesh_dense(1, 2, 1, 1));
    struct spec s = cell_mixtral();
    s.layers = 2;
    l.context = CONTEXT_A2A;
    run_layout(s, l);
}

/* Experts on two ranks each, which share out their weights; dense weights on four. */
static void one_spread(void)
{
    struct layout l = layout_plain(mesh_dense(1, 1, 4, 1));
    struct spec s = cell_mixtral();
    s.layers = 2;
    l.mesh.ep = 2;
    l.zero = 3;
    run_layout(s, l);
}

/* Experts that are cut over tensor-parallel ranks, too. */
static void one_spread_and_cut(void)
{
    struct layout l = layout_plain(mesh_dense(2, 1, 2, 1));
    struct spec s = cell_mixtral();
    s.layers = 2;
    l.mesh.ep = 2;
    l.sequence = true;
    run_layout(s, l);
}

/* Whole experts on tensor-parallel ranks, of which one adds the learned positions. */
static void one_spread_over_tensor_ranks(void)
{
    struct layout l = layout_plain(mesh_dense(4, 1, 1, 1));
    struct spec s = cell_mixtral();
    s.layers = 2;
    s.position = SPEC_LEARNED;
    l.mesh.ep = 2;
    l.mesh.etp = 1;
    l.sequence = true;
    run_layout(s, l);
}

/* A mixture's router goes forward twice; its losses count once, under both objectives. */
static void recomputed_experts(void)
{
    static const struct cell_shares all[] = {
        {1, 2, 1, 1, false, 1, {4}}, {2, 1, 1, 1, true, 0, {4}}, {1, 1, 2, 1, false, 0, {3, 1}}};
    int before = cells;
    for (int per_token = 0; per_token < 2; per_token++) {
        struct cell c = {.spec = cell_mixtral(),
                         .real = DTYPE_F64,
                         .per_token = per_token,
                         .micros = 4,
                         .steps = CELL_STEPS};
        struct cell_single single;
        char why[600];
        c.layout = layout_plain(mesh_single());
        if (cell_run_single(&c, &single, why, sizeof(why)))
            t_fail(__FILE__, __LINE__, "%s", why);
        for (size_t k = 0; k < 3; k++)
            for (int kind = RECOMPUTE_NONE; kind <= RECOMPUTE_BLOCK; kind++) {
                c.layout = cell_layout(&all[k]);
                c.recompute = (struct recompute){(enum recompute_kind)kind, 2, false};
                run_cell(c, &single);
            }
        cell_single_finish(&single);
    }
    printf("# %d cells\n", cells - before);
}

/* ---- a rank that cannot open --------------------------------------------------------------- */

static int describe_others(struct dev_desc *ret, int which, int threads, struct err *e)
{
    return which == 1 ? err_set(e, ERR_RESOURCE, "there is no second device")
                      : dev_host_describe(ret, which, threads, e);
}

static int open_others(struct dev *ret, int which, int threads, struct err *e)
{
    return which == 1 ? err_set(e, ERR_RESOURCE, "there is no second device")
                      : dev_host_start(ret, which, threads, e);
}

static size_t count_threads(void)
{
    size_t n = 0;
    DIR *d = opendir("/proc/self/task");
    if (!d)
        t_skip("/proc is not mounted: threads cannot be counted");
    while (readdir(d))
        n++;
    closedir(d);
    return n;
}

/* All end with its sentence, and no thread is left, whether it fails before the rank has its comm
 * or after. */
static void a_rank_cannot_open(void)
{
    static const struct rank_backends backends[] = {
        {.describe_device = describe_others,
         .open_device = dev_host_start,
         .init_ops = ops_cpu_open},
        {.describe_device = dev_host_describe,
         .open_device = open_others,
         .init_ops = ops_cpu_open},
    };
    size_t before = count_threads();
    for (size_t k = 0; k < 2; k++) {
        struct cell c = {.backends = &backends[k],
                         .spec = cell_gpt(),
                         .real = DTYPE_F64,
                         .micros = 4,
                         .steps = 1,
                         .layout = layout_plain(mesh_dense(2, 1, 2, 1))};
        char why[600];
        T_EQ(cell_run(&c, NULL, 0, why, sizeof(why)), -1);
        T_CHECK(strstr(why, "there is no second device"));
        T_EQ(count_threads(), before);
    }
}

T_MAIN(T_CASE(a_rank_cannot_open), T_CASE(recomputed_experts), T_CASE(one_of_copies),
       T_CASE(per_token_loss), T_CASE(one_tensor), T_CASE(one_sequence), T_CASE(one_data),
       T_CASE(one_zero), T_CASE(one_pipeline), T_CASE(one_context), T_CASE(one_shared_out),
       T_CASE(one_interleaved), T_CASE(one_recomputed), T_CASE(one_ring), T_CASE(one_traded),
       T_CASE(one_spread), T_CASE(one_spread_and_cut), T_CASE(one_spread_over_tensor_ranks))

/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>

#include "tests/t.h"
#include "tests/train/lattice/world.h"
#include "tests/train/layout/list.h"

/*
 * Every layout that a model can have, of 1, 2, 4 and 8 ranks, against the single rank. A case takes
 * the layouts that its filter passes; together they take all that train can run, once.
 */

/* Of a tensor's largest value. In fp32 sums of other orders are 1.02e-5 apart with vectors of 512
 * bits, 2.3e-5 with 256. */
static const double tolerances[DTYPE_COUNT] = {[DTYPE_F64] = 1e-9, [DTYPE_F32] = 3e-5};

static int cells;

static void run_cell(struct cell c, const struct cell_single *single)
{
    char name[128], why[600];
    c.seed = (uint64_t)++cells;
    c.overlap = (unsigned)c.seed % 4;
    c.evaluates = c.seed % 4 == 1;
    cell_name(&c, name, sizeof(name));
    if (cell_run(&c, single, tolerances[c.real], why, sizeof(why)))
        t_fail(__FILE__, __LINE__, "%s: %s", name, why);
}

/* Micro-batches must be shared out evenly. */
static bool can_run(const struct cell *c, const struct layout *l)
{
    int64_t micros = c->micros / l->mesh.dp;
    return c->micros % l->mesh.dp == 0 && (l->chunks == 1 || micros % l->mesh.pp == 0);
}

/* Whether the next of a case's cells is run: every cell with WEFT_FULL, otherwise one of `every`.
 */
static bool drawn(int *seen, int every)
{
    return (*seen)++ % every == 0 || getenv("WEFT_FULL");
}

static void run_layouts(struct cell c, bool (*wanted)(const struct layout *l), int every, int *seen)
{
    struct cell_single single = {0};
    struct layout_model m = spec_layout_model(&c.spec);
    m.seq_length = CELL_LENGTH;
    char why[600];
    c.layout = layout_plain(mesh_single());
    if (cell_run_single(&c, &single, why, sizeof(why)))
        t_fail(__FILE__, __LINE__, "%s", why);
    for (int world = 1; world <= CELL_WORLD_MAX; world *= 2) {
        struct layout *all;
        size_t n = layout_list(&m, world, &all);
        for (size_t i = 0; i < n; i++)
            if (can_run(&c, &all[i]) && wanted(&all[i]) && drawn(seen, every)) {
                c.layout = all[i];
                run_cell(c, &single);
            }
        free(all);
    }
    cell_single_finish(&single);
}

/* Both models, both types, two counts of micro-batches, without and with dropout, half of them with
 * documents in their samples. In fp32 by plain SGD: AdamW divides a gradient by its own size, and a
 * rounding becomes a step. */
static void sweep_some(bool (*wanted)(const struct layout *l), int every)
{
    int before = cells, seen = 0;
    for (int i = 0; i < 16; i++) {
        struct cell c = {.spec = i & 1 ? cell_llama() : cell_gpt(),
                         .real = i & 2 ? DTYPE_F32 : DTYPE_F64,
                         .optimizer = i & 2 ? OPTIM_SGD_PLAIN : OPTIM_ADAM,
                         .documents = (i ^ i >> 1 ^ i >> 3) & 1,
                         .micros = i & 4 ? 8 : 4,
                         .steps = CELL_STEPS};
        if (i & 8)
            c.spec.hidden_dropout = c.spec.attention_dropout = 0.2;
        run_layouts(c, wanted, every, &seen);
    }
    printf("# %d of %d cells\n", cells - before, seen);
}

static bool any(const struct layout *l)
{
    return !mesh_spreads_experts(l->mesh);
}

static bool is_spread(const struct layout *l)
{
    return mesh_spreads_experts(l->mesh) && l->zero < 2;
}

static bool is_spread_and_shared_out(const struct layout *l)
{
    return mesh_spreads_experts(l->mesh) && l->zero > 1;
}

static void run_mixture(bool (*wanted)(const struct layout *l), int every)
{
    int before = cells, seen = 0;
    for (int i = 0; i < 3; i++) {
        struct cell c = {.spec = cell_mixtral(),
                         .real = i == 2 ? DTYPE_F32 : DTYPE_F64,
                         .optimizer = i == 2 ? OPTIM_SGD_PLAIN : OPTIM_ADAM,
                         .micros = 8,
                         .steps = CELL_STEPS};
        if (i == 1)
            c.spec.hidden_dropout = c.spec.attention_dropout = 0.2;
        run_layouts(c, wanted, every, &seen);
    }
    printf("# %d of %d cells\n", cells - before, seen);
}

/* A mixture of experts, which all ranks of a stage have. */
static void mixture(void)
{
    run_mixture(any, 23);
}

/* Experts on ranks of their own. */
static void spread_experts(void)
{
    run_mixture(is_spread, 29);
}

/* ... and weights and gradients shared out (ZeRO 2 and 3), experts to the ranks that have the same
 * ones. */
static void spread_experts_shared_out(void)
{
    run_mixture(is_spread_and_shared_out, 23);
}

static bool is_data(const struct layout *l)
{
    return l->mesh.cp == 1 && l->mesh.pp == 1 && l->mesh.tp == 1 && !l->zero;
}

static bool is_tensor(const struct layout *l)
{
    return l->mesh.cp == 1 && l->mesh.pp == 1 && l->mesh.tp > 1 && l->mesh.dp == 1 && !l->sequence;
}

static bool is_sequence(const struct layout *l)
{
    return l->mesh.cp == 1 && l->mesh.pp == 1 && l->sequence && l->mesh.dp == 1;
}

static bool is_several(const struct layout *l)
{
    return l->mesh.cp == 1 && l->mesh.pp == 1 && l->mesh.tp > 1 && l->mesh.dp > 1 && !l->zero;
}

static bool is_zero_1(const struct layout *l)
{
    return l->mesh.cp == 1 && l->mesh.pp == 1 && l->zero == 1;
}

static bool is_zero_2(const struct layout *l)
{
    return l->mesh.cp == 1 && l->zero == 2;
}

static bool is_zero_3(const struct layout *l)
{
    return l->mesh.cp == 1 && l->zero == 3;
}

static void data_parallel(void)
{
    sweep_some(is_data, 3);
}

static void tensor_parallel(void)
{
    sweep_some(is_tensor, 1);
}

static void sequence_parallel(void)
{
    sweep_some(is_sequence, 3);
}

static void zero_1(void)
{
    sweep_some(is_zero_1, 5);
}

static void zero_2(void)
{
    sweep_some(is_zero_2, 5);
}

static void zero_3(void)
{
    sweep_some(is_zero_3, 5);
}

/* Groups of copies of the optimizer's state: not among the enumerator's layouts. */
static void instances(void)
{
    static const struct {
        int tp, dp, pp, instances, zero;
    } all[] = {{1, 4, 1, 2, 1}, {1, 8, 1, 4, 1}, {1, 4, 2, 2, 1}, {2, 4, 1, 2, 2},
               {1, 4, 1, 2, 3}, {1, 8, 1, 2, 3}, {1, 4, 1, 4, 2}, {2, 2, 2, 2, 1}};
    int before = cells;
    for (int i = 0; i < 4; i++) {
        struct cell c = {.spec = i & 1 ? cell_llama() : cell_gpt(),
                         .real = i & 2 ? DTYPE_F32 : DTYPE_F64,
                         .micros = 8,
                         .steps = i & 2 ? 1 : CELL_STEPS,
                         .layout = layout_plain(mesh_single())};
        struct cell_single single;
        char why[600];
        if (cell_run_single(&c, &single, why, sizeof(why)))
            t_fail(__FILE__, __LINE__, "%s", why);
        for (size_t k = 0; k < sizeof(all) / sizeof(all[0]); k++) {
            c.layout = layout_plain(mesh_dense(all[k].tp, 1, all[k].dp, all[k].pp));
            c.layout.mesh.instances = all[k].instances;
            c.layout.zero = all[k].zero;
            run_cell(c, &single);
        }
        cell_single_finish(&single);
    }
    printf("# %d cells\n", cells - before);
}

/* What is sent while others are computed adds up to the same bits. */
static void overlap(void)
{
    static const struct {
        int tp, dp, pp;
        bool sequence;
    } all[] = {{1, 2, 1, false}, {2, 2, 1, true}, {1, 2, 2, false}, {4, 2, 1, false}};
    int before = cells;
    for (int i = 0; i < 4 * 4 * 2; i++) {
        struct cell c = {.spec = i & 1 ? cell_llama() : cell_gpt(),
                         .real = DTYPE_F32,
                         .micros = 8,
                         .steps = CELL_STEPS,
                         .seed = (uint64_t)++cells};
        char name[128], why[600];
        int k = i / 2 % 4;
        c.layout = layout_plain(mesh_dense(all[k].tp, 1, all[k].dp, all[k].pp));
        c.layout.sequence = all[k].sequence;
        c.layout.zero = all[k].pp > 1 ? i / 8 % 2 : i / 8;
        cell_name(&c, name, sizeof(name));
        if (cell_run_overlap(&c, why, sizeof(why)))
            t_fail(__FILE__, __LINE__, "%s: %s", name, why);
    }
    printf("# %d cells\n", cells - before);
}

static bool is_pipeline(const struct layout *l)
{
    return l->mesh.cp == 1 && l->mesh.pp > 1 && l->mesh.tp == 1 && l->mesh.dp == 1;
}

static bool is_pipeline_of_more(const struct layout *l)
{
    return l->mesh.cp == 1 && l->mesh.pp > 1 && l->mesh.tp * l->mesh.dp > 1;
}

static void pipeline(void)
{
    sweep_some(is_pipeline, 3);
}

static void pipeline_and_others(void)
{
    sweep_some(is_pipeline_of_more, 13);
}

static bool is_interleaved(const struct layout *l)
{
    return l->mesh.cp == 1 && l->chunks > 1 && l->mesh.tp * l->mesh.dp <= 2;
}

/* Models of 8 layers: 2 and 4 stages on each of 2 ranks, 2 on each of 4. */
static void interleaved(void)
{
    int before = cells, seen = 0;
    for (int i = 0; i < 4; i++) {
        struct cell c = {.spec = i & 1 ? cell_llama() : cell_gpt(),
                         .real = DTYPE_F64,
                         .micros = i & 2 ? 4 : 8,
                         .steps = CELL_STEPS};
        c.spec.layers = 8;
        c.spec.hidden_dropout = c.spec.attention_dropout = 0.2;
        run_layouts(c, is_interleaved, 3, &seen);
    }
    printf("# %d cells\n", cells - before);
}

/* Stages without layers are the embedding or the head alone, or pass the stream on. */
static void uneven_stages(void)
{
    static const struct cell_shares all[] = {
        {1, 1, 2, 1, false, 0, {3, 1}},
        {1, 1, 2, 1, false, 0, {4, 0}},
        {2, 1, 2, 1, true, 0, {0, 4}},
        {1, 2, 4, 1, false, 1, {0, 3, 1, 0}},
        {2, 1, 4, 1, false, 0, {1, 0, 2, 1}},
        {1, 1, 8, 1, false, 0, {0, 1, 1, 0, 1, 0, 1, 0}},
        {1, 1, 2, 2, false, 0, {0, 1, 2, 1}},
        {2, 2, 2, 2, true, 1, {1, 0, 3, 0}},
        {1, 2, 2, 4, false, 0, {0, 1, 0, 2, 0, 0, 1, 0}},
        {1, 1, 2, 2, false, 0, {0, 1, 2, 1}, 2},
    };
    int before = cells;
    for (int i = 0; i < 8; i++) {
        struct cell c = {.spec = i & 1 ? cell_llama() : cell_gpt(),
                         .real = i & 2 ? DTYPE_F32 : DTYPE_F64,
                         .optimizer = i & 2 ? OPTIM_SGD_PLAIN : OPTIM_ADAM,
                         .micros = 8,
                         .steps = CELL_STEPS};
        struct cell_single single;
        char why[600];
        if (i & 4)
            c.spec.hidden_dropout = c.spec.attention_dropout = 0.2;
        c.layout = layout_plain(mesh_single());
        if (cell_run_single(&c, &single, why, sizeof(why)))
            t_fail(__FILE__, __LINE__, "%s", why);
        for (size_t k = 0; k < sizeof(all) / sizeof(all[0]); k++) {
            c.layout = cell_layout(&all[k]);
            run_cell(c, &single);
        }
        cell_single_finish(&single);
    }
    printf("# %d cells\n", cells - before);
}

/* The same layout with another recomputation: the same bytes, and fewer of them. Returns those of
 * activations. */
static uint64_t run_again(struct cell c, const struct cell_single *single, struct recompute how,
                          uint64_t digest)
{
    struct cell_bytes b = {0};
    char name[128];
    c.recompute = how;
    c.bytes = &b;
    run_cell(c, single);
    cell_name(&c, name, sizeof(name));
    if (b.digest != digest)
        t_fail(__FILE__, __LINE__, "%s: recomputation %d of %d layers%s gives other bytes", name,
               (int)how.kind, how.layers, how.distribute ? ", shared out," : "");
    return b.activations;
}

static void run_recomputations(struct cell c, const struct cell_single *single)
{
    struct cell_bytes plain = {0};
    c.bytes = &plain;
    run_cell(c, single);
    uint64_t selective =
        run_again(c, single, (struct recompute){RECOMPUTE_SELECTIVE, 0, false}, plain.digest);
    uint64_t uniform =
        run_again(c, single, (struct recompute){RECOMPUTE_UNIFORM, 1, false}, plain.digest);
    uint64_t block =
        run_again(c, single, (struct recompute){RECOMPUTE_BLOCK, 1, false}, plain.digest);
    run_again(c, single, (struct recompute){RECOMPUTE_UNIFORM, 3, false}, plain.digest);
    run_again(c, single, (struct recompute){RECOMPUTE_BLOCK, 2, false}, plain.digest);
    T_CHECK(selective <= plain.activations && uniform <= block && block <= plain.activations);
    if (c.layout.mesh.pp == 1)
        T_CHECK(uniform < selective && selective < plain.activations);
    if (c.layout.mesh.tp == 1 || c.layout.sequence)
        return;
    uint64_t parts =
        run_again(c, single, (struct recompute){RECOMPUTE_UNIFORM, 1, true}, plain.digest);
    run_again(c, single, (struct recompute){RECOMPUTE_UNIFORM, 2, true}, plain.digest);
    run_again(c, single, (struct recompute){RECOMPUTE_BLOCK, 1, true}, plain.digest);
    if (c.layout.mesh.tp > 2) /* the whole of one input exists beside the parts */
        T_CHECK(parts < uniform);
}

static void recomputation(void)
{
    static const struct cell_shares all[] = {
        {1, 1, 1, 1, false, 0, {4}},          {2, 1, 1, 1, false, 0, {4}},
        {2, 2, 1, 1, true, 1, {4}},           {1, 1, 2, 1, false, 0, {3, 1}},
        {2, 1, 2, 1, false, 0, {0, 4}},       {2, 1, 2, 2, false, 0, {1, 0, 2, 1}},
        {4, 1, 2, 2, false, 0, {1, 1, 1, 1}}, {2, 2, 1, 1, false, 3, {4}},
        {1, 2, 1, 1, false, 3, {4}},          {2, 2, 1, 1, true, 2, {4}},
        {1, 1, 2, 1, false, 0, {1, 3}, 2},    {2, 1, 1, 1, false, 0, {4}, 2},
    };
    int before = cells, seen = 0;
    for (int i = 0; i < 5; i++) {
        struct cell c = {.spec = i == 4  ? cell_mixtral()
                                 : i & 1 ? cell_llama()
                                         : cell_gpt(),
                         .real = i & 2 ? DTYPE_F32 : DTYPE_F64,
                         .optimizer = i & 2 ? OPTIM_SGD_PLAIN : OPTIM_ADAM,
                         .micros = 4,
                         .steps = CELL_STEPS};
        struct cell_single single;
        char why[600];
        c.spec.hidden_dropout = c.spec.attention_dropout = 0.2;
        c.layout = layout_plain(mesh_single());
        if (cell_run_single(&c, &single, why, sizeof(why)))
            t_fail(__FILE__, __LINE__, "%s", why);
        for (size_t k = 0; k < sizeof(all) / sizeof(all[0]); k++)
            if (drawn(&seen, 5)) { /* each layout with one of the models */
                c.layout = cell_layout(&all[k]);
                run_recomputations(c, &single);
            }
        cell_single_finish(&single);
    }
    printf("# %d cells\n", cells - before);
}

static bool is_context(const struct layout *l)
{
    return l->mesh.cp > 1 && l->mesh.tp * l->mesh.dp * l->mesh.pp == 1;
}

static bool is_context_of_more(const struct layout *l)
{
    return l->mesh.cp > 1 && l->mesh.tp * l->mesh.dp * l->mesh.pp > 1;
}

static void context_parallel(void)
{
    sweep_some(is_context, 5);
}

static void context_and_others(void)
{
    sweep_some(is_context_of_more, 61);
}

/* Layers that exchange keys in different ways, with and without recomputation. */
static void context_of_each_layer(void)
{
    static const enum context_comm ways[] = {CONTEXT_A2A, CONTEXT_P2P, CONTEXT_ALL_GATHER,
                                             CONTEXT_A2A};
    static const struct {
        int tp, cp, dp, pp;
        bool sequence;
        int zero;
    } all[] = {{1, 2, 1, 1, false, 0},
               {2, 2, 1, 1, true, 1},
               {1, 2, 1, 2, false, 0},
               {1, 2, 2, 1, false, 2},
               {1, 2, 1, 4, false, 1}};
    int before = cells;
    for (int i = 0; i < 4; i++) {
        struct cell c = {.spec = i & 1 ? cell_llama() : cell_gpt(),
                         .real = i & 2 ? DTYPE_F32 : DTYPE_F64,
                         .optimizer = i & 2 ? OPTIM_SGD_PLAIN : OPTIM_ADAM,
                         .documents = i & 1,
                         .micros = 4,
                         .steps = CELL_STEPS};
        struct cell_single single;
        char why[600];
        c.spec.hidden_dropout = c.spec.attention_dropout = 0.2;
        c.spec.kv_heads = c.spec.kv_heads < 4 ? 4 : c.spec.kv_heads;
        c.layout = layout_plain(mesh_single());
        if (cell_run_single(&c, &single, why, sizeof(why)))
            t_fail(__FILE__, __LINE__, "%s", why);
        for (size_t k = 0; k < sizeof(all) / sizeof(all[0]); k++) {
            c.layout = layout_plain(mesh_dense(all[k].tp, all[k].cp, all[k].dp, all[k].pp));
            c.layout.sequence = all[k].sequence;
            c.layout.zero = all[k].zero;
            c.layout.context_of = ways;
            if (k < 2)
                run_recomputations(c, &single);
            else
                run_cell(c, &single);
        }
        cell_single_finish(&single);
    }
    printf("# %d cells\n", cells - before);
}

static void several_axes(void)
{
    sweep_some(is_several, 3);
}

/* A checkpoint of each layout is taken up by the next one, and by the single rank. */
static void run_resume(struct cell c, struct layout from, struct layout to,
                       const struct cell_single *single)
{
    static int folders;
    char path[32];
    snprintf(path, sizeof(path), "save%d", folders++);
    struct cell first = c;
    first.layout = from;
    first.steps = CELL_SAVED;
    first.save = t_path(path);
    run_cell(first, single);
    c.layout = to;
    c.load = first.save;
    run_cell(c, single);
}

static struct layout resumed(int tp, int dp, int pp, bool sequence, int zero)
{
    struct layout l = layout_plain(mesh_dense(tp, 1, dp, pp));
    l.sequence = sequence;
    l.zero = zero;
    return l;
}

static struct layout resumed_context(int tp, int cp, int dp, int pp, enum context_comm how)
{
    struct layout l = layout_plain(mesh_dense(tp, cp, dp, pp));
    l.context = how;
    l.zero = dp > 1;
    return l;
}

static void any_layout_resumes_any_other(void)
{
    const struct layout all[] = {resumed(1, 1, 1, false, 0),
                                 resumed(1, 4, 1, false, 1),
                                 resumed(4, 1, 1, true, 0),
                                 resumed(1, 1, 4, false, 0),
                                 resumed(2, 2, 1, false, 1),
                                 resumed(8, 1, 1, false, 0),
                                 resumed(2, 2, 2, true, 1),
                                 resumed(1, 2, 1, false, 0),
                                 resumed(1, 2, 2, false, 1),
                                 resumed(1, 4, 1, false, 3),
                                 resumed(2, 2, 1, true, 2),
                                 resumed(2, 4, 1, false, 3),
                                 resumed_context(1, 2, 2, 1, CONTEXT_P2P),
                                 resumed_context(2, 2, 1, 1, CONTEXT_ALL_GATHER),
                                 resumed_context(1, 2, 1, 2, CONTEXT_A2A),
                                 resumed_context(1, 4, 2, 1, CONTEXT_P2P)};
    int n = sizeof(all) / sizeof(all[0]), before = cells, others = getenv("WEFT_FULL") ? 3 : 1;
    for (int model = 0; model < 3; model++) {
        struct cell c = {.spec = model & 1 ? cell_llama() : cell_gpt(),
                         .real = DTYPE_F64,
                         .optimizer = model == 2 ? OPTIM_SGD : OPTIM_ADAM,
                         .micros = 8,
                         .steps = CELL_STEPS,
                         .layout = all[0]};
        struct cell_single single;
        char why[600];
        if (cell_run_single(&c, &single, why, sizeof(why)))
            t_fail(__FILE__, __LINE__, "%s", why);
        for (int i = 0; i < n; i++)
            for (int k = 1; k <= (model == 2 ? 1 : others); k++)
                run_resume(c, all[i], all[(i + k) % n], &single);
        cell_single_finish(&single);
    }
    printf("# %d cells\n", cells - before);
}

T_MAIN(T_CASE(data_parallel), T_CASE(mixture), T_CASE(spread_experts),
       T_CASE(spread_experts_shared_out), T_CASE(tensor_parallel), T_CASE(sequence_parallel),
       T_CASE(several_axes), T_CASE(zero_1), T_CASE(zero_2), T_CASE(zero_3), T_CASE(instances),
       T_CASE(overlap), T_CASE(pipeline), T_CASE(pipeline_and_others), T_CASE(interleaved),
       T_CASE(uneven_stages), T_CASE(recomputation), T_CASE(context_parallel),
       T_CASE(context_and_others), T_CASE(context_of_each_layer),
       T_CASE(any_layout_resumes_any_other))

/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>

#include "tests/t.h"
#include "tests/train/lattice/world.h"

/*
 * Families of models on layouts of 1 to 8 ranks against the single rank, in double at 1e-9: a
 * seeded sample of a handful of layouts each, of FULL with WEFT_FULL.
 */

enum { QUICK = 6, FULL = 60, LAYOUTS_MAX = 20000, SEED = 2121 };

struct sample {
    struct layout at[LAYOUTS_MAX];
    size_t n;
};

/* What train runs of all layouts of the model; micro-batches are shared out evenly. */
static void add_layouts(struct sample *s, const struct cell *c, int world)
{
    const struct layout_model m = {.layers = c->spec.layers,
                                   .heads = c->spec.heads,
                                   .kv_heads = c->spec.kv_heads,
                                   .ffn = c->spec.ffn,
                                   .padded_vocab = c->spec.padded_vocab,
                                   .experts = c->spec.experts,
                                   .expert_ffn = c->spec.expert_ffn,
                                   .seq_length = CELL_LENGTH};
    struct layout *all;
    size_t n = layout_list(&m, world, &all);
    for (size_t i = 0; i < n && s->n < LAYOUTS_MAX; i++) {
        int64_t micros = c->micros / all[i].mesh.dp;
        if (c->micros % all[i].mesh.dp == 0 && (all[i].chunks == 1 || micros % all[i].mesh.pp == 0))
            s->at[s->n++] = all[i];
    }
    free(all);
}

/* How a layout is run, by its number: overlap, recomputation. */
static void vary(struct cell *c, uint64_t k)
{
    static const struct recompute recomputations[] = {
        {RECOMPUTE_NONE, 0, false}, {RECOMPUTE_SELECTIVE, 0, false}, {RECOMPUTE_UNIFORM, 1, false}};
    c->seed = k + 1;
    c->overlap = (unsigned)k % 4;
    c->recompute = recomputations[k % 3];
}

static void run_family(struct spec spec)
{
    static struct sample s;
    int cells = getenv("WEFT_FULL") ? FULL : QUICK;
    char name[128], why[600];
    for (int i = 0; i < 2; i++) { /* without and with dropout and documents */
        struct cell c = {.spec = spec, .real = DTYPE_F64, .micros = 8, .steps = CELL_STEPS};
        struct cell_single single = {0};
        c.documents = i;
        if (i)
            c.spec.hidden_dropout = c.spec.attention_dropout = 0.2;
        c.layout = layout_plain(mesh_single());
        if (cell_run_single(&c, &single, why, sizeof(why)))
            t_fail(__FILE__, __LINE__, "%s", why);
        s.n = 0;
        for (int world = 1; world <= CELL_WORLD_MAX; world *= 2)
            add_layouts(&s, &c, world);
        for (uint64_t k = 0; k < (uint64_t)cells / 2; k++) {
            c.layout = s.at[t_rand(SEED + (uint64_t)i, k) % s.n];
            vary(&c, k);
            cell_name(&c, name, sizeof(name));
            if (cell_run(&c, &single, 1e-9, why, sizeof(why)))
                t_fail(__FILE__, __LINE__, "%s, recomputation %d: %s", name, (int)c.recompute.kind,
                       why);
        }
        cell_single_finish(&single);
    }
    printf("# %d of %zu cells\n", cells, 2 * s.n);
}

static void qwen3(void)
{
    run_family(cell_qwen3());
}

T_MAIN(T_CASE(qwen3))

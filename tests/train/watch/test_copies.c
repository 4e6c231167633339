/* SPDX-License-Identifier: Apache-2.0 */
#include "train/watch/copies.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/mem.h"
#include "tests/t.h"
#include "tests/train/lattice/world.h"
#include "train/engine/state.h"

/* Ranks that are threads, after a step; one of them then holds another byte. */

enum { CURSOR = -2, NONE = -1 };

/* What is planted: in the last box of a tensor that a rank holds, or in its cursor. */
struct plant {
    const char *group, *tensor; /* NULL: the cursor */
    int rank;
};

struct world {
    const struct plant *plant;
    int code[CELL_WORLD_MAX], equal[CELL_WORLD_MAX];
    uint64_t bytes;
    struct err e[CELL_WORLD_MAX];
};

static void flip(struct rank *r, const struct plant *p)
{
    struct state_entries held = state_held(r);
    const struct state_entry *last = NULL;
    if (!p->tensor)
        r->at.scheduled++;
    for (size_t i = 0; i < held.n && p->tensor; i++)
        if (!strcmp(held.at[i].group, p->group) && !strcmp(held.at[i].source->name, p->tensor))
            last = &held.at[i];
    if (last)
        *(unsigned char *)last->mem.data ^= 1;
    free(held.at);
}

static void plant_and_compare(void *arg, struct rank *r, struct loader *in)
{
    struct world *w = arg;
    struct copies *c;
    int me = r->comm.rank;
    (void)in;
    w->equal[me] = copies_find(r, &c, &w->e[me]);
    if (!w->equal[me])
        w->equal[me] = copies_compare(r, c, &w->e[me]);
    if (w->equal[me])
        return;
    if (me == 0)
        w->bytes = copies_bytes(c);
    if (me == w->plant->rank)
        flip(r, w->plant);
    w->code[me] = copies_compare(r, c, &w->e[me]);
    copies_destroy(c);
}

static struct cell cell_of(struct spec spec, struct layout l)
{
    return (struct cell){.spec = spec,
                         .layout = l,
                         .real = DTYPE_F32,
                         .optimizer = OPTIM_ADAM,
                         .micros = 8,
                         .steps = 1,
                         .seed = 1};
}

/* All ranks must say the same. */
static void expect(struct cell c, struct plant p, const char *sentence)
{
    static struct world w;
    char why[600], name[160];
    w = (struct world){.plant = &p};
    c.look = plant_and_compare;
    c.look_arg = &w;
    cell_name(&c, name, sizeof(name));
    if (cell_run(&c, NULL, 0, why, sizeof(why)))
        t_fail(__FILE__, __LINE__, "%s: %s", name, why);
    for (int i = 0; i < mesh_world(c.layout.mesh); i++) {
        T_OK(w.equal[i], &w.e[i]);
        if (w.code[i] != ERR_FAULT || strcmp(w.e[i].msg, sentence) != 0)
            t_fail(__FILE__, __LINE__, "%s: rank %d says %d, \"%s\", expected \"%s\"", name, i,
                   w.code[i], w.e[i].msg, sentence);
    }
}

static struct layout layout_of(int tp, int cp, int dp, int pp, int zero)
{
    struct layout l = layout_plain(mesh_dense(tp, cp, dp, pp));
    l.zero = zero;
    return l;
}

#define DIFFERS " differs between replicas: "

static void each_kind_of_weights(void)
{
    struct layout l;
    expect(cell_of(cell_gpt(), layout_of(1, 1, 4, 1, 0)),
           (struct plant){CKPT_PARAM, "layers.1.mlp.up.weight", 2},
           "layers.1.mlp.up.weight" DIFFERS "rank 2 has other values than rank 0");
    expect(cell_of(cell_gpt(), layout_of(1, 2, 1, 1, 0)),
           (struct plant){CKPT_PARAM, "position.weight", 0},
           "position.weight" DIFFERS "rank 1 has other values than rank 0");
    /* whole on tensor-parallel ranks */
    expect(cell_of(cell_gpt(), layout_of(4, 1, 1, 1, 0)),
           (struct plant){CKPT_PARAM, "layers.0.attn_norm.weight", 0},
           "layers.0.attn_norm.weight" DIFFERS "rank 0 has other values than rank 1");
    expect(cell_of(cell_gpt(), layout_of(4, 1, 1, 1, 0)),
           (struct plant){CKPT_PARAM, "layers.3.mlp.down.bias", 3},
           "layers.3.mlp.down.bias" DIFFERS "rank 3 has other values than rank 0");
    expect(cell_of(cell_mixtral(), layout_of(2, 1, 1, 1, 0)),
           (struct plant){CKPT_PARAM, "layers.0.mlp.router.weight", 1},
           "layers.0.mlp.router.weight" DIFFERS "rank 1 has other values than rank 0");
    /* two key/value heads on four ranks */
    expect(cell_of(cell_llama(), layout_of(4, 1, 1, 1, 0)),
           (struct plant){CKPT_PARAM, "layers.2.attn.k.weight", 3},
           "layers.2.attn.k.weight" DIFFERS "rank 3 has other values than rank 2");
    /* the tied embedding on both ends of a pipeline */
    expect(cell_of(cell_gpt(), layout_of(1, 1, 2, 4, 0)),
           (struct plant){CKPT_PARAM, "embed.weight", 7},
           "embed.weight" DIFFERS "rank 7 has other values than rank 0");
    /* experts of half of the ranks */
    l = layout_of(1, 1, 4, 1, 0);
    l.mesh.ep = 2;
    expect(cell_of(cell_mixtral(), l),
           (struct plant){CKPT_PARAM, "layers.0.mlp.experts.2.down.weight", 3},
           "layers.0.mlp.experts.2.down.weight" DIFFERS "rank 3 has other values than rank 1");
}

static void each_kind_of_state(void)
{
    struct cell c = cell_of(cell_gpt(), layout_of(1, 1, 2, 1, 0));
    expect(c, (struct plant){"exp_avg_sq", "layers.0.attn.q.weight", 1},
           "exp_avg_sq of layers.0.attn.q.weight" DIFFERS "rank 1 has other values than rank 0");
    expect(c, (struct plant){.rank = 1},
           "the count of steps and samples" DIFFERS "rank 1 has other values than rank 0");
    c.optimizer = OPTIM_SAI;
    expect(c, (struct plant){CKPT_GSNR, "layers.0.attn.q.weight", 1},
           "gsnr of layers.0.attn.q.weight" DIFFERS "rank 1 has other values than rank 0");
    /* shared out to data-parallel ranks, and held by tensor-parallel ones */
    expect(cell_of(cell_llama(), layout_of(4, 1, 2, 1, 1)),
           (struct plant){"exp_avg", "layers.0.attn.v.weight", 1},
           "exp_avg of layers.0.attn.v.weight" DIFFERS "rank 1 has other values than rank 0");
    /* copies of the optimizer's state */
    c = cell_of(cell_gpt(), layout_of(1, 1, 4, 1, 2));
    c.layout.mesh.instances = 2;
    expect(c, (struct plant){"exp_avg", "layers.0.mlp.up.weight", 3},
           "exp_avg of layers.0.mlp.up.weight" DIFFERS "rank 3 has other values than rank 1");
    /* what the model reads in 16 bits is whole, the weights themselves are shared out */
    c = cell_of(cell_gpt(), layout_of(1, 1, 2, 1, 1));
    c.real = DTYPE_BF16;
    expect(c, (struct plant){STATE_COPIES, "norm.weight", 1},
           "weight_copy of norm.weight" DIFFERS "rank 1 has other values than rank 0");
}

/* ---- any byte ---------------------------------------------------------------------------- */

enum { FLIPS = 12 };

struct any {
    struct state_entries held[CELL_WORLD_MAX];
    uint64_t seed;
    int shared, missed, false_alarms;
};

static bool is_held(const struct any *a, int but, const struct state_entry *s, struct box element,
                    int world)
{
    struct box common;
    for (int k = 0; k < world; k++)
        for (size_t i = 0; i < a->held[k].n; i++) {
            const struct state_entry *t = &a->held[k].at[i];
            if (k != but && !strcmp(s->group, t->group) &&
                !strcmp(s->source->name, t->source->name) &&
                box_intersect(t->mem.box, element, &common))
                return true;
        }
    return false;
}

/* One byte of one element of one rank, as `turn` says; 1: another rank holds it, too. */
static int flip_any(struct any *a, struct rank *r, uint64_t turn)
{
    int world = r->comm.world, k = (int)(t_rand(a->seed, 4 * turn) % (uint64_t)world);
    struct state_entry *s = &a->held[k].at[t_rand(a->seed, 4 * turn + 1) % a->held[k].n];
    int64_t i = (int64_t)(t_rand(a->seed, 4 * turn + 2) % (uint64_t)box_count(s->mem.box));
    int64_t row = i / s->mem.box.count[1], col = i % s->mem.box.count[1];
    struct box element = {{s->mem.box.begin[0] + row, s->mem.box.begin[1] + col}, {1, 1}};
    size_t size = dtype_size(s->mem.dtype);
    if (k == r->comm.rank)
        ((unsigned char *)s->mem.data)[(size_t)(row * s->mem.stride + col) * size + turn % size] ^=
            0x10;
    return is_held(a, k, s, element, world);
}

static void flip_some(void *arg, struct rank *r, struct loader *in)
{
    struct any *a = arg;
    struct copies *c;
    struct err e;
    (void)in;
    if (copies_find(r, &c, &e))
        return;
    a->held[r->comm.rank] = state_held(r);
    comm_wait(&r->comm, comm_barrier(&r->comm, GROUP_WORLD));
    for (uint64_t turn = 0; turn < FLIPS; turn++) {
        int shared = flip_any(a, r, turn), code = copies_compare(r, c, &e);
        if (r->comm.rank == 0) {
            a->shared += shared;
            a->missed += shared && code != ERR_FAULT;
            a->false_alarms += !shared && code;
        }
        flip_any(a, r, turn); /* back */
    }
    comm_wait(&r->comm, comm_barrier(&r->comm, GROUP_WORLD));
    copies_destroy(c);
}

/* Caught exactly where another rank holds the element, too, which is found out without any cut. */
static void any_byte(void)
{
    static const struct {
        int tp, cp, dp, pp, zero, instances, ep;
    } all[] = {{4, 1, 2, 1, 1, 0, 1}, {1, 1, 2, 4, 1, 0, 1}, {1, 1, 4, 1, 2, 0, 1},
               {1, 1, 4, 1, 3, 2, 1}, {2, 1, 2, 2, 0, 0, 1}, {1, 2, 2, 2, 1, 2, 1},
               {2, 1, 4, 1, 1, 0, 2}, {2, 2, 2, 1, 3, 0, 4}, {1, 1, 4, 2, 1, 0, 1}};
    int shared = 0, alone = 0;
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        for (int model = 0; model < 3; model++) {
            struct any a = {.seed = 3 * i + (uint64_t)model + 1};
            struct spec s = model == 0 ? cell_gpt() : model == 1 ? cell_llama() : cell_mixtral();
            struct cell c =
                cell_of(s, layout_of(all[i].tp, all[i].cp, all[i].dp, all[i].pp, all[i].zero));
            char why[600], name[160];
            c.layout.mesh.instances = all[i].instances;
            c.layout.mesh.ep = model == 2 ? all[i].ep : 1;
            c.layout.sequence = c.layout.mesh.ep > 1 && c.layout.mesh.tp > 1;
            c.look = flip_some;
            c.look_arg = &a;
            cell_name(&c, name, sizeof(name));
            if (cell_run(&c, NULL, 0, why, sizeof(why)))
                t_fail(__FILE__, __LINE__, "%s: %s", name, why);
            if (a.missed || a.false_alarms)
                t_fail(__FILE__, __LINE__, "%s: of %d bytes %d were missed; %d false alarms", name,
                       a.shared, a.missed, a.false_alarms);
            for (int k = 0; k < CELL_WORLD_MAX; k++)
                free(a.held[k].at);
            shared += a.shared;
            alone += FLIPS - a.shared;
        }
    printf("# %d bytes that others hold, %d that nobody else holds\n", shared, alone);
    T_CHECK(shared > 50 && alone > 20);
}

/* What one rank alone holds is not read. */
static void shares_are_not_read(void)
{
    static struct world w;
    struct plant p = {CKPT_PARAM, "norm.weight", 0};
    struct cell c = cell_of(cell_gpt(), layout_of(1, 1, 2, 1, 3));
    char why[600];
    w = (struct world){.plant = &p};
    c.look = plant_and_compare;
    c.look_arg = &w;
    if (cell_run(&c, NULL, 0, why, sizeof(why)))
        t_fail(__FILE__, __LINE__, "%s", why);
    T_EQ(w.code[0], 0);
    T_EQ(w.bytes, STATE_NUMBERS * sizeof(uint64_t));
}

T_MAIN(T_CASE(each_kind_of_weights), T_CASE(each_kind_of_state), T_CASE(any_byte),
       T_CASE(shares_are_not_read))

/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Stochastic rounding in layouts that cut the parameters every way: what the optimizer keeps in
 * bf16 after the first step is what a single rank keeps, but for the few numbers that sums in
 * another order move across the threshold of their random bits. Bits that depended on the layout
 * would move a third of them. Ranks that hold the same element agree in it to the bit.
 */

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/mem.h"
#include "tests/t.h"
#include "tests/train/lattice/world.h"
#include "tests/train/spec/same.h"
#include "train/optim/optim.h"

enum { KEPT = 1 + OPTIM_STATES };

/* Of all ranks, in the places of a single one's. */
struct whole {
    pthread_mutex_t lock;
    struct params params;
    uint16_t *at[KEPT];
    bool *known[KEPT];
    int64_t disagree, seen;
};

static void whole_open(struct whole *w, const struct cell *c)
{
    struct err e;
    *w = (struct whole){.lock = PTHREAD_MUTEX_INITIALIZER};
    T_OK(params_build(&w->params, &c->spec, layout_plain(mesh_single()), 0, &e), &e);
    for (int k = 0; k < KEPT; k++) {
        w->at[k] = mem_new((size_t)w->params.elements, sizeof(**w->at));
        w->known[k] = mem_new((size_t)w->params.elements, sizeof(**w->known));
    }
}

static void whole_close(struct whole *w)
{
    for (int k = 0; k < KEPT; k++) {
        free(w->at[k]);
        free(w->known[k]);
    }
    params_finish(&w->params);
}

static void put(struct whole *w, int k, int64_t to, uint16_t bits)
{
    w->disagree += w->known[k][to] && w->at[k][to] != bits;
    w->seen++;
    w->at[k][to] = bits;
    w->known[k][to] = true;
}

/* A tensor of a checkpoint, as far as the piece has it. */
static void put_source(struct whole *w, int k, struct tensor t, struct zero_piece piece,
                       const struct param *p, const struct param_source *s)
{
    const struct param *to = params_same(&w->params, p);
    for (int j = 0; j < to->sources; j++) {
        if (strcmp(to->source[j].name, s->name))
            continue;
        for (int64_t i = 0; i < s->count[0] * s->count[1]; i++) {
            int64_t row = s->begin[0] + i / s->count[1], col = s->begin[1] + i % s->count[1];
            int64_t from = p->offset + s->row * p->size[1] + i;
            if (from >= piece.begin && from < piece.end)
                put(w, k, to->offset + (to->source[j].row + row) * to->size[1] + col,
                    ((const uint16_t *)t.data)[piece.at + from - piece.begin]);
        }
    }
}

static void put_rank(void *arg, const struct rank *r, const struct cell_numbers *grads)
{
    struct whole *w = arg;
    (void)grads;
    pthread_mutex_lock(&w->lock);
    for (int k = 0; k < KEPT; k++) {
        struct tensor t = k ? r->optim.state[k - 1] : r->optim.master;
        if (tensor_none(t) || t.dtype != DTYPE_BF16)
            continue;
        for (size_t z = 0; z < zero_pieces_of(&r->zero.split, t.size[0]); z++)
            for (int i = 0; i < r->params.n; i++)
                for (int s = 0; s < r->params.at[i].sources; s++)
                    put_source(w, k, t, zero_piece_of(&r->zero.split, t.size[0], z),
                               &r->params.at[i], &r->params.at[i].source[s]);
    }
    pthread_mutex_unlock(&w->lock);
}

static void run(struct cell c, struct whole *w)
{
    char name[128], why[600];
    whole_open(w, &c);
    c.judge = put_rank;
    c.arg = w;
    cell_name(&c, name, sizeof(name));
    if (cell_run(&c, NULL, 0, why, sizeof(why)))
        t_fail(__FILE__, __LINE__, "%s: %s", name, why);
    if (w->disagree)
        t_fail(__FILE__, __LINE__, "%s: ranks disagree in %lld of %lld elements", name,
               (long long)w->disagree, (long long)w->seen);
}

/* The share of elements that differ, of the worst of weights and moments. */
static double differ(const struct whole *a, const struct whole *b, const char *name)
{
    double worst = 0;
    for (int k = 0; k < KEPT; k++) {
        int64_t n = 0, other = 0;
        for (int64_t i = 0; i < a->params.elements; i++) {
            if (a->known[k][i] != b->known[k][i])
                t_fail(__FILE__, __LINE__, "%s: element %lld is missing", name, (long long)i);
            n += a->known[k][i];
            other += a->known[k][i] && a->at[k][i] != b->at[k][i];
        }
        double share = n ? (double)other / (double)n : 0;
        worst = share > worst ? share : worst;
    }
    return worst;
}

static const struct cell_shares layouts[] = {
    {1, 4, 1, 1, false, 0, {4}},          {1, 4, 1, 1, false, 1, {4}},
    {1, 2, 1, 1, false, 2, {4}},          {1, 4, 1, 1, false, 3, {4}},
    {4, 1, 1, 1, false, 0, {4}},          {2, 2, 1, 1, true, 1, {4}},
    {1, 1, 4, 1, false, 0, {1, 1, 1, 1}}, {2, 2, 2, 1, false, 1, {1, 3}},
    {1, 2, 1, 1, false, 3, {4}, 2}};

/* Weights and moments in bf16; activations in `real`. */
static void in_layouts(struct spec spec, enum dtype real, enum optim_kind kind, double most)
{
    struct cell c = {.spec = spec,
                     .real = real,
                     .optimizer = kind,
                     .tuning = {.muon.momentum = 0.95, .muon.extra = 1, .muon.steps = 5},
                     .narrow = {.master = true, .moment = {true, true}},
                     .round = true,
                     .micros = 8,
                     .steps = 1,
                     .layout = layout_plain(mesh_single())};
    struct whole single, nearest;
    double worst = 0;
    c.spec.init_std = 0.05;
    run(c, &single);
    c.round = false;
    run(c, &nearest);
    T_CHECK(differ(&single, &nearest, "to the nearest") > 0.2);
    whole_close(&nearest);
    c.round = true;
    for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++) {
        struct whole w;
        char name[128];
        c.layout = cell_layout(&layouts[i]);
        cell_name(&c, name, sizeof(name));
        run(c, &w);
        double share = differ(&single, &w, name);
        if (getenv("WEFT_FULL"))
            printf("# %s: %.4f\n", name, share);
        if (share > most)
            t_fail(__FILE__, __LINE__, "%s: %.3f of the numbers differ", name, share);
        worst = share > worst ? share : worst;
        whole_close(&w);
    }
    printf("# at most %.4f of the numbers differ\n", worst);
    whole_close(&single);
}

static void adam(void)
{
    in_layouts(cell_gpt(), DTYPE_F32, OPTIM_ADAM, 0.02);
    in_layouts(cell_llama(), DTYPE_F32, OPTIM_ADAM, 0.02);
}

static void sgd(void)
{
    in_layouts(cell_llama(), DTYPE_F32, OPTIM_SGD, 0.02);
}

static void sai(void)
{
    in_layouts(cell_gpt(), DTYPE_F32, OPTIM_SAI, 0.02);
}

static void muon(void)
{
    in_layouts(cell_llama(), DTYPE_F32, OPTIM_MUON, 0.02);
}

T_MAIN(T_CASE(adam), T_CASE(sgd), T_CASE(sai), T_CASE(muon))

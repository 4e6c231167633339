/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What a comparison with the plain twins (test_twins.c) would not show: that the fast entries keep
 * digits where sums are long or numbers far from zero, at every level that the processor has.
 */

#include <math.h>

#include "tests/t.h"
#include "tests/train/ops/world.h"

enum { WORKSPACE = 1 << 20 };

static const char *const levels[] = {"plain", "avx2", "avx512"};

/* Runs `fn` in a world of each level. */
static void at_each_level(void (*fn)(struct world *w))
{
    for (int l = 0; l < 3; l++) {
        struct world w;
        struct ops o;
        struct err e;
        if (ops_cpu_init(&o, NULL, NULL, DTYPE_F32, levels[l], &e))
            continue;
        world_open(&w, DTYPE_F32, levels[l], 1, WORKSPACE);
        fn(&w);
        world_guarded(&w);
        world_close(&w);
    }
}

static struct tensor filled(struct world *w, int64_t n, double value)
{
    struct tensor t = world_1d(w, 1, n);
    for (int64_t i = 0; i < n; i++)
        world_set(t, i, value);
    return t;
}

/*
 * Ten thousand steps towards nothing but decay: rounding 1 - lr decay, or 1 - beta, to float would
 * show here by hundreds of times the tolerance.
 */
static void decay(struct world *w)
{
    enum { N = 19 };
    struct adamw_args a = {.p = world_1d(w, 0.02, N),
                           .g = filled(w, N, 0),
                           .m = filled(w, N, 0),
                           .v = filled(w, N, 1),
                           .values = world_values(w, (struct step_values){0}),
                           .beta1 = 0.9,
                           .beta2 = 0.999,
                           .eps = 1e-8};
    double start = world_get(a.p, 7);
    for (int step = 1; step <= 10000; step++) {
        *(struct step_values *)a.values.data = step_values_make(1e-5, 3.3, step, 0.9, 0.999);
        op_adamw(&w->ops, &a);
    }
    T_NEAR(log(world_get(a.p, 7) / start), 10000 * log(1 - 3.3e-5), 2e-4);
    T_NEAR(log(world_get(a.v, 7)), 10000 * log(0.999), 2e-4);
}

static void adamw_decays_as_told(void)
{
    at_each_level(decay);
}

/* Rows far from zero: the mean is taken off before anything is squared. */
static void large_means(struct world *w)
{
    enum { ROWS = 2, WIDTH = 1003 };
    const int64_t size[] = {ROWS, WIDTH}, rows = ROWS;
    struct norm_args a = {.kind = NORM_LAYER,
                          .x = world_2d(w, 1, ROWS, WIDTH, 0),
                          .w = filled(w, WIDTH, 1),
                          .y = world_poisoned(w, DTYPE_F32, 0, 2, size),
                          .mean = world_poisoned(w, DTYPE_F32, 0, 1, &rows),
                          .rstd = world_poisoned(w, DTYPE_F32, 0, 1, &rows)};
    double square = 0, sum = 0;
    for (int64_t i = 0; i < ROWS * WIDTH; i++)
        world_set(a.x, i, world_get(a.x, i) + 1000);
    op_norm(&w->ops, &a);
    for (int64_t j = 0; j < WIDTH; j++) {
        sum += world_get(a.y, j) / WIDTH;
        square += world_get(a.y, j) * world_get(a.y, j) / WIDTH;
    }
    T_NEAR(sum, 0, 1e-4);
    T_NEAR(square, 1, 1e-5);
}

static void norm_of_large_means(void)
{
    at_each_level(large_means);
}

/* Two calls into one bias gradient: the second adds to what the first has left. */
static void bias_gradients_add_up(struct world *w)
{
    enum { ROWS = 37, COLS = 21, INNER = 9 };
    struct world plain;
    struct matmul_args a = {.y = world_2d(w, 1, COLS, INNER, 0),
                            .b = world_2d(w, 1, ROWS, INNER, 0),
                            .ta = true,
                            .accumulate = true};
    struct tensor bias[2] = {filled(w, COLS, 0), filled(w, COLS, 0)};
    world_open(&plain, DTYPE_F32, "ref", 1, WORKSPACE);
    for (int call = 0; call < 2; call++) {
        a.a = world_2d(w, 1, ROWS, COLS, 0);
        for (int side = 0; side < 2; side++) {
            a.dbias = bias[side];
            op_matmul(side ? &plain.ops : &w->ops, &a);
        }
    }
    for (int64_t j = 0; j < COLS; j++)
        T_NEAR(world_get(bias[0], j), world_get(bias[1], j), 1e-5);
    world_close(&plain);
}

static void bias_gradients_of_two_calls(void)
{
    at_each_level(bias_gradients_add_up);
}

/* A vocabulary in two parts: the bits of the whole table, and nothing for ids that are elsewhere.
 */
static void vocabulary_in_parts(struct world *w)
{
    enum { N = 300, V = 37, CUT = 20, C = 130 };
    struct embed_args a = {.id = world_ids(w, N, V), .tok = world_2d(w, 1, V, C, 0)};
    struct embed_bwd_args b = {.id = a.id, .dy = world_2d(w, 1, N, C, 3)};
    struct tensor y = world_2d(w, 1, N, C, 0), dtok = world_2d(w, 1, V, C, 1);
    struct tensor part_y = world_2d(w, 1, N, C, 2);
    for (int64_t i = 0; i < tensor_count(dtok); i++)
        world_set(dtok, i, 0);
    a.y = y;
    b.dtok = dtok;
    op_embed(&w->ops, &a);
    op_embed_bwd(&w->ops, &b);
    a.shard = b.shard = true;
    a.y = part_y;
    for (int part = 0; part < 2; part++) {
        struct tensor tok = a.tok;
        int64_t rows = part ? V - CUT : CUT;
        a.first = b.first = part ? CUT : 0;
        a.tok = tensor_rows(tok, a.first, rows);
        b.dtok = world_2d(w, 1, rows, C, 3);
        for (int64_t i = 0; i < rows * C; i++)
            world_set(b.dtok, i, 0);
        op_embed(&w->ops, &a);
        op_embed_bwd(&w->ops, &b);
        for (int64_t i = 0; i < N * C; i++) {
            int64_t id = ((const int32_t *)a.id.data)[i / C] - a.first;
            T_CHECK(world_get(part_y, i) == (id >= 0 && id < rows ? world_get(y, i) : 0));
        }
        for (int64_t i = 0; i < rows * C; i++)
            T_CHECK(world_get(b.dtok, i) == world_get(dtok, a.first * C + i));
        a.tok = tok;
    }
}

static void parts_of_a_vocabulary(void)
{
    at_each_level(vocabulary_in_parts);
}

T_MAIN(T_CASE(adamw_decays_as_told), T_CASE(norm_of_large_means),
       T_CASE(bias_gradients_of_two_calls), T_CASE(parts_of_a_vocabulary))

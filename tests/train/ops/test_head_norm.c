/* SPDX-License-Identifier: Apache-2.0 */

/* QK norm: known values, its backward by differences in double, the vectors' against plain C. */

#include <math.h>

#include "tests/t.h"
#include "tests/train/ops/world.h"
#include "train/ops/head_norm.h"

enum { N = 7, H = 3, D = 6 };

static struct world w;

static void begin(enum dtype real, const char *level, uint64_t stream)
{
    world_close(&w);
    world_open(&w, real, level, 1, 1 << 18);
    world_clear(&w, stream);
}

static void known_values(void)
{
    begin(DTYPE_F64, NULL, 1);
    struct tensor x = world_3d(&w, 1, 1, 1, 2, 3), weight = world_1d(&w, 1, 2);
    struct tensor pre = world_3d(&w, 1, 1, 1, 2, 1), rstd = world_2d(&w, 1, 1, 1, 0);
    world_set(x, 0, 3);
    world_set(x, 1, -4);
    world_set(weight, 0, 2);
    world_set(weight, 1, 0.5);
    op_head_norm(&w.ops,
                 &(struct head_norm_args){.eps = 0, .x = x, .pre = pre, .rstd = rstd, .w = weight});
    T_NEAR(world_get(x, 0), 2 * 3 / sqrt(12.5), 1e-14);
    T_NEAR(world_get(x, 1), 0.5 * -4 / sqrt(12.5), 1e-14);
    T_NEAR(world_get(rstd, 0), 1 / sqrt(12.5), 1e-14);
    T_NEAR(world_get(pre, 0), 3, 0);
    T_NEAR(world_get(pre, 1), -4, 0);
    world_guarded(&w);
}

static struct tensor in, weigh;
static struct head_norm_args norm;

/* The output weighed by random numbers, summed. */
static double loss(void)
{
    double sum = 0;
    for (int64_t i = 0; i < tensor_count(in); i++)
        world_set(norm.x, i, world_get(in, i));
    op_head_norm(&w.ops, &norm);
    for (int64_t i = 0; i < tensor_count(in); i++)
        sum += world_get(norm.x, i) * world_get(weigh, i);
    return sum;
}

static void slopes(const char *what, struct tensor x, struct tensor grad, const double *before)
{
    const double h = 1e-5;
    for (int64_t i = 0; i < tensor_count(x); i++) {
        double at = world_get(x, i), have = world_get(grad, i) - before[i];
        world_set(x, i, at + h);
        double up = loss();
        world_set(x, i, at - h);
        double want = (up - loss()) / (2 * h);
        world_set(x, i, at);
        if (!(fabs(have - want) <= 1e-7 * (1 + fabs(want))))
            t_fail(__FILE__, __LINE__, "%s[%lld]: gradient %.10g, slope %.10g", what, (long long)i,
                   have, want);
    }
}

static void backward(void)
{
    static const double zeros[N * H * D];
    double before[D];
    begin(DTYPE_F64, NULL, 2);
    in = world_3d(&w, 1, N, H, D, 0);
    weigh = world_3d(&w, 1, N, H, D, 0);
    norm = (struct head_norm_args){.eps = 1e-3f,
                                   .x = world_3d(&w, 1, N, H, D, 5),
                                   .pre = world_3d(&w, 1, N, H, D, 2),
                                   .rstd = world_2d(&w, 1, N, H, 1),
                                   .w = world_1d(&w, 1, D)};
    struct tensor dx = world_3d(&w, 1, N, H, D, 4), dw = world_1d(&w, 1, D);
    for (int64_t i = 0; i < N * H * D; i++)
        world_set(dx, i, world_get(weigh, i));
    for (int64_t i = 0; i < D; i++)
        before[i] = world_get(dw, i);
    loss();
    op_head_norm_bwd(&w.ops,
                     &(struct head_norm_bwd_args){
                         .dx = dx, .pre = norm.pre, .rstd = norm.rstd, .w = norm.w, .dw = dw});
    slopes("dx", in, dx, zeros);
    slopes("dw", norm.w, dw, before);
    world_guarded(&w);
}

/* Everything that both ops write, one after the other. */
static size_t run_both(const char *level, int64_t rows, int64_t heads, int64_t dim, double *to)
{
    begin(DTYPE_F32, level, (uint64_t)(rows * heads * dim));
    struct head_norm_args a = {.eps = 1e-6f,
                               .x = world_3d(&w, 1, rows, heads, dim, 3),
                               .pre = world_3d(&w, 1, rows, heads, dim, 0),
                               .rstd = world_2d(&w, 1, rows, heads, 0),
                               .w = world_1d(&w, 1, dim)};
    struct tensor dx = world_3d(&w, 1, rows, heads, dim, 7), dw = world_1d(&w, 1, dim);
    op_head_norm(&w.ops, &a);
    op_head_norm_bwd(&w.ops, &(struct head_norm_bwd_args){
                                 .dx = dx, .pre = a.pre, .rstd = a.rstd, .w = a.w, .dw = dw});
    const struct tensor out[] = {a.x, a.pre, a.rstd, dx, dw};
    size_t n = 0;
    for (int k = 0; k < 5; k++)
        for (int64_t i = 0; i < tensor_count(out[k]); i++)
            to[n++] = world_get(out[k], i);
    world_guarded(&w);
    return n;
}

static void vectors_compute_the_same(void)
{
    static double plain[40000], fast[40000];
    static const int64_t shapes[][3] = {{0, 2, 4},   {1, 1, 1},   {5, 3, 7},
                                        {9, 2, 128}, {40, 5, 33}, {31, 4, 96}};
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        const int64_t *s = shapes[i];
        size_t n = run_both("ref", s[0], s[1], s[2], plain);
        T_EQ(run_both(NULL, s[0], s[1], s[2], fast), n);
        for (size_t k = 0; k < n; k++)
            T_NEAR(fast[k], plain[k], 1e-5 * (1 + fabs(plain[k])));
    }
}

T_MAIN(T_CASE(known_values), T_CASE(backward), T_CASE(vectors_compute_the_same))

/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The vector functions of vec_math.h, reached through ops that are nothing else for these
 * arguments, against the C library in double. Errors are in units of 2^-23 of the true value.
 */

#include <math.h>
#include <stdio.h>

#include "tests/t.h"
#include "tests/train/ops/world.h"

enum { N = 400001 };

static struct world w;
static struct tensor x, y; /* [N, 1] */

static bool begin(const char *level, double from, double to)
{
    struct err e;
    struct ops o;
    world_close(&w);
    world_open(&w, DTYPE_F32, "ref", 2, 4 << 20);
    if (ops_cpu_init(&o, &w.dev, &w.workspace, DTYPE_F32, level, &e))
        return false;
    w.ops = o;
    x = world_poisoned(&w, DTYPE_F32, 0, 2, (const int64_t[]){N, 1});
    y = world_poisoned(&w, DTYPE_F32, 0, 2, (const int64_t[]){N, 1});
    for (int64_t i = 0; i < N; i++)
        world_set(x, i, from + (to - from) * (double)i / (N - 1));
    return true;
}

/* The error may be `units` of the true value, or of `least` where that is more. */
static void worst(const char *what, double (*f)(double), double units, double least)
{
    double most = 0, where = 0;
    for (int64_t i = 0; i < N; i++) {
        double want = f(world_get(x, i)), error = fabs(world_get(y, i) - want);
        error /= 0x1p-23 * fmax(fabs(want), least);
        if (!(error <= most)) {
            most = error;
            where = world_get(x, i);
        }
    }
    printf("# %s: at most %.2f units, at %g\n", what, most, where);
    if (!(most <= units))
        t_fail(__FILE__, __LINE__, "%s(%.9g) is off by %.2f units, allowed are %g", what, where,
               most, units);
}

static struct tensor constant(int64_t rows, int64_t cols, double value)
{
    struct tensor t = world_poisoned(&w, DTYPE_F32, 0, 2, (const int64_t[]){rows, cols});
    for (int64_t i = 0; i < rows * cols; i++)
        world_set(t, i, value);
    return t;
}

static struct tensor column(double value)
{
    return tensor_flat(constant(N, 1, value));
}

/* The gradient of a loss with max 0, sum 1 and no label here is exp(logit). */
static void exponential(void)
{
    struct tensor ids = world_ids(&w, N, 5), total = tensor_flat(constant(1, 2, 0));
    total = tensor_1d(total.data, DTYPE_F64, 1);
    op_copy(&w.ops, &(struct copy_args){.y = y, .x = x});
    op_xent_loss(&w.ops, &(struct xent_loss_args){.logits = y,
                                                  .label = ids,
                                                  .first = 100,
                                                  .max = column(0),
                                                  .sum = column(1),
                                                  .target = column(0),
                                                  .mask = column(1),
                                                  .loss = column(0),
                                                  .total = total,
                                                  .scale = 1,
                                                  .grad = true});
}

static void activation(enum act act)
{
    op_matmul(&w.ops, &(struct matmul_args){.y = y, .a = x, .b = constant(1, 1, 1), .act = act});
}

static void slope(enum act act)
{
    op_matmul(&w.ops, &(struct matmul_args){.y = y,
                                            .a = constant(N, 1, 1),
                                            .b = constant(1, 1, 1),
                                            .act = act,
                                            .act_bwd = true,
                                            .pre = x});
}

static void silu(void)
{
    struct tensor pair = constant(N, 2, 1);
    op_copy(&w.ops, &(struct copy_args){.y = tensor_cols(pair, 0, 1), .x = x});
    op_glu(&w.ops, &(struct glu_args){.y = y, .x = pair});
}

/* ---- the truth ------------------------------------------------------------------------------- */

static double true_silu(double v)
{
    return v / (1 + exp(-v));
}

static double true_erf(double v)
{
    return 0.5 * v * erfc(-v * sqrt(0.5));
}

static double true_erf_slope(double v)
{
    return 0.5 * erfc(-v * sqrt(0.5)) + v * exp(-0.5 * v * v) / sqrt(2 * acos(-1.0));
}

/* (1 + tanh(z / 2)) / 2 = 1 / (1 + exp(-z)), without the cancellation */
static double true_tanh(double v)
{
    return v / (1 + exp(-2 * sqrt(2 / acos(-1.0)) * (v + 0.044715 * v * v * v)));
}

static double true_tanh_slope(double v)
{
    double k = 2 * sqrt(2 / acos(-1.0)), t = exp(-k * (v + 0.044715 * v * v * v));
    double s = 1 / (1 + t);
    return s + v * s * (t * s) * k * (1 + 3 * 0.044715 * v * v);
}

static void level(const char *name)
{
    if (!begin(name, -87, 88))
        t_skip("the processor has no %s", name);
    exponential();
    worst("exp", exp, 1, 0);
    begin(name, -104, -87); /* the result has fewer and fewer bits */
    exponential();
    worst("exp below the normal numbers", exp, 1, 0x1p-126);
    begin(name, -30, 30);
    silu();
    worst("silu", true_silu, 2, 0);
    begin(name, -1, 8);
    activation(ACT_GELU_ERF);
    worst("gelu", true_erf, 4, 0);
    activation(ACT_GELU_TANH);
    worst("gelu by tanh", true_tanh, 4, 0);
    begin(name, -5, -1); /* an exponential of some -13: what is rounded there is enlarged */
    activation(ACT_GELU_ERF);
    worst("gelu, its tail", true_erf, 8, 0);
    activation(ACT_GELU_TANH);
    worst("gelu by tanh, its tail", true_tanh, 24, 0);
    begin(name, -20, 20);
    slope(ACT_GELU_ERF);
    worst("slope of gelu", true_erf_slope, 2, 1);
    slope(ACT_GELU_TANH);
    worst("slope of gelu by tanh", true_tanh_slope, 2, 1);
    world_close(&w);
}

static void plain(void)
{
    level("plain");
}

static void avx2(void)
{
    level("avx2");
}

static void avx512(void)
{
    level("avx512");
}

/* Large arguments end in 0, 1, x or infinity, and NaN stays NaN. */
static void ends(void)
{
    begin(NULL, -1e30, 1e30);
    activation(ACT_GELU_ERF);
    T_NEAR(world_get(y, 0), 0, 0);
    T_NEAR(world_get(y, N - 1) / 1e30, 1, 1e-6);
    slope(ACT_GELU_TANH);
    T_NEAR(world_get(y, 0), 0, 1e-30);
    T_NEAR(world_get(y, N - 1), 1, 0);
    world_set(x, 0, NAN);
    world_set(x, 1, -INFINITY);
    world_set(x, 2, INFINITY);
    exponential();
    T_CHECK(isnan(world_get(y, 0)));
    T_NEAR(world_get(y, 1), 0, 0);
    T_CHECK(isinf(world_get(y, 2)));
    activation(ACT_GELU_TANH);
    T_CHECK(isnan(world_get(y, 0)));
    activation(ACT_GELU_ERF);
    T_CHECK(isnan(world_get(y, 0)));
    silu();
    T_CHECK(isnan(world_get(y, 0)));
    world_close(&w);
}

T_MAIN(T_CASE(plain), T_CASE(avx2), T_CASE(avx512), T_CASE(ends))

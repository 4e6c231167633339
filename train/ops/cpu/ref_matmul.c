/* SPDX-License-Identifier: Apache-2.0 */
#include "train/ops/cpu/ref.h"

#include <math.h>

#include "base/core/fault.h"

static const double half_sqrt2 = 0.70710678118654752440, gelu_cubic = 0.044715,
                    sqrt_2_over_pi = 0.79788456080286535588,
                    one_over_sqrt_2pi = 0.39894228040143267794;

/*
 * GELU (Hendrycks & Gimpel 2016): x P(X <= x) for a standard normal X, or its tanh form
 * x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))).
 */
static double act(enum act kind, double x)
{
    if (kind == ACT_GELU_ERF)
        return 0.5 * x * (1 + erf(x * half_sqrt2));
    if (kind == ACT_GELU_TANH)
        return 0.5 * x * (1 + tanh(sqrt_2_over_pi * (x + gelu_cubic * x * x * x)));
    return x;
}

static double act_derivative(enum act kind, double x)
{
    if (FAULT("matmul_dgelu"))
        return 0.5 * (1 + erf(x * half_sqrt2));
    if (kind == ACT_GELU_ERF)
        return 0.5 * (1 + erf(x * half_sqrt2)) + x * one_over_sqrt_2pi * exp(-0.5 * x * x);
    double t = tanh(sqrt_2_over_pi * (x + gelu_cubic * x * x * x));
    double inner = sqrt_2_over_pi * (1 + 3 * gelu_cubic * x * x);
    return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * inner;
}

/* Element (i, j) of op(a) op(b). */
static double product(const struct matmul_args *a, int64_t i, int64_t j)
{
    int64_t k = a->a.size[a->ta ? 0 : 1];
    const real *x = a->ta ? row(a->a, 0) + i : row(a->a, i);
    const real *y = a->tb ? row(a->b, j) : row(a->b, 0) + j;
    int64_t x_step = a->ta ? a->a.stride : 1, y_step = a->tb ? 1 : a->b.stride;
    double sum = 0;
    for (int64_t p = 0; p < k; p++)
        sum += (double)x[p * x_step] * (double)y[p * y_step];
    return sum;
}

static void add_dbias(const struct matmul_args *a)
{
    for (int64_t i = 0; i < a->dbias.size[0]; i++) {
        double sum = 0;
        for (int64_t p = 0; p < a->a.size[0]; p++)
            sum += (double)row(a->a, p)[i];
        real *d = row(a->dbias, 0) + i;
        *d = FAULT("matmul_dbias") ? (real)sum : *d + (real)sum;
    }
}

void REF(matmul)(struct ops *o, const void *args, void *scratch)
{
    const struct matmul_args *a = args;
    int64_t m = a->y.size[0], n = a->y.size[1];
    (void)o;
    (void)scratch;
    for (int64_t i = 0; i < m; i++) {
        for (int64_t j = 0; j < n; j++) {
            double v = product(a, i, j);
            if (a->accumulate)
                v += (double)row(a->y, i)[j];
            if (!tensor_none(a->bias))
                v += (double)row(a->bias, 0)[j];
            if (a->act_bwd) {
                v *= act_derivative(a->act, (double)row(a->pre, i)[j]);
            } else if (a->act != ACT_NONE) {
                if (!tensor_none(a->pre))
                    row(a->pre, i)[j] = (real)v;
                v = act(a->act, v);
            }
            row(a->y, i)[j] = (real)v;
        }
    }
    if (!tensor_none(a->dbias))
        add_dbias(a);
}

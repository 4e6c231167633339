/* SPDX-License-Identifier: Apache-2.0 */
#include "train/ops/cpu/ref.h"

#include <math.h>

#include "base/core/fault.h"

/*
 * silu(g) = g s with s = 1 / (1 + exp(-g)); silu'(g) = s (1 + g (1 - s)). GELU: g P(g) with the
 * normal distribution P, its tanh form g s(z) with z = 2 sqrt(2 / pi) (g + 0.044715 g^3).
 */

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

static double gate(enum glu act, double g)
{
    double k = 2 * sqrt(2 / acos(-1.0));
    if (act == GLU_SILU)
        return g * sigmoid(g);
    if (act == GLU_GELU_ERF)
        return g * (1 + erf(g / sqrt(2.0))) / 2;
    return g * sigmoid(k * (g + 0.044715 * g * g * g));
}

static double gate_slope(enum glu act, double g)
{
    double k = 2 * sqrt(2 / acos(-1.0)), s = sigmoid(g);
    if (FAULT("glu_bwd"))
        return g == 0 ? 0 : gate(act, g) / g;
    if (act == GLU_SILU)
        return s * (1 + g * (1 - s));
    if (act == GLU_GELU_ERF)
        return (1 + erf(g / sqrt(2.0))) / 2 + g * exp(-g * g / 2) / sqrt(2 * acos(-1.0));
    s = sigmoid(k * (g + 0.044715 * g * g * g));
    return s + g * s * (1 - s) * k * (1 + 3 * 0.044715 * g * g);
}

void REF(glu)(struct ops *o, const void *args, void *scratch)
{
    const struct glu_args *a = args;
    int64_t n = a->y.size[0], width = a->y.size[1];
    (void)o;
    (void)scratch;
    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = 0; j < width; j++) {
            double g = (double)row(a->x, i)[j], u = (double)row(a->x, i)[width + j];
            row(a->y, i)[j] = (real)(gate(a->act, g) * u);
        }
    }
}

void REF(glu_bwd)(struct ops *o, const void *args, void *scratch)
{
    const struct glu_bwd_args *a = args;
    int64_t n = a->dy.size[0], width = a->dy.size[1];
    (void)o;
    (void)scratch;
    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = 0; j < width; j++) {
            double g = (double)row(a->x, i)[j], u = (double)row(a->x, i)[width + j];
            double dy = (double)row(a->dy, i)[j];
            row(a->dx, i)[j] = (real)(dy * u * gate_slope(a->act, g));
            row(a->dx, i)[width + j] = (real)(dy * gate(a->act, g));
        }
    }
}

void REF(rope)(struct ops *o, const void *args, void *scratch)
{
    const struct rope_args *a = args;
    int64_t n = a->x.size[0], heads = a->x.size[1], half = a->rotary / 2;
    double sign = a->backward && !FAULT("rope_bwd") ? -1 : 1;
    (void)o;
    (void)scratch;
    for (int64_t i = 0; i < n; i++) {
        const real *cosine = row(a->cos, ints(a->position)[i]);
        const real *sine = row(a->sin, ints(a->position)[i]);
        for (int64_t h = 0; h < heads; h++) {
            real *x = head(a->x, i, h);
            for (int64_t j = 0; j < half; j++) {
                double u = (double)x[j], v = (double)x[j + half];
                double c = (double)cosine[j], s = sign * (double)sine[j];
                x[j] = (real)(u * c - v * s);
                x[j + half] = (real)(u * s + v * c);
            }
        }
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "train/ops/cpu/ref.h"

#include <math.h>

#include "base/core/fault.h"

/* silu(g) = g s with s = 1 / (1 + exp(-g)); silu'(g) = s (1 + g (1 - s)) */

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
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
            row(a->y, i)[j] = (real)(g * sigmoid(g) * u);
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
            double dy = (double)row(a->dy, i)[j], s = sigmoid(g);
            double slope = FAULT("glu_bwd") ? s : s * (1 + g * (1 - s));
            row(a->dx, i)[j] = (real)(dy * u * slope);
            row(a->dx, i)[width + j] = (real)(dy * g * s);
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

/* SPDX-License-Identifier: Apache-2.0 */
#include "train/ops/cpu/ref.h"

#include "base/core/fault.h"

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

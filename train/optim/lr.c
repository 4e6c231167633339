/* SPDX-License-Identifier: Apache-2.0 */
#include "train/optim/lr.h"

#include <math.h>

double lr_at(const struct lr *c, int64_t samples)
{
    const double pi = 3.14159265358979323846;
    double n = (double)samples, warmup = c->warmup;

    if (warmup > 0 && n <= warmup)
        return c->init + (c->max - c->init) * n / warmup;
    if (c->style == LR_CONSTANT)
        return c->max;
    if (samples > c->decay)
        return c->min;
    if (c->style == LR_INVERSE_SQRT) {
        double lr = c->max * sqrt(warmup > 1 ? warmup : 1) / sqrt(n > 1 ? n : 1);
        return lr > c->min ? lr : c->min;
    }
    double ratio = (double)c->decay > warmup ? (n - warmup) / ((double)c->decay - warmup) : 1;
    double share = c->style == LR_LINEAR ? 1 - ratio : 0.5 * (cos(pi * ratio) + 1);
    return c->min + share * (c->max - c->min);
}

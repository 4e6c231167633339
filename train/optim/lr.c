/* SPDX-License-Identifier: Apache-2.0 */
#include "train/optim/lr.h"

#include <math.h>

#include "base/core/fault.h"

static const double pi = 3.14159265358979323846;

static double half_cosine(double ratio)
{
    return 0.5 * (cos(pi * ratio) + 1);
}

static double lr_v1(const struct lr *c, double n)
{
    double last = c->decay - c->warmup, x = (n < last ? n : last);
    if (c->warmup > 0 && n <= c->warmup)
        return c->init + (c->max - c->init) * x / c->warmup;
    x = (x - c->warmup) / c->decay;
    double lr = c->max;
    if (c->style == LR_LINEAR)
        lr *= 1 - x;
    else if (c->style == LR_COSINE)
        lr *= half_cosine(x);
    else if (c->style == LR_EXPONENTIAL)
        lr *= exp(-(FAULT("lr_exponential") ? log(2) : 0.693) * x);
    return lr > c->min ? lr : c->min;
}

/* The share of max - min that is left at n. */
static double lr_wsd(const struct lr *c, double n)
{
    double begin = c->decay - c->wsd_decay;
    if (n <= begin)
        return 1;
    double r = (n - (FAULT("lr_wsd") ? c->warmup : begin)) / c->wsd_decay;
    switch (c->wsd_style) {
    case WSD_EXPONENTIAL:
        return 2 * pow(0.5, r) - 1;
    case WSD_LINEAR:
        return 1 - r;
    case WSD_COSINE:
        return half_cosine(r);
    default:
        return 1 - sqrt(r);
    }
}

/* In the order of transformers' operations. */
static double lr_hf(const struct lr *c, double n)
{
    double warmup = FAULT("lr_hf") ? 0 : c->warmup, left = c->decay - warmup;
    if (n < warmup)
        return c->max * (n / warmup);
    if (c->style == LR_CONSTANT)
        return c->max;
    if (n >= c->decay)
        return 0;
    if (c->style == LR_LINEAR)
        return c->max * ((c->decay - n) / left);
    return c->max * (0.5 * (1.0 + cos(pi * ((n - warmup) / left))));
}

double lr_at(const struct lr *c, int64_t at)
{
    double n = (double)at, warmup = c->warmup;

    if (c->rules == LR_HF)
        return lr_hf(c, n);
    if ((c->rules == LR_V1 && !FAULT("lr_rules")) || c->style == LR_EXPONENTIAL)
        return lr_v1(c, n);
    if (warmup > 0 && n <= warmup)
        return c->init + (c->max - c->init) * n / warmup;
    if (c->style == LR_CONSTANT)
        return c->max;
    if (n > c->decay)
        return c->min;
    if (c->style == LR_INVERSE_SQRT) {
        double lr = c->max * sqrt(warmup > 1 ? warmup : 1) / sqrt(n > 1 ? n : 1);
        return lr > c->min ? lr : c->min;
    }
    double ratio = c->decay > warmup ? (n - warmup) / (c->decay - warmup) : 1;
    double share = c->style == LR_WSD      ? lr_wsd(c, n)
                   : c->style == LR_LINEAR ? 1 - ratio
                                           : half_cosine(ratio);
    return c->min + share * (c->max - c->min);
}

double decay_at(const struct decay *c, int64_t samples)
{
    if (c->style == DECAY_CONSTANT || (double)samples > c->samples)
        return c->end;
    double ratio = (double)samples / c->samples;
    double share =
        c->style == DECAY_LINEAR || FAULT("decay_style") ? ratio : half_cosine(1 - ratio);
    return c->start + share * (c->end - c->start);
}

int64_t ramp_at(const struct ramp *c, int64_t samples)
{
    int64_t left = c->epoch ? c->epoch - samples % c->epoch : c->full;
    if (left < c->full && !FAULT("epoch_consumed"))
        return left;
    if (!c->increment || samples > c->samples || c->samples == 0)
        return c->full;
    double each = (double)c->samples / (double)((c->full - c->start) / c->increment);
    int64_t steps = (int64_t)((double)samples / each);
    return FAULT("ramp") ? c->full : c->start + steps * c->increment;
}

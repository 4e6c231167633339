/* SPDX-License-Identifier: Apache-2.0 */
#include "train/ops/cpu/ref.h"

#include <math.h>

#include "base/core/fault.h"
#include "train/ops/values.h"

/* The label's column here, or -1. */
static int64_t label_column(struct tensor label, int64_t i, int64_t first, int64_t width)
{
    int64_t column = ints(label)[i] - first;
    return column >= 0 && column < width ? column : -1;
}

void REF(xent_stats)(struct ops *o, const void *args, void *scratch)
{
    const struct xent_stats_args *a = args;
    int64_t n = a->logits.size[0], width = a->logits.size[1];
    (void)o;
    (void)scratch;
    for (int64_t i = 0; i < n; i++) {
        const real *x = row(a->logits, i);
        real max = a->max_given ? row(a->max, 0)[i] : (real)-INFINITY;
        double sum = 0;
        for (int64_t j = 0; j < width && !a->max_given; j++)
            max = x[j] > max ? x[j] : max;
        for (int64_t j = 0; j < width; j++)
            sum += exp((double)x[j] - (double)max);
        int64_t label = label_column(a->label, i, a->first, width);
        row(a->max, 0)[i] = max;
        row(a->sum, 0)[i] = (real)sum;
        row(a->target, 0)[i] = label < 0 ? 0 : x[label];
    }
}

static void logits_to_gradient(const struct xent_loss_args *a, int64_t i, double factor)
{
    int64_t width = a->logits.size[1], label = label_column(a->label, i, a->first, width);
    double max = (double)row(a->max, 0)[i], sum = (double)row(a->sum, 0)[i];
    real *x = row(a->logits, i);
    for (int64_t j = 0; j < width; j++) {
        double one_hot = j == label && !FAULT("xent_grad") ? 1 : 0;
        double t = a->cap > 0 && !FAULT("head_cap") ? (double)x[j] / (double)a->cap : 0;
        double g = (exp((double)x[j] - max) / sum - one_hot) * (1 - t * t);
        x[j] = factor == 0 ? 0 : (real)(g * factor);
    }
}

void REF(xent_loss)(struct ops *o, const void *args, void *scratch)
{
    const struct xent_loss_args *a = args;
    double total = 0, weight = loss_weight(a);
    struct xent_stats_args stats = loss_stats(a);
    if (a->alone)
        REF(xent_stats)(o, &stats, scratch);
    for (int64_t i = 0; i < a->logits.size[0]; i++) {
        double mask = (double)((const float *)a->mask.data)[i], loss = 0;
        if (mask != 0)
            loss = (log((double)row(a->sum, 0)[i]) + (double)row(a->max, 0)[i] -
                    (double)row(a->target, 0)[i]) *
                   mask;
        row(a->loss, 0)[i] = (real)loss;
        total += loss;
        if (a->grad)
            logits_to_gradient(a, i, mask * weight);
    }
    *(double *)a->total.data += total;
}

void REF(cap)(struct ops *o, const void *args, void *scratch)
{
    const struct cap_args *a = args;
    double cap = (double)a->cap;
    (void)o;
    (void)scratch;
    for (int64_t i = 0; i < a->x.size[0]; i++)
        for (int64_t j = 0; j < a->x.size[1]; j++)
            row(a->x, i)[j] = (real)(cap * tanh((double)row(a->x, i)[j] / cap));
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "train/ops/cpu/ref.h"

#include <math.h>

#include "base/core/fault.h"
#include "train/ops/blocks.h"
#include "train/ops/segments.h"
#include "train/ops/values.h"

void REF(adamw)(struct ops *o, const void *args, void *scratch)
{
    const struct adamw_args *a = args;
    real *p = a->p.data, *m = a->m.data, *v = a->v.data;
    const real *g = a->g.data;
    const struct step_values *now = step_values_of(a->values);
    double factor = value_of(a->factor, 1), decay = now->decay;
    double step_size = now->lr / now->correction[0];
    double unbias = 1 / sqrt(now->correction[1]);
    double keep = 1 - (FAULT("adamw_decay") ? decay : now->lr * decay);
    (void)o;
    (void)scratch;
    if (!tensor_none(a->skip) && ints(a->skip)[0] != 0)
        return;
    int64_t n = tensor_count(a->p);
    for (int64_t i = 0; i < n; i++) {
        int kind = segment_run(a->segments, a->first, i, n).kind;
        if (kind == SEGMENT_STILL)
            continue;
        double gi = (double)g[i] * factor;
        double mi = a->beta1 * (double)m[i] + (1 - a->beta1) * gi;
        double vi = a->beta2 * (double)v[i] + (1 - a->beta2) * gi * gi;
        p[i] = (real)((double)p[i] * (kind == SEGMENT_DECAYS ? keep : 1) -
                      step_size * mi / (sqrt(vi) * unbias + a->eps));
        m[i] = (real)mi;
        v[i] = (real)vi;
    }
}

void REF(sgd)(struct ops *o, const void *args, void *scratch)
{
    const struct sgd_args *a = args;
    real *p = a->p.data, *m = tensor_none(a->m) ? NULL : a->m.data;
    const real *g = a->g.data;
    const struct step_values *now = step_values_of(a->values);
    double factor = value_of(a->factor, 1);
    int64_t n = tensor_count(a->p);
    (void)o;
    (void)scratch;
    if (!tensor_none(a->skip) && ints(a->skip)[0] != 0)
        return;
    for (int64_t i = 0; i < n; i++) {
        int kind = segment_run(a->segments, a->first, i, n).kind;
        if (kind == SEGMENT_STILL)
            continue;
        double decay = kind == SEGMENT_DECAYS ? now->decay : 0;
        double step = (double)g[i] * factor + decay * (double)p[i];
        if (m) {
            step += (FAULT("sgd_momentum") ? 1 : a->momentum) * (double)m[i];
            m[i] = (real)step;
        }
        p[i] = (real)((double)p[i] - now->lr * step);
    }
}

void REF(sumsq)(struct ops *o, const void *args, void *scratch)
{
    const struct sumsq_args *a = args;
    const real *x = a->x.data;
    double sum = 0;
    (void)o;
    (void)scratch;
    for (int64_t i = 0; i < tensor_count(a->x); i++)
        sum += (double)x[i] * (double)x[i];
    *(double *)a->total.data += sum;
}

void REF(clip)(struct ops *o, const void *args, void *scratch)
{
    const struct clip_args *a = args;
    double count = fmax(1, value_of(a->count, 1)) * value_of(a->scale, 1);
    double total = *(const double *)a->total.data, norm = sqrt(total) / count, factor = 1;
    (void)o;
    (void)scratch;
    if (!isfinite(norm))
        factor = 0;
    else if (a->max_norm > 0 && a->max_norm / (norm + 1e-6) < 1)
        factor = a->max_norm / ((FAULT("clip") ? total : norm) + 1e-6);
    *(double *)a->norm.data = norm;
    *(double *)a->factor.data = factor / count;
    *(int32_t *)a->skip.data = isfinite(norm) ? 0 : 1;
}

/* ---- of optimizers that look at whole tensors ----------------------------------------------- */

static double *f64(struct tensor t)
{
    return t.data;
}

void REF(moments)(struct ops *o, const void *args, void *scratch)
{
    const struct moments_args *a = args;
    const real *x = a->x.data;
    int64_t n = a->x.size[0];
    bool first = tensor_none(a->deviations);
    double sum = 0, mean = first ? 0 : *f64(a->sum) / *f64(a->count);
    (void)o;
    (void)scratch;
    for (int64_t i = 0; i < n; i++)
        sum += first ? (double)x[i] : ((double)x[i] - mean) * ((double)x[i] - mean);
    *f64(first ? a->sum : a->deviations) += sum;
    if (first)
        *f64(a->count) += (double)n;
}

void REF(gsnr)(struct ops *o, const void *args, void *scratch)
{
    const struct gsnr_args *a = args;
    double factor = *f64(a->factor), most = 0, *y = f64(a->y);
    int64_t n = a->y.size[0];
    (void)o;
    (void)scratch;
    if (ints(a->skip)[0] != 0)
        return;
    for (int64_t i = 0; i < n; i++) {
        double count = f64(a->count)[i], sum = f64(a->sum)[i], away = f64(a->deviations)[i];
        double squares = count > 0 ? away + sum * sum / count : 0;
        double of = FAULT("gsnr_divisor") ? count : count - 1;
        double deviation = of > 0 ? sqrt(away / of) : 0;
        y[i] = factor * sqrt(squares) / (factor * deviation + a->eps);
        most = y[i] > most ? y[i] : most;
    }
    for (int64_t i = 0; i < n && a->max && most > 0 && !FAULT("gsnr_max"); i++)
        y[i] /= most;
}

void REF(momentum)(struct ops *o, const void *args, void *scratch)
{
    const struct momentum_args *a = args;
    real *y = a->y.data, *m = tensor_none(a->m) ? NULL : a->m.data;
    const real *g = a->g.data;
    double factor = *f64(a->factor), mu = a->momentum;
    bool first = value_of(a->number, 0) == 1;
    (void)o;
    (void)scratch;
    if (ints(a->skip)[0] != 0)
        return;
    for (int64_t i = 0; i < a->y.size[0]; i++) {
        double gi = (double)g[i] * factor, mi = gi;
        if (m && (!first || FAULT("momentum_first")))
            mi = mu * (double)m[i] + (1 - mu) * gi;
        if (m)
            m[i] = (real)mi;
        y[i] = (real)(a->nesterov && !FAULT("nesterov") ? mu * mi + (1 - mu) * gi : mi);
    }
}

void REF(decayed)(struct ops *o, const void *args, void *scratch)
{
    const struct decayed_args *a = args;
    real *p = a->p.data;
    const real *x = a->x.data;
    double scale = a->scale * (tensor_none(a->gsnr) ? 1 : *f64(a->gsnr));
    const struct step_values *now = step_values_of(a->values);
    double decay = a->decays ? now->decay : 0;
    double keep = 1 - now->lr * decay * (FAULT("decayed") ? scale : 1);
    (void)o;
    (void)scratch;
    if (ints(a->skip)[0] != 0)
        return;
    for (int64_t i = 0; i < a->p.size[0]; i++)
        p[i] = (real)((double)p[i] * keep - now->lr * scale * (double)x[i]);
}

void REF(combine)(struct ops *o, const void *args, void *scratch)
{
    const struct combine_args *a = args;
    real *y = a->y.data;
    const real *x = a->x.data;
    (void)o;
    (void)scratch;
    for (int64_t i = 0; i < a->y.size[0]; i++)
        y[i] = (real)(a->s * (double)y[i] + a->t * (double)x[i]);
}

void REF(unit)(struct ops *o, const void *args, void *scratch)
{
    const struct unit_args *a = args;
    real *x = a->x.data;
    double sum = 0;
    (void)o;
    (void)scratch;
    for (int64_t i = 0; i < a->x.size[0]; i++)
        sum += (double)x[i] * (double)x[i];
    double by = 1 / (sqrt(sum) + 1e-7);
    for (int64_t i = 0; i < a->x.size[0]; i++)
        x[i] = (real)((double)x[i] * by);
}

void REF(select)(struct ops *o, const void *args, void *scratch)
{
    const struct select_args *a = args;
    (void)o;
    (void)scratch;
    for (int64_t i = 0; i < a->y.size[0]; i++)
        f64(a->y)[i] = f64(tensor_rows(a->x, ints(a->skip)[0] != 0, 1))[i];
}

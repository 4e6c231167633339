/* SPDX-License-Identifier: Apache-2.0 */
#include "train/ops/cpu/ref.h"

#include <math.h>

#include "base/core/fault.h"

void REF(adamw)(struct ops *o, const void *args, void *scratch)
{
    const struct adamw_args *a = args;
    real *p = a->p.data, *m = a->m.data, *v = a->v.data;
    const real *g = a->g.data;
    double factor = tensor_none(a->factor) ? 1 : *(const double *)a->factor.data;
    double step_size = a->lr / (1 - pow(a->beta1, (double)a->step));
    double unbias = 1 / sqrt(1 - pow(a->beta2, (double)a->step));
    double keep = 1 - (FAULT("adamw_decay") ? a->decay : a->lr * a->decay);
    (void)o;
    (void)scratch;
    if (!tensor_none(a->skip) && ints(a->skip)[0] != 0)
        return;
    for (int64_t i = 0; i < tensor_count(a->p); i++) {
        double gi = (double)g[i] * factor;
        double mi = a->beta1 * (double)m[i] + (1 - a->beta1) * gi;
        double vi = a->beta2 * (double)v[i] + (1 - a->beta2) * gi * gi;
        p[i] = (real)((double)p[i] * keep - step_size * mi / (sqrt(vi) * unbias + a->eps));
        m[i] = (real)mi;
        v[i] = (real)vi;
    }
}

void REF(sgd)(struct ops *o, const void *args, void *scratch)
{
    const struct sgd_args *a = args;
    real *p = a->p.data, *m = tensor_none(a->m) ? NULL : a->m.data;
    const real *g = a->g.data;
    double factor = tensor_none(a->factor) ? 1 : *(const double *)a->factor.data;
    (void)o;
    (void)scratch;
    if (!tensor_none(a->skip) && ints(a->skip)[0] != 0)
        return;
    for (int64_t i = 0; i < tensor_count(a->p); i++) {
        double step = (double)g[i] * factor + a->decay * (double)p[i];
        if (m) {
            step += (FAULT("sgd_momentum") ? 1 : a->momentum) * (double)m[i];
            m[i] = (real)step;
        }
        p[i] = (real)((double)p[i] - a->lr * step);
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
    double count = tensor_none(a->count) ? 1 : fmax(1, *(const double *)a->count.data);
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

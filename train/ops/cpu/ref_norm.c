/* SPDX-License-Identifier: Apache-2.0 */
#include "train/ops/cpu/ref.h"

#include <math.h>

#include "base/core/fault.h"
#include "train/ops/dropout.h"
#include "train/ops/head_norm.h"

/* A norm's weight. */
static double norm_weight(const real *w, int64_t j, bool less_one)
{
    return (double)w[j] + (less_one ? 1 : 0);
}

/* r = x + dropout(a + bias); without a, r is x. Returns the row to be normed. */
static const real *residual(const struct norm_args *a, int64_t i)
{
    int64_t width = a->x.size[1];
    if (tensor_none(a->a))
        return row(a->x, i);
    for (int64_t j = 0; j < width; j++) {
        double add = (double)row(a->a, i)[j];
        if (!tensor_none(a->bias))
            add += (double)row(a->bias, 0)[j];
        add *= drop_at(a->drop, i, j, width);
        row(a->r, i)[j] = (real)((double)row(a->x, i)[j] + add);
    }
    return row(a->r, i);
}

/* The mean is taken off for a LayerNorm only; var is the mean square of what is left. */
static void moments(const struct norm_args *a, const real *r, double *ret_mean, double *ret_rstd)
{
    int64_t width = a->x.size[1];
    double mean = 0, var = 0;
    for (int64_t j = 0; j < width && a->kind == NORM_LAYER; j++)
        mean += (double)r[j] / (double)width;
    for (int64_t j = 0; j < width; j++)
        var += ((double)r[j] - mean) * ((double)r[j] - mean) / (double)width;
    *ret_mean = mean;
    *ret_rstd = 1 / sqrt(var + (double)a->eps);
}

void REF(norm)(struct ops *o, const void *args, void *scratch)
{
    const struct norm_args *a = args;
    int64_t n = a->y.size[0], width = a->y.size[1];
    (void)o;
    (void)scratch;
    for (int64_t i = 0; i < n; i++) {
        const real *r = residual(a, i);
        double mean, rstd;
        moments(a, r, &mean, &rstd);
        for (int64_t j = 0; j < width; j++) {
            double b = tensor_none(a->b) ? 0 : (double)row(a->b, 0)[j];
            double xhat = ((double)r[j] - mean) * rstd;
            row(a->y, i)[j] = (real)(xhat * norm_weight(row(a->w, 0), j, a->less_one) + b);
        }
        if (a->kind == NORM_LAYER)
            row(a->mean, 0)[i] = (real)mean;
        row(a->rstd, 0)[i] = (real)rstd;
    }
}

/*
 * With g = dy * w and xhat = (r - mean) * rstd:
 *     dr += rstd * (g - mean(g) - xhat * mean(g * xhat)), mean(g) for a LayerNorm only.
 */
static void norm_bwd_row(const struct norm_bwd_args *a, int64_t i)
{
    int64_t width = a->dy.size[1];
    const real *dy = row(a->dy, i), *r = row(a->r, i), *w = row(a->w, 0);
    double mean = a->kind == NORM_LAYER ? (double)row(a->mean, 0)[i] : 0;
    double rstd = (double)row(a->rstd, 0)[i], g_mean = 0, gx_mean = 0;
    for (int64_t j = 0; j < width; j++) {
        double g = (double)dy[j] * norm_weight(w, j, a->less_one),
               xhat = ((double)r[j] - mean) * rstd;
        if (a->kind == NORM_LAYER)
            g_mean += g / (double)width;
        gx_mean += g * xhat / (double)width;
    }
    if (FAULT("norm_bwd"))
        gx_mean = 0;
    for (int64_t j = 0; j < width; j++) {
        double g = (double)dy[j] * norm_weight(w, j, a->less_one && !FAULT("less_one_bwd")),
               xhat = ((double)r[j] - mean) * rstd;
        row(a->dr, i)[j] += (real)(rstd * (g - g_mean - xhat * gx_mean));
        if (!tensor_none(a->da))
            row(a->da, i)[j] = (real)((double)row(a->dr, i)[j] * drop_at(a->drop, i, j, width));
    }
}

void REF(norm_bwd)(struct ops *o, const void *args, void *scratch)
{
    const struct norm_bwd_args *a = args;
    int64_t n = a->dy.size[0], width = a->dy.size[1];
    (void)o;
    (void)scratch;
    for (int64_t i = 0; i < n; i++)
        norm_bwd_row(a, i);
    for (int64_t j = 0; j < width; j++) {
        double dw = 0, db = 0, dbias = 0;
        for (int64_t i = 0; i < n; i++) {
            double mean = a->kind == NORM_LAYER ? (double)row(a->mean, 0)[i] : 0;
            double xhat = ((double)row(a->r, i)[j] - mean) * (double)row(a->rstd, 0)[i];
            dw += (double)row(a->dy, i)[j] * xhat;
            db += (double)row(a->dy, i)[j];
            dbias += tensor_none(a->da) ? 0 : (double)row(a->da, i)[j];
        }
        row(a->dw, 0)[j] += (real)dw;
        if (!tensor_none(a->db))
            row(a->db, 0)[j] += (real)db;
        if (!tensor_none(a->dbias))
            row(a->dbias, 0)[j] += (real)dbias;
    }
}

/* ---- heads of queries and keys ------------------------------------------------------------------
 */

void REF(head_norm)(struct ops *o, const void *args, void *scratch)
{
    const struct head_norm_args *a = args;
    int64_t n = a->x.size[0], heads = a->x.size[1], dim = a->x.size[2];
    const real *w = row(a->w, 0);
    (void)o;
    (void)scratch;
    for (int64_t i = 0; i < n; i++)
        for (int64_t h = 0; h < heads; h++) {
            real *x = head(a->x, i, h);
            double square = 0;
            for (int64_t j = 0; j < dim; j++)
                square += (double)x[j] * (double)x[j] / (double)dim;
            double rstd = 1 / sqrt(square + (double)a->eps);
            for (int64_t j = 0; j < dim && !tensor_none(a->pre); j++)
                head(a->pre, i, h)[j] = x[j];
            if (!tensor_none(a->rstd))
                row(a->rstd, i)[h] = (real)rstd;
            for (int64_t j = 0; j < dim; j++)
                x[j] = (real)((double)x[j] * rstd * norm_weight(w, j, a->less_one));
        }
}

/* With g = dy * w and xhat = pre * rstd: dx = rstd * (g - xhat * mean(g * xhat)). */
void REF(head_norm_bwd)(struct ops *o, const void *args, void *scratch)
{
    const struct head_norm_bwd_args *a = args;
    int64_t n = a->dx.size[0], heads = a->dx.size[1], dim = a->dx.size[2];
    const real *w = row(a->w, 0);
    (void)o;
    (void)scratch;
    for (int64_t j = 0; j < dim; j++) {
        double dw = 0;
        for (int64_t i = 0; i < n; i++)
            for (int64_t h = 0; h < heads; h++)
                dw += (double)head(a->dx, i, h)[j] * (double)head(a->pre, i, h)[j] *
                      (double)row(a->rstd, i)[h];
        row(a->dw, 0)[j] += (real)dw;
    }
    for (int64_t i = 0; i < n; i++)
        for (int64_t h = 0; h < heads; h++) {
            real *dx = head(a->dx, i, h);
            const real *pre = head(a->pre, i, h);
            double rstd = (double)row(a->rstd, i)[h], mean = 0;
            for (int64_t j = 0; j < dim; j++)
                mean += (double)dx[j] * norm_weight(w, j, a->less_one) * (double)pre[j] * rstd /
                        (double)dim;
            if (FAULT("head_norm_bwd"))
                mean = 0;
            for (int64_t j = 0; j < dim; j++)
                dx[j] = (real)(rstd * ((double)dx[j] * norm_weight(w, j, a->less_one) -
                                       (double)pre[j] * rstd * mean));
        }
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/copy/low_rank.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/mem.h"
#include "base/core/rng.h"

enum { FURTHER = 8, PASSES = 4, SWEEPS = 60 };

/* y [m, k] = d z, z [n, k] */
static void times(const float *d, int64_t m, int64_t n, const double *z, int64_t k, double *y)
{
    memset(y, 0, (size_t)(m * k) * sizeof(*y));
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++)
            for (int64_t c = 0; c < k; c++)
                y[i * k + c] += (double)d[i * n + j] * z[j * k + c];
}

/* z [n, k] = d' y, y [m, k] */
static void turned_times(const float *d, int64_t m, int64_t n, const double *y, int64_t k,
                         double *z)
{
    memset(z, 0, (size_t)(n * k) * sizeof(*z));
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++)
            for (int64_t c = 0; c < k; c++)
                z[j * k + c] += (double)d[i * n + j] * y[i * k + c];
}

static double column_dot(const double *y, int64_t m, int64_t k, int64_t p, int64_t q)
{
    double sum = 0;
    for (int64_t i = 0; i < m; i++)
        sum += y[i * k + p] * y[i * k + q];
    return sum;
}

/* Columns become orthonormal, those that depend on others zero: Gram and Schmidt, twice. */
static void orthonormal(double *y, int64_t m, int64_t k)
{
    for (int64_t c = 0; c < k; c++) {
        double before = sqrt(column_dot(y, m, k, c, c));
        for (int twice = 0; twice < 2; twice++)
            for (int64_t p = 0; p < c; p++) {
                double dot = column_dot(y, m, k, p, c);
                for (int64_t i = 0; i < m; i++)
                    y[i * k + c] -= dot * y[i * k + p];
            }
        double norm = sqrt(column_dot(y, m, k, c, c));
        double by = norm > 1e-10 * before && norm > 0 ? 1 / norm : 0;
        for (int64_t i = 0; i < m; i++)
            y[i * k + c] *= by;
    }
}

/* One rotation of rows and columns p and q of the symmetric g, and of the columns of u. */
static void rotate(double *g, double *u, int64_t k, int64_t p, int64_t q)
{
    double theta = (g[q * k + q] - g[p * k + p]) / (2 * g[p * k + q]);
    double t = (theta < 0 ? -1 : 1) / (fabs(theta) + sqrt(theta * theta + 1));
    double c = 1 / sqrt(t * t + 1), s = t * c;
    for (int64_t i = 0; i < k; i++) {
        double x = g[i * k + p], y = g[i * k + q];
        g[i * k + p] = c * x - s * y;
        g[i * k + q] = s * x + c * y;
        x = u[i * k + p], y = u[i * k + q];
        u[i * k + p] = c * x - s * y;
        u[i * k + q] = s * x + c * y;
    }
    for (int64_t i = 0; i < k; i++) {
        double x = g[p * k + i], y = g[q * k + i];
        g[p * k + i] = c * x - s * y;
        g[q * k + i] = s * x + c * y;
    }
}

/* Eigenvectors of the symmetric g [k, k] as columns of u, whose values stand on the diagonal:
 * Jacobi's rotations. */
static void eigenvectors(double *g, double *u, int64_t k)
{
    for (int64_t i = 0; i < k; i++)
        for (int64_t j = 0; j < k; j++)
            u[i * k + j] = i == j;
    for (int sweep = 0; sweep < SWEEPS; sweep++) {
        bool done = true;
        for (int64_t p = 0; p < k; p++)
            for (int64_t q = p + 1; q < k; q++) {
                if (fabs(g[p * k + q]) <= 1e-17 * sqrt(fabs(g[p * k + p] * g[q * k + q])))
                    continue;
                rotate(g, u, k, p, q);
                done = false;
            }
        if (done)
            break;
    }
}

/* The largest of what is left on the diagonal; it is taken away. */
static int64_t take_largest(double *g, int64_t k, double *ret)
{
    int64_t at = 0;
    for (int64_t i = 1; i < k; i++)
        if (g[i * k + i] > g[at * k + at])
            at = i;
    *ret = g[at * k + at];
    g[at * k + at] = -1;
    return at;
}

/* The matrix d [m, n], an orthonormal basis y [m, k] of what it maps to, z = d' y [n, k], the
 * eigenvectors u of z' z = g, [k, k]. */
struct svd {
    const float *d;
    int64_t m, n, k;
    double *y, *z, *g, *u;
};

/* Singular vectors number c, which g is no longer sorted by: column r of b, row r of a, each with
 * the root of the value. */
static void put_pair(const struct svd *s, int64_t c, double value, float *b, float *a, int64_t rank,
                     int64_t r)
{
    double root = sqrt(value);
    for (int64_t i = 0; i < s->m; i++) {
        double sum = 0;
        for (int64_t p = 0; p < s->k; p++)
            sum += s->y[i * s->k + p] * s->u[p * s->k + c];
        b[i * rank + r] = (float)(sum * root);
    }
    for (int64_t j = 0; j < s->n; j++) {
        double sum = 0;
        for (int64_t p = 0; p < s->k; p++)
            sum += s->z[j * s->k + p] * s->u[p * s->k + c];
        a[r * s->n + j] = (float)(sum / root);
    }
}

/* Fills y, z, g and u. */
static void svd_find(struct svd *s)
{
    float *random = mem_new((size_t)(s->n * s->k) + 1, sizeof(*random));
    rng_normal(0, RNG_INIT, 0, 0, (uint64_t)(s->n * s->k), random);
    for (int64_t i = 0; i < s->n * s->k; i++)
        s->z[i] = (double)random[i];
    free(random);
    for (int pass = 0; pass < PASSES; pass++) {
        times(s->d, s->m, s->n, s->z, s->k, s->y);
        orthonormal(s->y, s->m, s->k);
        turned_times(s->d, s->m, s->n, s->y, s->k, s->z);
        if (pass + 1 < PASSES)
            orthonormal(s->z, s->n, s->k);
    }
    for (int64_t p = 0; p < s->k; p++)
        for (int64_t q = 0; q < s->k; q++)
            s->g[p * s->k + q] = column_dot(s->z, s->n, s->k, p, q);
    eigenvectors(s->g, s->u, s->k);
}

double low_rank_factors(const float *d, int64_t m, int64_t n, int64_t rank, float *b, float *a,
                        double *ret_rest)
{
    int64_t least = m < n ? m : n, k = rank + FURTHER < least ? rank + FURTHER : least;
    struct svd s = {.d = d, .m = m, .n = n, .k = k};
    double all = 0, first = 0, taken = 0;
    memset(b, 0, (size_t)(m * rank) * sizeof(*b));
    memset(a, 0, (size_t)(n * rank) * sizeof(*a));
    for (int64_t i = 0; i < m * n; i++)
        all += (double)d[i] * (double)d[i];
    s.y = mem_new((size_t)(m * k) + 1, sizeof(double));
    s.z = mem_new((size_t)(n * k) + 1, sizeof(double));
    s.g = mem_new((size_t)(k * k) + 1, sizeof(double));
    s.u = mem_new((size_t)(k * k) + 1, sizeof(double));
    if (all > 0)
        svd_find(&s);
    for (int64_t r = 0; all > 0 && r < rank && r < k; r++) {
        double square;
        int64_t c = take_largest(s.g, k, &square);
        first = r ? first : square;
        if (square <= 1e-20 * first || square <= 0)
            break;
        put_pair(&s, c, sqrt(square), b, a, rank, r);
        taken += square;
    }
    free(s.y);
    free(s.z);
    free(s.g);
    free(s.u);
    *ret_rest = all > taken ? all - taken : 0;
    return all;
}

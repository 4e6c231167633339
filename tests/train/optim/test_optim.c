/* SPDX-License-Identifier: Apache-2.0 */
#include "train/optim/optim.h"

#include <math.h>
#include <string.h>

#include "tests/t.h"
#include "tests/train/tiny.h"

static struct rank rank;

static void open_with_gradients(double clip)
{
    struct err e;
    struct rank_config c = tiny_config(tiny_gpt(), DTYPE_F64);
    c.clip = clip;
    T_OK(rank_open(&rank, &c, &e), &e);
    double *g = rank.zero.grads.data;
    for (int i = 0; i < rank.params.n; i++) {
        const struct param *p = &rank.params.at[i];
        for (int64_t k = 0; k < p->count; k++)
            g[p->offset + k] = (double)t_rand(5, (uint64_t)(p->offset + k)) / 0x1p32 - 0.5;
    }
}

/* Two steps against AdamW written out, with decay on matrices and none on vectors, clipped by the
 * norm of all. */
static void two_steps_are_adamw_with_masks_and_clipping(void)
{
    open_with_gradients(1.0);
    double *w = rank.zero.weights.data, *g = rank.zero.grads.data, sum = 0, norm;
    const double lr = 0.01, b1 = 0.9, b2 = 0.999, eps = 1e-8, wd = 0.01;
    for (int64_t k = 0; k < rank.params.elements; k++)
        sum += g[k] * g[k];
    double factor = 1.0 / (sqrt(sum) + 1e-6);
    T_CHECK(factor < 1);
    static double want[1 << 16];
    T_CHECK(rank.params.elements <= 1 << 16);
    memcpy(want, w, (size_t)rank.params.elements * sizeof(*w));
    for (int i = 0; i < rank.params.n; i++) {
        const struct param *p = &rank.params.at[i];
        T_EQ(p->decay, p->rank == 2);
        for (int64_t k = p->offset; k < p->offset + p->count; k++) {
            double m = 0, v = 0, x = g[k] * factor;
            for (int t = 1; t <= 2; t++) {
                m = b1 * m + (1 - b1) * x;
                v = b2 * v + (1 - b2) * x * x;
                double up = m / (1 - pow(b1, t)) / (sqrt(v / (1 - pow(b2, t))) + eps);
                want[k] -= lr * (up + (p->rank == 2 ? wd * want[k] : 0));
            }
        }
    }
    tiny_update(&rank, lr, wd, 1);
    tiny_update(&rank, lr, wd, 2);
    rank_fetch(&rank, &norm, rank.optim.norm);
    T_NEAR(norm, sqrt(sum), 1e-12);
    for (int64_t k = 0; k < rank.params.elements; k++)
        T_NEAR(w[k], want[k], 1e-12);
    rank_close(&rank);
}

static void a_gradient_that_is_not_finite_changes_nothing(void)
{
    open_with_gradients(1.0);
    static double before[1 << 16];
    double *w = rank.zero.weights.data;
    int32_t skip;
    memcpy(before, w, (size_t)rank.params.elements * sizeof(*w));
    ((double *)rank.zero.grads.data)[3] = INFINITY;
    tiny_update(&rank, 0.01, 0.01, 1);
    rank_fetch(&rank, &skip, rank.optim.skip);
    T_EQ(skip, 1);
    T_MEM(w, before, (size_t)rank.params.elements * sizeof(*w));
    rank_close(&rank);
}

T_MAIN(T_CASE(two_steps_are_adamw_with_masks_and_clipping),
       T_CASE(a_gradient_that_is_not_finite_changes_nothing))

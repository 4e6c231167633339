/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <string.h>

#include "tests/t.h"
#include "tests/train/optim/muon_torch.h"
#include "tests/train/tiny.h"
#include "train/ops/blocks.h"
#include "train/optim/sai.h"

enum { MOST = 1 << 16 };

static struct rank rank;

static void open_rank(enum optim_kind kind, struct optim_tuning tuning)
{
    struct err e;
    struct rank_config c = tiny_config(tiny_gpt(), DTYPE_F64);
    c.optimizer = kind;
    c.momentum = 0.9;
    c.clip = 1;
    c.tuning = tuning;
    T_OK(rank_open(&rank, &c, &e), &e);
    T_CHECK(rank.params.elements <= MOST);
}

/* Gradients of a step; returns the clip factor. */
static double set_gradients(uint64_t step)
{
    double *g = rank.zero.grads.data, sum = 0;
    for (int i = 0; i < rank.params.n; i++) {
        const struct param *p = &rank.params.at[i];
        for (int64_t k = p->offset; k < p->offset + p->count; k++) {
            g[k] = 0;
            for (int s = 0; s < p->sources; s++) { /* padding has none */
                int64_t first = p->offset + p->source[s].row * p->size[1];
                int64_t n = p->source[s].count[0] * p->size[1];
                if (k >= first && k < first + n)
                    g[k] = (double)t_rand(step, (uint64_t)k) / 0x1p32 - 0.5;
            }
            sum += g[k] * g[k];
        }
    }
    return fmin(1, 1 / (sqrt(sum) + 1e-6));
}

static struct tensor f64(double *x, int64_t n)
{
    return tensor_1d(x, DTYPE_F64, n);
}

/* ---- SGD-SaI ----------------------------------------------------------------------------- */

/* Computed from the package's formula by hand. */
static void sai_is_the_known_answer(void)
{
    static const double grads[3][4] = {{.1, -.2, .3, .05}, {.2, .1, -.1, 0}, {-.05, .02, .3, .1}};
    static const double want[3][4] = {{0.997164392, -1.994328783, 2.991493175, 0.498582196},
                                      {0.994148058, -1.989213921, 2.983729100, 0.497257590},
                                      {0.991428438, -1.984452938, 2.975899365, 0.495833350}};
    double p[4] = {1, -2, 3, 0.5}, m[4] = {0}, g[4], count = 0, sum = 0, away = 0, one = 1, gsnr;
    int32_t go = 0;
    open_rank(OPTIM_SAI, (struct optim_tuning){0});
    struct tensor skip = tensor_1d(&go, DTYPE_I32, 1), factor = f64(&one, 1);
    for (int t = 0; t < 3; t++) {
        struct step_values values = step_values_make(0.01, 0.1, t + 1, 0, 0);
        memcpy(g, grads[t], sizeof(g));
        struct moments_args a = {.count = f64(&count, 1), .sum = f64(&sum, 1), .x = f64(g, 4)};
        if (t == 0) {
            op_moments(&rank.ops, &a);
            a.deviations = f64(&away, 1);
            op_moments(&rank.ops, &a);
            op_gsnr(&rank.ops, &(struct gsnr_args){.y = f64(&gsnr, 1),
                                                   .count = a.count,
                                                   .sum = a.sum,
                                                   .deviations = a.deviations,
                                                   .factor = factor,
                                                   .skip = skip,
                                                   .eps = 1e-8});
            T_NEAR(gsnr, 1.835608292, 1e-9);
        }
        op_momentum(&rank.ops, &(struct momentum_args){.y = f64(m, 4),
                                                       .m = f64(m, 4),
                                                       .g = f64(g, 4),
                                                       .factor = factor,
                                                       .skip = skip,
                                                       .momentum = 0.9,
                                                       .number = f64(&values.number, 1)});
        op_decayed(&rank.ops, &(struct decayed_args){.p = f64(p, 4),
                                                     .x = f64(m, 4),
                                                     .gsnr = f64(&gsnr, 1),
                                                     .skip = skip,
                                                     .values = f64(&values.lr, STEP_VALUES),
                                                     .decays = true,
                                                     .scale = 1});
        for (int i = 0; i < 4; i++)
            T_NEAR(p[i], want[t][i], 1e-9);
    }
    rank_close(&rank);
}

/* The block of a parameter: all of its tensors together, without padding. */
static double plain_gsnr(const struct param *p, const double *g, double factor)
{
    double n = 0, sum = 0, away = 0, squares = 0;
    for (int pass = 0; pass < 2; pass++)
        for (int s = 0; s < p->sources; s++) {
            const double *x = g + p->offset + p->source[s].row * p->size[1];
            for (int64_t k = 0; k < p->source[s].count[0] * p->size[1]; k++) {
                n += pass == 0;
                sum += pass == 0 ? x[k] : 0;
                squares += pass == 0 ? x[k] * x[k] : 0;
                away += pass ? (x[k] - sum / n) * (x[k] - sum / n) : 0;
            }
        }
    return factor * sqrt(squares) / (factor * (n > 1 ? sqrt(away / (n - 1)) : 0) + 1e-8);
}

static void sai_steps(enum optim_kind kind, bool max)
{
    static double want[MOST], m[MOST], gsnr[256];
    const double lr = 0.01, wd = 0.1, mu = kind == OPTIM_SAI ? 0.9 : 0;
    double most = 0;
    open_rank(kind, (struct optim_tuning){.sai.max = max});
    T_CHECK(rank.params.n <= 256);
    memcpy(want, rank.zero.weights.data, (size_t)rank.params.elements * sizeof(*want));
    for (int t = 1; t <= 2; t++) {
        double factor = set_gradients((uint64_t)t), *g = rank.zero.grads.data;
        for (int i = 0; i < rank.params.n && t == 1; i++) {
            gsnr[i] = plain_gsnr(&rank.params.at[i], g, factor);
            most = fmax(most, gsnr[i]);
        }
        tiny_update(&rank, lr, wd, t);
        for (int i = 0; i < rank.params.n; i++) {
            const struct param *p = &rank.params.at[i];
            for (int64_t k = p->offset; k < p->offset + p->count; k++) {
                m[k] = t == 1 ? g[k] * factor : mu * m[k] + (1 - mu) * g[k] * factor;
                want[k] = want[k] * (1 - lr * (p->rank == 2 ? wd : 0)) -
                          lr * gsnr[i] / (max ? most : 1) * m[k];
                T_NEAR(((double *)rank.zero.weights.data)[k], want[k], 1e-12);
            }
        }
    }
    rank_close(&rank);
}

static void sai_blocks_are_whole_parameters(void)
{
    sai_steps(OPTIM_SAI, false);
}

static void sai_can_divide_by_the_greatest(void)
{
    sai_steps(OPTIM_SAI, true);
}

static void sai_without_momentum_steps_by_the_gradient(void)
{
    sai_steps(OPTIM_SAI_PLAIN, false);
}

/* A step that is skipped is not the first one. */
static void sai_measures_the_first_step_taken(void)
{
    double before[1] = {7};
    open_rank(OPTIM_SAI, (struct optim_tuning){0});
    set_gradients(1);
    ((double *)rank.zero.grads.data)[3] = NAN;
    memcpy(((struct sai *)rank.optim.own)->gsnr.data, before, sizeof(before));
    tiny_update(&rank, 0.01, 0, 1);
    T_NEAR(*(double *)((struct sai *)rank.optim.own)->gsnr.data, 7, 0);
    double factor = set_gradients(2);
    double want = plain_gsnr(&rank.params.at[0], rank.zero.grads.data, factor);
    tiny_update(&rank, 0.01, 0, 1);
    T_NEAR(*(double *)sai_gsnr(&rank.optim, &rank.params.at[0]).data, want, 1e-9 * want);
    set_gradients(3);
    tiny_update(&rank, 0.01, 0, 2);
    T_NEAR(*(double *)sai_gsnr(&rank.optim, &rank.params.at[0]).data, want, 1e-9 * want);
    rank_close(&rank);
}

/* ---- Muon -------------------------------------------------------------------------------- */

static double muon_number(int i, int step)
{
    return (double)((i * 7 + step * 13 + i / 5 * (step + 3)) % 23 - 11) / 10;
}

/* One matrix, by the parts that muon.c is made of, against torch's own. */
static void muon_is_torchs(void)
{
    open_rank(OPTIM_MUON, (struct optim_tuning){.muon.steps = 5});
    for (size_t c = 0; c < sizeof(muon_torch) / sizeof(muon_torch[0]); c++) {
        int rows = muon_torch[c].rows, columns = muon_torch[c].columns, n = rows * columns;
        double p[48], m[48] = {0}, g[48], u[48], one = 1;
        int32_t go = 0;
        const struct optim_tuning t = {.muon.scale = (int)muon_torch[c].scale,
                                       .muon.extra = muon_torch[c].extra};
        for (int i = 0; i < n; i++)
            p[i] = muon_number(i, 0);
        struct step_values values = step_values_make(0.02, 0.1, 1, 0, 0);
        for (int step = 1; step <= 3; step++) {
            for (int i = 0; i < n; i++)
                g[i] = muon_number(i, step);
            op_momentum(&rank.ops, &(struct momentum_args){.y = f64(u, n),
                                                           .m = f64(m, n),
                                                           .g = f64(g, n),
                                                           .factor = f64(&one, 1),
                                                           .skip = tensor_1d(&go, DTYPE_I32, 1),
                                                           .momentum = 0.95,
                                                           .nesterov = muon_torch[c].nesterov});
            muon_orthogonal(&rank.ops, tensor_2d(u, DTYPE_F64, rows, columns), 5);
            op_decayed(&rank.ops,
                       &(struct decayed_args){.p = f64(p, n),
                                              .x = f64(u, n),
                                              .skip = tensor_1d(&go, DTYPE_I32, 1),
                                              .values = f64(&values.lr, STEP_VALUES),
                                              .decays = true,
                                              .scale = muon_scale_of(&t.muon, rows, columns)});
        }
        for (int i = 0; i < n; i++) {
            T_NEAR(p[i], muon_torch[c].exact[i], 1e-7);
            T_NEAR(p[i], muon_torch[c].bf16[i], 2e-3);
        }
    }
    rank_close(&rank);
}

/* Matrices by Muon, each tensor of a checkpoint one, the rest by AdamW. */
static void muon_takes_each_matrix_by_itself(void)
{
    static double before[MOST], u[MOST];
    const double lr = 0.01, wd = 0.1;
    const struct optim_tuning t = {
        .muon.momentum = 0.9, .muon.extra = 1, .muon.nesterov = true, .muon.steps = 5};
    open_rank(OPTIM_MUON, t);
    memcpy(before, rank.zero.weights.data, (size_t)rank.params.elements * sizeof(*before));
    double factor = set_gradients(1), *g = rank.zero.grads.data, *w = rank.zero.weights.data;
    tiny_update(&rank, lr, wd, 1);
    for (int i = 0; i < rank.params.n; i++) {
        const struct param *p = &rank.params.at[i];
        bool muon = p->rank == 2 && p->kind != PARAM_EMBED && p->kind != PARAM_POSITION &&
                    p->kind != PARAM_HEAD;
        T_EQ(muon_rules[0].takes(p), muon);
        for (int s = 0; s < p->sources; s++) {
            int64_t at = p->offset + p->source[s].row * p->size[1], rows = p->source[s].count[0];
            int64_t n = rows * p->size[1];
            for (int64_t k = 0; k < n; k++)
                u[k] = (0.9 * 0.1 + 0.1) * g[at + k] * factor;
            if (muon)
                muon_orthogonal(&rank.ops, tensor_2d(u, DTYPE_F64, rows, p->size[1]), 5);
            for (int64_t k = 0; k < n; k++) {
                double x = g[at + k] * factor, keep = 1 - lr * (p->rank == 2 ? wd : 0);
                double step =
                    muon ? muon_scale_of(&t.muon, rows, p->size[1]) * u[k] : x / (fabs(x) + 1e-8);
                T_NEAR(w[at + k], before[at + k] * keep - lr * step, 1e-9);
            }
        }
    }
    rank_close(&rank);
}

T_MAIN(T_CASE(sai_is_the_known_answer), T_CASE(sai_blocks_are_whole_parameters),
       T_CASE(sai_can_divide_by_the_greatest), T_CASE(sai_without_momentum_steps_by_the_gradient),
       T_CASE(sai_measures_the_first_step_taken), T_CASE(muon_is_torchs),
       T_CASE(muon_takes_each_matrix_by_itself))

/* SPDX-License-Identifier: Apache-2.0 */

/* What the ops are: known values and properties of the plain C, in double. */

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/core/rng.h"
#include "tests/t.h"
#include "tests/train/ops/world.h"
#include "train/ops/dropout.h"

static struct world w;

static void begin(uint64_t stream)
{
    world_close(&w);
    world_open(&w, DTYPE_F64, NULL, 1, 1 << 16);
    world_clear(&w, stream);
}

static struct tensor like(struct tensor t, int64_t gap)
{
    return world_poisoned(&w, t.dtype, gap, t.rank, t.size);
}

static struct tensor one(enum dtype d, double value)
{
    const int64_t n = 1;
    struct tensor t = world_poisoned(&w, d, 0, 1, &n);
    world_set(t, 0, value);
    return t;
}

/* The definition of struct dropout, spelled out once more. */
static double kept(struct dropout d, uint64_t row, uint64_t width, uint64_t col)
{
    uint64_t block = (d.row0 + row) * ((width + 7) / 8) + col / 8;
    const uint32_t ctr[4] = {(uint32_t)block, (uint32_t)(block >> 32), d.sub, RNG_DROPOUT};
    const uint32_t key[2] = {(uint32_t)d.seed, (uint32_t)(d.seed >> 32)};
    uint32_t word = philox4x32_rounds(ctr, key, 7).v[col % 4];
    double bits = (col % 8 < 4 ? word : word >> 16) % 32768, p = round((double)d.p * 32768) / 32768;
    return bits >= p * 32768 ? 1 / (1 - p) : 0;
}

/* How many elements are kept, and the mean of products of neighbours' factors, over 2^18 of them.
 */
static void masks_are_as_random_as_they_say(void)
{
    enum { ROWS = 1024, WIDTH = 256, N = ROWS * WIDTH };
    static double f[ROWS][WIDTH];
    static const float ps[] = {0.1f, 0.5f, 0.9f};
    for (int k = 0; k < 3; k++) {
        struct dropout d = {.p = ps[k], .seed = 11, .sub = 5, .row0 = 1u << 20};
        double keep = 1 - round((double)d.p * 32768) / 32768, scale = drop_scale(d);
        double mean = 0, beside = 0, below = 0, across = 0, spread = sqrt((1 / keep - 1) / N);
        T_NEAR(scale * keep, 1, 1e-12);
        for (int i = 0; i < N; i++)
            f[i / WIDTH][i % WIDTH] = drop_at(d, i / WIDTH, i % WIDTH, WIDTH);
        for (int i = 0; i < N; i++) {
            int row = i / WIDTH, col = i % WIDTH;
            double x = f[row][col] - 1;
            mean += f[row][col] / N;
            beside += x * (f[row][(col + 1) % WIDTH] - 1) / N;
            below += x * (f[(row + 1) % ROWS][col] - 1) / N;
            across += x * (f[row][(col + 4) % WIDTH] - 1) / N;
        }
        T_NEAR(mean, 1, 5 * spread);
        double most = 5 * (1 / keep - 1) / sqrt(N);
        T_NEAR(beside, 0, most);
        T_NEAR(below, 0, most);
        T_NEAR(across, 0, most);
    }
}

static void probabilities_are_multiples_of_two_to_the_minus_fifteen(void)
{
    struct dropout d = {.p = 1e-6f, .seed = 1};
    T_EQ(drop_threshold(d), 0);
    T_CHECK(drop_scale(d) == 1 && drop_at(d, 3, 5, 7) == 1);
    d.p = 0.1f;
    T_EQ(drop_threshold(d), 3277);
    d.p = 0.99999994f;
    T_EQ(drop_threshold(d), 32767);
    T_CHECK(drop_scale(d) == 32768);
}

static void embed_adds_and_drops(void)
{
    enum { n = 6, C = 5 };
    begin(1);
    struct embed_args a = {.id = world_ids(&w, n, 4),
                           .tok = world_2d(&w, 1, 4, C, 1),
                           .position = world_ids(&w, n, 3),
                           .pos = world_2d(&w, 1, 3, C, 0),
                           .drop = {.p = 0.5f, .seed = 7, .sub = 2, .row0 = 3}};
    a.y = world_2d(&w, 1, n, C, 1);
    world_poison(a.y);
    op_embed(&w.ops, &a);
    int zeros = 0;
    for (int i = 0; i < n * C; i++) {
        int row = i / C, col = i % C;
        double sum = world_get(a.tok, (int64_t)world_get(a.id, row) * C + col) +
                     world_get(a.pos, (int64_t)world_get(a.position, row) * C + col);
        double k = kept(a.drop, (uint64_t)row, C, (uint64_t)col);
        zeros += k == 0;
        T_NEAR(world_get(a.y, i), sum * k, 1e-14);
    }
    T_CHECK(zeros > 5 && zeros < 25);
    double first[n * C];
    for (int i = 0; i < n * C; i++)
        first[i] = world_get(a.y, i);
    a.drop = (struct dropout){.p = 0.5f, .sub = 2, .row0 = 1};
    a.drop.origin = world_ints(&w, DROP_ORIGIN, (const int32_t[]){7, 0, 2, 0});
    op_embed(&w.ops, &a);
    for (int i = 0; i < n * C; i++)
        T_NEAR(world_get(a.y, i), first[i], 0);
    world_guarded(&w);
}

static void select_takes_the_row_of_the_flag(void)
{
    begin(15);
    struct select_args a = {.y = one(DTYPE_F64, 0), .skip = one(DTYPE_I32, 0)};
    a.x = world_poisoned(&w, DTYPE_F64, 0, 2, (const int64_t[]){2, 1});
    world_set(a.x, 0, 3);
    world_set(a.x, 1, 5);
    op_select(&w.ops, &a);
    T_NEAR(world_get(a.y, 0), 3, 0);
    world_set(a.skip, 0, 1);
    op_select(&w.ops, &a);
    T_NEAR(world_get(a.y, 0), 5, 0);
    world_guarded(&w);
}

static void norm_has_mean_zero_and_square_one(void)
{
    enum { n = 3, C = 40 };
    for (int kind = NORM_LAYER; kind <= NORM_RMS; kind++) {
        begin(2);
        struct norm_args a = {.kind = (enum norm)kind,
                              .x = world_2d(&w, 3, n, C, 1),
                              .w = world_1d(&w, 1, C),
                              .rstd = world_1d(&w, 1, n)};
        if (kind == NORM_LAYER)
            a.mean = world_1d(&w, 1, n);
        for (int j = 0; j < C; j++)
            world_set(a.w, j, 1);
        a.y = like(a.x, 2);
        op_norm(&w.ops, &a);
        for (int i = 0; i < n; i++) {
            double sum = 0, square = 0;
            for (int j = 0; j < C; j++) {
                sum += world_get(a.y, i * C + j);
                square += world_get(a.y, i * C + j) * world_get(a.y, i * C + j);
            }
            if (kind == NORM_LAYER)
                T_NEAR(sum, 0, 1e-12);
            else
                T_NEAR(world_get(a.y, i * C) / world_get(a.x, i * C), world_get(a.rstd, i), 1e-12);
            T_NEAR(square, C, 1e-10);
        }
        world_guarded(&w);
    }
}

static void norm_adds_the_residual_in_place(void)
{
    enum { n = 4, C = 6 };
    begin(3);
    struct norm_args a = {.kind = NORM_RMS,
                          .x = world_2d(&w, 1, n, C, 0),
                          .eps = 1e-5f,
                          .a = world_2d(&w, 1, n, C, 0),
                          .bias = world_1d(&w, 1, C),
                          .w = world_1d(&w, 1, C),
                          .rstd = world_1d(&w, 1, n),
                          .drop = {.p = 0.25f, .seed = 1, .sub = 9}};
    a.y = like(a.x, 0);
    double want[n * C];
    for (int i = 0; i < n * C; i++)
        want[i] = world_get(a.x, i) + kept(a.drop, (uint64_t)(i / C), C, (uint64_t)(i % C)) *
                                          (world_get(a.a, i) + world_get(a.bias, i % C));
    a.r = a.x;
    op_norm(&w.ops, &a);
    for (int i = 0; i < n * C; i++) {
        T_NEAR(world_get(a.r, i), want[i], 1e-14);
        T_NEAR(world_get(a.y, i), want[i] * world_get(a.rstd, i / C) * world_get(a.w, i % C),
               1e-12);
    }
}

static void matmul_in_every_orientation(void)
{
    for (int mode = 0; mode < 8; mode++) {
        enum { m = 3, n = 4, k = 5 };
        bool ta = mode & 1, tb = mode & 2, accumulate = mode & 4;
        begin(4);
        struct tensor a = world_2d(&w, 1, ta ? k : m, ta ? m : k, 1);
        struct tensor b = world_2d(&w, 1, tb ? n : k, tb ? k : n, 2);
        struct tensor y = world_2d(&w, 1, m, n, 3);
        double want[m * n];
        for (int i = 0; i < m * n; i++) {
            want[i] = accumulate ? world_get(y, i) : 0;
            for (int p = 0; p < k; p++)
                want[i] += world_get(a, ta ? p * m + i / n : i / n * k + p) *
                           world_get(b, tb ? i % n * k + p : p * n + i % n);
        }
        if (!accumulate)
            world_poison(y);
        op_matmul(&w.ops,
                  &(struct matmul_args){
                      .y = y, .a = a, .b = b, .ta = ta, .tb = tb, .accumulate = accumulate});
        for (int i = 0; i < m * n; i++)
            T_NEAR(world_get(y, i), want[i], 1e-13);
        world_guarded(&w);
    }
}

/* Values of GELU at 1 and -2 to ten places, from its two formulas. */
static void gelu_has_its_known_values(void)
{
    begin(5);
    struct tensor a = world_2d(&w, 1, 2, 1, 0), b = world_2d(&w, 1, 1, 1, 0), y = like(a, 0);
    struct tensor pre = like(a, 0), bias = world_1d(&w, 1, 1);
    world_set(a, 0, 0.5);
    world_set(a, 1, -1);
    world_set(b, 0, 2);
    world_set(bias, 0, 0);
    struct matmul_args mm = {.y = y, .a = a, .b = b, .bias = bias, .pre = pre, .act = ACT_GELU_ERF};
    op_matmul(&w.ops, &mm);
    T_NEAR(world_get(y, 0), 0.8413447461, 1e-10);
    T_NEAR(world_get(y, 1), -0.0455002639, 1e-10);
    T_NEAR(world_get(pre, 1), -2, 1e-15);
    mm.act = ACT_GELU_TANH;
    mm.pre = (struct tensor){0};
    op_matmul(&w.ops, &mm);
    T_NEAR(world_get(y, 0), 0.8411919906, 1e-10);
    T_NEAR(world_get(y, 1), -0.0454023059, 1e-10);
}

static void glu_is_silu_times_gate(void)
{
    begin(6);
    struct tensor x = world_2d(&w, 1, 1, 2, 0), y = world_2d(&w, 1, 1, 1, 0);
    world_set(x, 0, log(3.0)); /* sigmoid 3/4 */
    world_set(x, 1, 8);
    op_glu(&w.ops, &(struct glu_args){.y = y, .x = x});
    T_NEAR(world_get(y, 0), 6 * log(3.0), 1e-13);
}

static void rope_turns_pairs(void)
{
    enum { D = 6, rotary = 4 };
    begin(7);
    struct rope_args a = {.x = world_3d(&w, 1, 2, 1, D, 0),
                          .rotary = rotary,
                          .position = world_ints(&w, 2, (const int32_t[]){1, 0})};
    const double angle[2][2] = {{0.3, -1.2}, {0.7, 2.5}}; /* [position][pair] */
    a.cos = world_2d(&w, 1, 2, 2, 0);
    a.sin = world_2d(&w, 1, 2, 2, 0);
    double before[2 * D];
    for (int i = 0; i < 4; i++) {
        world_set(a.cos, i, cos(angle[i / 2][i % 2]));
        world_set(a.sin, i, sin(angle[i / 2][i % 2]));
    }
    for (int i = 0; i < 2 * D; i++)
        before[i] = world_get(a.x, i);
    op_rope(&w.ops, &a);
    for (int t = 0; t < 2; t++) {
        const double *turn = angle[1 - t];
        for (int j = 0; j < 2; j++) {
            double u = before[t * D + j], v = before[t * D + j + 2];
            double radius = hypot(u, v), at = atan2(v, u) + turn[j];
            T_NEAR(world_get(a.x, t * D + j), radius * cos(at), 1e-13);
            T_NEAR(world_get(a.x, t * D + j + 2), radius * sin(at), 1e-13);
        }
        T_NEAR(world_get(a.x, t * D + 4), before[t * D + 4], 0);
    }
    a.backward = true;
    op_rope(&w.ops, &a);
    for (int i = 0; i < 2 * D; i++)
        T_NEAR(world_get(a.x, i), before[i], 1e-13);
}

/* One sequence of n queries and keys, and what each query must give, from the textbook formula. */
static void attention_is_softmax_of_what_is_seen(void)
{
    enum { n = 5, H = 4, K = 2, D = 3, past = 2, nk = n + past };
    for (int64_t window = 0; window <= 3; window += 3) {
        begin(8);
        struct attention_args a = {.q = world_3d(&w, 1, n, H, D, 1),
                                   .k = world_3d(&w, 1, nk, K, D, 0),
                                   .v = world_3d(&w, 1, nk, K, D, 2),
                                   .max_len = nk,
                                   .window = window,
                                   .scale = 0.5f,
                                   .drop = {.p = 0.25f, .seed = 3, .sub = 1, .row0 = 6},
                                   .q_start = world_ints(&w, 2, (const int32_t[]){0, n}),
                                   .k_start = world_ints(&w, 1, (const int32_t[]){0}),
                                   .k_len = world_ints(&w, 1, (const int32_t[]){nk})};
        a.o = like(a.q, 0);
        a.lse = world_2d(&w, 1, H, n, 1);
        op_attention(&w.ops, &a);
        for (int64_t i = 0; i < n * H; i++) {
            int64_t q = i / H, h = i % H, last = past + q;
            int64_t first = window && last - window + 1 > 0 ? last - window + 1 : 0;
            double weight[nk], total = 0, out[D] = {0};
            for (int64_t j = first; j <= last; j++) {
                double score = 0;
                for (int64_t d = 0; d < D; d++)
                    score += world_get(a.q, i * D + d) * world_get(a.k, (j * K + h / 2) * D + d);
                weight[j] = exp(0.5 * score);
                total += weight[j];
            }
            for (int64_t j = first; j <= last; j++)
                for (int64_t d = 0; d < D; d++)
                    out[d] += weight[j] / total * world_get(a.v, (j * K + h / 2) * D + d) *
                              kept((struct dropout){.p = 0.25f, .seed = 3, .sub = 1},
                                   (uint64_t)((6 + q) * H + h), nk, (uint64_t)j);
            for (int64_t d = 0; d < D; d++)
                T_NEAR(world_get(a.o, i * D + d), out[d], 1e-12);
            T_NEAR(world_get(a.lse, h * n + q), log(total), 1e-12);
        }
        world_guarded(&w);
    }
}

/* Query by query with a cache gives what one call gives. */
static void attention_decodes_as_it_trains(void)
{
    enum { n = 6, H = 2, D = 4 };
    begin(9);
    struct attention_args a = {.q = world_3d(&w, 1, n, H, D, 0),
                               .k = world_3d(&w, 1, n, H, D, 0),
                               .v = world_3d(&w, 1, n, H, D, 0),
                               .max_len = n,
                               .scale = 1,
                               .q_start = world_ints(&w, 2, (const int32_t[]){0, n}),
                               .k_start = world_ints(&w, 1, (const int32_t[]){0}),
                               .k_len = world_ints(&w, 1, (const int32_t[]){n})};
    a.o = like(a.q, 0);
    op_attention(&w.ops, &a);
    struct tensor o = like(a.q, 0);
    for (int32_t i = 0; i < n; i++) {
        struct attention_args step = a;
        step.q = tensor_rows(a.q, i, 1);
        step.o = tensor_rows(o, i, 1);
        step.q_start = world_ints(&w, 2, (const int32_t[]){0, 1});
        step.k_len = world_ints(&w, 1, (const int32_t[]){i + 1});
        op_attention(&w.ops, &step);
    }
    for (int64_t i = 0; i < n * H * D; i++)
        T_NEAR(world_get(o, i), world_get(a.o, i), 1e-15);
}

static void xent_of_even_logits_is_log_v(void)
{
    enum { n = 3, V = 8 };
    begin(10);
    struct xent_stats_args s = {.logits = world_2d(&w, 0, n, V, 1),
                                .label = world_ids(&w, n, V),
                                .max = world_1d(&w, 1, n),
                                .sum = world_1d(&w, 1, n),
                                .target = world_1d(&w, 1, n)};
    const int64_t rows = n;
    struct xent_loss_args l = {.logits = s.logits,
                               .label = s.label,
                               .max = s.max,
                               .sum = s.sum,
                               .target = s.target,
                               .mask = world_poisoned(&w, DTYPE_F32, 0, 1, &rows),
                               .loss = world_1d(&w, 1, n),
                               .total = one(DTYPE_F64, 5),
                               .scale = 2,
                               .grad = true};
    world_set(l.mask, 0, 1);
    world_set(l.mask, 1, 0);
    world_set(l.mask, 2, 0.5);
    op_xent_stats(&w.ops, &s);
    world_set(s.target, 1, NAN); /* a masked row may hold anything */
    op_xent_loss(&w.ops, &l);
    T_NEAR(world_get(l.loss, 0), log(V), 1e-14);
    T_NEAR(world_get(l.loss, 1), 0, 0);
    T_NEAR(world_get(l.total, 0), 5 + 1.5 * log(V), 1e-14);
    for (int i = 0; i < n * V; i++) {
        double one_hot = i % V == (int)world_get(s.label, i / V) ? 1 : 0;
        T_NEAR(world_get(l.logits, i), 2 * world_get(l.mask, i / V) * (1.0 / V - one_hot), 1e-14);
    }
    world_guarded(&w);
}

/*
 * While the gradient stays the same, both unbiased moments are the gradient and its square, so
 * every step is p (1 - lr decay) - lr g / (|g| + eps).
 */
static void adamw_of_a_constant_gradient(void)
{
    enum { n = 7, steps = 4 };
    begin(11);
    struct adamw_args a = {.p = world_1d(&w, 1, n),
                           .g = world_1d(&w, 1, n),
                           .m = world_1d(&w, 0, n),
                           .v = world_1d(&w, 0, n),
                           .factor = one(DTYPE_F64, 0.5),
                           .skip = one(DTYPE_I32, 0),
                           .beta1 = 0.9,
                           .beta2 = 0.99,
                           .eps = 1e-3};
    double p[n];
    for (int i = 0; i < n; i++)
        p[i] = world_get(a.p, i);
    for (int step = 1; step <= steps; step++) {
        a.values = world_values(&w, step_values_make(0.1, 0.2, step, 0.9, 0.99));
        op_adamw(&w.ops, &a);
        for (int i = 0; i < n; i++) {
            double g = 0.5 * world_get(a.g, i);
            p[i] = p[i] * (1 - 0.1 * 0.2) - 0.1 * g / (fabs(g) + 1e-3);
            T_NEAR(world_get(a.p, i), p[i], 1e-13);
        }
    }
    world_set(a.skip, 0, 1);
    op_adamw(&w.ops, &a);
    for (int i = 0; i < n; i++)
        T_NEAR(world_get(a.p, i), p[i], 1e-13);
    world_guarded(&w);
}

/* With and without momentum; decay joins the gradient. */
static void sgd_of_a_constant_gradient(void)
{
    enum { n = 7, steps = 4 };
    for (int momentum = 0; momentum < 2; momentum++) {
        begin(13);
        struct sgd_args a = {.p = world_1d(&w, 1, n),
                             .g = world_1d(&w, 1, n),
                             .factor = one(DTYPE_F64, 0.5),
                             .skip = one(DTYPE_I32, 0),
                             .values = world_values(&w, step_values_make(0.1, 0.2, 1, 0, 0)),
                             .momentum = 0.75};
        double p[n], m[n] = {0};
        if (momentum)
            a.m = world_1d(&w, 0, n);
        for (int i = 0; i < n; i++)
            p[i] = world_get(a.p, i);
        for (int step = 0; step < steps; step++) {
            op_sgd(&w.ops, &a);
            for (int i = 0; i < n; i++) {
                m[i] = (momentum ? 0.75 * m[i] : 0) + 0.5 * world_get(a.g, i) + 0.2 * p[i];
                p[i] -= 0.1 * m[i];
                T_NEAR(world_get(a.p, i), p[i], 1e-13);
            }
        }
        world_set(a.skip, 0, 1);
        op_sgd(&w.ops, &a);
        for (int i = 0; i < n; i++)
            T_NEAR(world_get(a.p, i), p[i], 1e-13);
        world_guarded(&w);
    }
}

static void clip_measures_and_skips(void)
{
    begin(12);
    struct tensor x = world_1d(&w, 1, 2);
    world_set(x, 0, 3);
    world_set(x, 1, -4);
    struct tensor total = one(DTYPE_F64, 144);
    struct clip_args c = {.total = total,
                          .norm = one(DTYPE_F64, -1),
                          .factor = one(DTYPE_F64, -1),
                          .skip = one(DTYPE_I32, -1),
                          .max_norm = 2};
    op_sumsq(&w.ops, &(struct sumsq_args){.total = total, .x = x});
    op_clip(&w.ops, &c);
    T_NEAR(world_get(c.norm, 0), 13, 1e-14);
    T_NEAR(world_get(c.factor, 0), 2 / (13 + 1e-6), 1e-15);
    T_EQ(world_get(c.skip, 0), 0);
    c.max_norm = 20;
    op_clip(&w.ops, &c);
    T_NEAR(world_get(c.factor, 0), 1, 0);
    c.max_norm = 0;
    op_clip(&w.ops, &c);
    T_NEAR(world_get(c.factor, 0), 1, 0);
    world_set(total, 0, NAN);
    op_clip(&w.ops, &c);
    T_EQ(world_get(c.skip, 0), 1);
    T_NEAR(world_get(c.factor, 0), 0, 0);
}

static void fill_and_copy_keep_to_their_rows(void)
{
    begin(13);
    struct tensor x = world_3d(&w, 1, 3, 2, 2, 1), y = world_3d(&w, 1, 3, 2, 2, 4);
    double before = world_get(y, 5);
    op_copy(&w.ops, &(struct copy_args){.y = y, .x = x, .accumulate = true});
    T_NEAR(world_get(y, 5), before + world_get(x, 5), 1e-15);
    op_copy(&w.ops, &(struct copy_args){.y = y, .x = x});
    for (int64_t i = 0; i < tensor_count(x); i++)
        T_NEAR(world_get(y, i), world_get(x, i), 0);
    op_fill(&w.ops, &(struct fill_args){.y = y, .value = 2.5});
    for (int64_t i = 0; i < tensor_count(x); i++)
        T_NEAR(world_get(y, i), 2.5, 0);
    struct tensor ids = world_ids(&w, 4, 9), same = like(ids, 0);
    op_copy(&w.ops, &(struct copy_args){.y = same, .x = ids});
    T_MEM(same.data, ids.data, 16);
    op_fill(&w.ops, &(struct fill_args){.y = same, .value = 7});
    T_EQ(world_get(same, 3), 7);
    world_guarded(&w);
}

/* Gradients that are to be divided by a count: of 4 labels, and of none. */
static void clip_divides_by_a_count(void)
{
    begin(14);
    struct clip_args c = {.total = one(DTYPE_F64, 64),
                          .norm = one(DTYPE_F64, 0),
                          .factor = one(DTYPE_F64, 0),
                          .skip = one(DTYPE_I32, 0),
                          .count = one(DTYPE_F64, 4),
                          .max_norm = 1};
    op_clip(&w.ops, &c);
    T_NEAR(world_get(c.norm, 0), 2, 1e-15);
    T_NEAR(world_get(c.factor, 0), 1 / (2 + 1e-6) / 4, 1e-15);
    world_set(c.count, 0, 0);
    op_clip(&w.ops, &c);
    T_NEAR(world_get(c.norm, 0), 8, 1e-15);
    T_NEAR(world_get(c.factor, 0), 1 / (8 + 1e-6), 1e-15);
    c.scale = one(DTYPE_F64, 0.5); /* a scale may be below 1 */
    op_clip(&w.ops, &c);
    T_NEAR(world_get(c.norm, 0), 16, 1e-15);
    T_NEAR(world_get(c.factor, 0), 2 / (16 + 1e-6), 1e-15);
    world_guarded(&w);
}

/* Each element has a number of its own between -noise and noise, from its global place alone, and
 * it is dropped with the sum. */
static void embed_adds_noise(void)
{
    enum { n = 40, C = 30 };
    double sum = 0, least = 0, most = 0;
    begin(2);
    struct embed_args a = {.id = world_ids(&w, n, 4),
                           .tok = world_2d(&w, 1, 4, C, 1),
                           .noise = 0.25f,
                           .drop = {.seed = 7, .sub = 2, .row0 = 3}};
    a.y = world_2d(&w, 1, n, C, 1);
    for (int dropped = 0; dropped < 2; dropped++) {
        a.drop.p = dropped ? 0.5f : 0;
        world_poison(a.y);
        op_embed(&w.ops, &a);
        for (int i = 0; i < n * C; i++) {
            uint64_t e = 3 * C + (uint64_t)i;
            struct rng4 r = rng_block(7, RNG_NOISE, 0, e / 4);
            double u = 0.25 * (2 * (double)(r.v[e % 4] >> 8) / 0x1p24 - 1);
            double k = dropped ? kept(a.drop, (uint64_t)(i / C), C, (uint64_t)(i % C)) : 1;
            double tok = world_get(a.tok, (int64_t)world_get(a.id, i / C) * C + i % C);
            T_NEAR(world_get(a.y, i), (tok + u) * k, 1e-14);
            sum += u;
            least = u < least ? u : least;
            most = u > most ? u : most;
        }
    }
    T_NEAR(sum / (2 * n * C), 0, 0.02);
    T_CHECK(least > -0.25 && least < -0.24 && most < 0.25 && most > 0.24);
    world_guarded(&w);
}

T_MAIN(T_CASE(masks_are_as_random_as_they_say),
       T_CASE(probabilities_are_multiples_of_two_to_the_minus_fifteen),
       T_CASE(embed_adds_and_drops), T_CASE(embed_adds_noise),
       T_CASE(norm_has_mean_zero_and_square_one), T_CASE(norm_adds_the_residual_in_place),
       T_CASE(matmul_in_every_orientation), T_CASE(gelu_has_its_known_values),
       T_CASE(glu_is_silu_times_gate), T_CASE(rope_turns_pairs),
       T_CASE(attention_is_softmax_of_what_is_seen), T_CASE(attention_decodes_as_it_trains),
       T_CASE(xent_of_even_logits_is_log_v), T_CASE(adamw_of_a_constant_gradient),
       T_CASE(sgd_of_a_constant_gradient), T_CASE(clip_measures_and_skips),
       T_CASE(clip_divides_by_a_count), T_CASE(fill_and_copy_keep_to_their_rows),
       T_CASE(select_takes_the_row_of_the_flag))

/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Stochastic rounding: its mean is exact, what BF16 represents stays, and the random bits follow
 * from seed, step, tensor, element and state alone, however the elements are cut into calls.
 */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/t.h"
#include "tests/train/ops/world.h"
#include "train/ops/blocks.h"
#include "train/ops/cpu/cpu.h"
#include "train/ops/rounding.h"
#include "train/tensor/box.h"

enum { WORKSPACE = 8 << 20, ROWS = 24, COLS = 40, N = ROWS * COLS, STREAM = 77 };

static struct world w;
static struct ops narrow;

static float float_of(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof(x));
    return x;
}

static double get(struct tensor t, int64_t i)
{
    double x;
    box_cast(&x, DTYPE_F64, (const char *)t.data + (size_t)i * dtype_size(t.dtype), t.dtype, 1);
    return x;
}

static void put(struct tensor t, int64_t i, double x)
{
    box_cast((char *)t.data + (size_t)i * dtype_size(t.dtype), t.dtype, &x, DTYPE_F64, 1);
}

/* ---- one number --------------------------------------------------------------------------- */

/* Of all 65536 random numbers, exactly as many go away from 0 as what is cut off says. */
static void the_mean_is_exact(void)
{
    static const uint32_t upper[] = {0x3f80, 0xbf80, 0x0000, 0x8000, 0x0001, 0x007f,
                                     0x0080, 0x7f7e, 0xc2f7, 0x1234, 0x3fff, 0xff00};
    static const uint32_t lower[] = {0, 1, 2, 0x1234, 0x7fff, 0x8000, 0x8001, 0xffff};
    for (size_t i = 0; i < sizeof(upper) / sizeof(upper[0]); i++)
        for (size_t k = 0; k < sizeof(lower) / sizeof(lower[0]); k++) {
            float x = float_of(upper[i] << 16 | lower[k]);
            uint32_t away = 0;
            for (uint32_t bits = 0; bits < 1 << 16; bits++) {
                uint32_t got = round_bf16(x, bits);
                T_CHECK(got == upper[i] || got == upper[i] + 1);
                away += got != upper[i];
            }
            T_EQ(away, lower[k]);
        }
}

static void what_bf16_represents_stays(void)
{
    for (uint32_t u = 0; u < 1 << 16; u++) {
        bool nan = (u & 0x7fff) > 0x7f80;
        for (uint32_t bits = 0; bits < 1 << 16; bits += 0xffff) {
            uint32_t got = round_bf16(float_of(u << 16), bits);
            T_EQ(got, nan ? u | 0x40 : u);
        }
    }
}

static void nothing_becomes_infinite(void)
{
    for (uint32_t bits = 0; bits < 1 << 16; bits += 0x1111) {
        T_EQ(round_bf16(float_of(0x7f7fffff), bits), 0x7f7f);
        T_EQ(round_bf16(float_of(0xff7f0001), bits), 0xff7f);
        T_EQ(round_bf16((float)INFINITY, bits), 0x7f80);
        T_EQ(round_bf16((float)-INFINITY, bits), 0xff80);
        T_CHECK((round_bf16(float_of(0x7f800001), bits) & 0x7fff) > 0x7f80);
        T_CHECK((round_bf16(float_of(0xffffffff), bits) & 0x7fff) > 0x7f80);
    }
}

/* ---- a tensor ----------------------------------------------------------------------------- */

static void open_narrow(void)
{
    struct err e;
    struct ops_config c = {.real = DTYPE_BF16, .narrow = {.master = true, .moment = {true, true}}};
    world_open(&w, DTYPE_F32, NULL, 2, WORKSPACE);
    T_OK(ops_cpu_open(&narrow, &w.dev, &w.workspace, &c, &e), &e);
}

static struct tensor flat_of(enum dtype d, int64_t n)
{
    return world_poisoned(&w, d, 0, 1, &n);
}

static struct tensor runs_of(struct number_run *run, int n)
{
    return tensor_nd(run, DTYPE_I32, 2, (const int64_t[]){n, RUN_INTS});
}

static struct number_run whole_run(uint32_t stream)
{
    return (struct number_run){.width = COLS, .stride = COLS, .stream = stream};
}

/* Weights and moments of a step of AdamW. */
struct state {
    struct tensor p, m, v, g;
};

static struct state state_new(void)
{
    struct state s = {flat_of(DTYPE_BF16, N), flat_of(DTYPE_BF16, N), flat_of(DTYPE_BF16, N),
                      flat_of(DTYPE_F32, N)};
    for (int64_t i = 0; i < N; i++) {
        put(s.p, i, 1);
        put(s.m, i, 0);
        put(s.v, i, 0);
        put(s.g, i, 0.1 + 0.8 * (double)t_rand(3, (uint64_t)i) / 0x1p32);
    }
    return s;
}

static struct tensor part(struct tensor t, int64_t begin, int64_t n)
{
    return tensor_rows(t, begin, n);
}

/* Elements [begin, begin + n) of the range. */
static void step(struct state s, struct rounding r, double number, int64_t begin, int64_t n)
{
    r.number = tensor_1d(&number, DTYPE_F64, 1);
    r.first += begin;
    op_adamw(&narrow,
             &(struct adamw_args){.p = part(s.p, begin, n),
                                  .m = part(s.m, begin, n),
                                  .v = part(s.v, begin, n),
                                  .g = part(s.g, begin, n),
                                  .values = world_values(&w, step_values_make(1e-3, 0, 1, .9, .99)),
                                  .beta1 = .9,
                                  .beta2 = .99,
                                  .eps = 1e-8,
                                  .round = r});
}

static bool same(struct tensor a, struct tensor b)
{
    return !memcmp(a.data, b.data, tensor_bytes(a));
}

/* The weights 1 lose 1e-3, of a spacing of 2^-8: the mean over elements and steps, of each state.
 */
static void means_over_steps(void)
{
    enum { STEPS = 200 };
    double p = 0, m = 0, v = 0;
    struct number_run run = whole_run(STREAM);
    open_narrow();
    for (int k = 0; k < STEPS; k++) {
        world_clear(&w, 0);
        struct state s = state_new();
        step(s, (struct rounding){.runs = runs_of(&run, 1), .seed = 5}, k + 1, 0, N);
        for (int64_t i = 0; i < N; i++) {
            double x = get(s.g, i);
            T_CHECK(get(s.p, i) == 1 || get(s.p, i) == 1 - 0x1p-8);
            p += 1 - get(s.p, i);
            m += get(s.m, i) / (0.1 * x) - 1;
            v += get(s.v, i) / (0.01 * x * x) - 1;
        }
    }
    /* standard deviations: below 2^-9 of each, of the square root of N STEPS means */
    T_NEAR(p / N / STEPS, 1e-3, 5 * 0x1p-9 / sqrt((double)N * STEPS));
    T_NEAR(m / N / STEPS, 0, 5 * 0x1p-8 / sqrt((double)N * STEPS));
    T_NEAR(v / N / STEPS, 0, 5 * 0x1p-8 / sqrt((double)N * STEPS));
    world_guarded(&w);
    world_close(&w);
}

/* Weights that differ from those of another seed, step or tensor; moments of one kind likewise. */
static void bits_are_of_seed_step_and_tensor(void)
{
    struct number_run run = whole_run(STREAM), other = whole_run(STREAM + 1);
    struct rounding r = {.runs = runs_of(&run, 1), .seed = 5}, r2 = r, r3 = r;
    r2.seed = 5 | 1ull << 40;
    r3.runs = runs_of(&other, 1);
    open_narrow();
    struct state a = state_new(), b = state_new(), c = state_new();
    struct state d = state_new(), e = state_new(), nearest = state_new();
    step(a, r, 7, 0, N);
    step(b, r, 7, 0, N);
    T_CHECK(same(a.p, b.p) && same(a.m, b.m) && same(a.v, b.v));
    step(c, r, 8, 0, N);
    step(d, r2, 7, 0, N);
    step(e, r3, 7, 0, N);
    step(nearest, (struct rounding){0}, 7, 0, N);
    T_CHECK(!same(a.p, c.p) && !same(a.m, c.m) && !same(a.v, c.v));
    T_CHECK(!same(a.p, d.p) && !same(a.m, d.m) && !same(a.v, d.v));
    T_CHECK(!same(a.p, e.p) && !same(a.m, e.m) && !same(a.v, e.v));
    T_CHECK(!same(a.p, nearest.p) && get(nearest.p, 3) == 1);
    world_close(&w);
}

/* Weights and moments of one element have bits of their own: two numbers that are as far between
 * their neighbours do not go the same way. */
static void bits_are_of_the_state(void)
{
    enum { MANY = 4096 };
    struct number_run run = {.width = MANY, .stride = MANY, .stream = STREAM};
    double number = 3;
    struct rounding r = {.runs = runs_of(&run, 1), .number = tensor_1d(&number, DTYPE_F64, 1)};
    int alike = 0;
    open_narrow();
    struct tensor p = flat_of(DTYPE_BF16, MANY), m = flat_of(DTYPE_BF16, MANY);
    struct tensor g = flat_of(DTYPE_F32, MANY);
    for (int64_t i = 0; i < MANY; i++) {
        put(p, i, 0);
        put(m, i, 0);
        put(g, i, 1 + 0x1p-8);
    }
    op_sgd(&narrow, &(struct sgd_args){.p = p,
                                       .m = m,
                                       .g = g,
                                       .values = world_values(&w, step_values_make(1, 0, 1, 0, 0)),
                                       .momentum = 0.5,
                                       .round = r});
    for (int64_t i = 0; i < MANY; i++)
        alike += get(p, i) == -get(m, i);
    T_NEAR((double)alike / MANY, 0.5, 5 * 0.5 / sqrt(MANY));
    world_close(&w);
}

/* Any cut of the range into calls, and columns of the tensor alone, with what lies before them. */
static void bits_are_of_the_element(void)
{
    enum { LEFT = 13, BEFORE = 6 };
    struct number_run run = whole_run(STREAM);
    struct rounding r = {.runs = runs_of(&run, 1), .seed = 9};
    open_narrow();
    struct state all = state_new(), pieces = state_new();
    step(all, r, 4, 0, N);
    for (int64_t i = 0, n; i < N; i += n) {
        n = 1 + t_rand(1, (uint64_t)i) % 100;
        step(pieces, r, 4, i, i + n < N ? n : N - i);
    }
    T_CHECK(same(all.p, pieces.p) && same(all.m, pieces.m) && same(all.v, pieces.v));
    struct number_run cut[] = {
        {.width = BEFORE, .stride = BEFORE, .stream = 1},
        {.begin = BEFORE, .index = LEFT, .width = COLS - LEFT, .stride = COLS, .stream = STREAM}};
    struct rounding right = {.runs = runs_of(cut, 2), .seed = 9};
    struct state columns = state_new();
    for (int64_t i = BEFORE; i < BEFORE + ROWS * (COLS - LEFT); i++) {
        int64_t k = i - BEFORE, from = k / (COLS - LEFT) * COLS + LEFT + k % (COLS - LEFT);
        put(columns.g, i, get(all.g, from));
    }
    step(columns, right, 4, 0, N);
    for (int64_t i = BEFORE; i < BEFORE + ROWS * (COLS - LEFT); i++) {
        int64_t k = i - BEFORE, from = k / (COLS - LEFT) * COLS + LEFT + k % (COLS - LEFT);
        T_CHECK(get(columns.p, i) == get(all.p, from));
        T_CHECK(get(columns.m, i) == get(all.m, from));
        T_CHECK(get(columns.v, i) == get(all.v, from));
    }
    world_guarded(&w);
    world_close(&w);
}

/* ---- momentum and decayed, SGD-SaI's and Muon's ------------------------------------------- */

/* m is rounded as SGD's is, y in its memory is it, and elsewhere goes to the nearest. */
static void ops_of_blocks(void)
{
    struct number_run run = whole_run(STREAM);
    double one = 1, number = 2, mean = 0;
    int32_t go = 0;
    struct rounding r = {.runs = runs_of(&run, 1), .number = tensor_1d(&number, DTYPE_F64, 1)};
    struct tensor factor = tensor_1d(&one, DTYPE_F64, 1), skip = tensor_1d(&go, DTYPE_I32, 1);
    open_narrow();
    struct tensor m[2] = {flat_of(DTYPE_BF16, N), flat_of(DTYPE_BF16, N)},
                  g = flat_of(DTYPE_F32, N);
    struct tensor y = flat_of(DTYPE_BF16, N), p = flat_of(DTYPE_BF16, N);
    for (int64_t i = 0; i < N; i++) {
        put(m[0], i, 0);
        put(m[1], i, 0);
        put(p, i, 1);
        put(g, i, 2 + 0x1p-8);
    }
    for (int k = 0; k < 2; k++)
        op_momentum(&narrow, &(struct momentum_args){.y = k ? m[1] : y,
                                                     .m = m[k],
                                                     .g = g,
                                                     .factor = factor,
                                                     .skip = skip,
                                                     .momentum = 0.5,
                                                     .round = r});
    T_CHECK(same(m[0], m[1]));
    for (int64_t i = 0; i < N; i++) {
        T_CHECK(get(y, i) == 1);
        mean += get(m[0], i) / N;
    }
    T_NEAR(mean, 1 + 0x1p-9, 5 * 0x1p-9 / sqrt(N)); /* of 1 and 1 + 2^-7 */
    op_decayed(&narrow, &(struct decayed_args){
                            .p = p,
                            .x = y,
                            .skip = skip,
                            .values = world_values(&w, step_values_make(0x1p-10, 0, 2, 0, 0)),
                            .scale = 1,
                            .round = r});
    mean = 0;
    for (int64_t i = 0; i < N; i++)
        mean += get(p, i) / N;
    T_NEAR(mean, 1 - 0x1p-10, 5 * 0x1p-9 / sqrt(N)); /* of 1 and 1 - 2^-8 */
    world_guarded(&w);
    world_close(&w);
}

T_MAIN(T_CASE(the_mean_is_exact), T_CASE(what_bf16_represents_stays),
       T_CASE(nothing_becomes_infinite), T_CASE(means_over_steps),
       T_CASE(bits_are_of_seed_step_and_tensor), T_CASE(bits_are_of_the_state),
       T_CASE(bits_are_of_the_element), T_CASE(ops_of_blocks))

/* SPDX-License-Identifier: Apache-2.0 */

/* The ops of a mixture of experts: what they are, their gradients against differences in double,
 * and the fast entries against plain C. */

#include "train/ops/experts.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/t.h"
#include "tests/train/ops/world.h"

static struct world w;
static const struct tensor none;

static void begin(uint64_t stream)
{
    world_close(&w);
    world_open(&w, DTYPE_F64, NULL, 1, 1 << 16);
    world_clear(&w, stream);
}

static struct tensor poison_2d(enum dtype d, int64_t rows, int64_t cols, int64_t gap)
{
    return world_poisoned(&w, d, gap, 2, (const int64_t[]){rows, cols});
}

static struct tensor poison_1d(enum dtype d, int64_t n)
{
    return world_poisoned(&w, d, 0, 1, &n);
}

static int64_t at(struct tensor t, int64_t i)
{
    return (int64_t)world_get(t, i);
}

/* A routing of n tokens over E experts by random logits. */
static struct route_args routing(int64_t n, int64_t E, int64_t k, bool normalize)
{
    struct route_args a = {.logits = world_2d(&w, 1, n, E, 2),
                           .prob = poison_2d(w.ops.stat, n, E, 1),
                           .lse = poison_1d(w.ops.stat, n),
                           .weight = poison_2d(w.ops.stat, n, k, 1),
                           .choice = poison_2d(DTYPE_I32, n, k, 3),
                           .slot = poison_2d(DTYPE_I32, n, k, 0),
                           .count = poison_1d(DTYPE_I32, E),
                           .start = poison_1d(DTYPE_I32, E + 1),
                           .normalize = normalize};
    op_route(&w.ops, &a);
    return a;
}

/* ---- what it is ------------------------------------------------------------------------------ */

static void the_router_takes_the_largest(void)
{
    static const double logits[3][4] = {{0, 2, 1, -1}, {5, 5, 5, 5}, {-3, 0, 0, 7}};
    static const int want[3][2] = {{1, 2}, {0, 1}, {3, 1}};
    begin(1);
    struct route_args a = routing(3, 4, 2, true);
    for (int i = 0; i < 12; i++)
        world_set(a.logits, i, logits[i / 4][i % 4]);
    for (int normalize = 0; normalize < 2; normalize++) {
        a.normalize = normalize;
        op_route(&w.ops, &a);
        for (int i = 0; i < 3; i++) {
            double sum = 0, two = 0;
            for (int e = 0; e < 4; e++)
                sum += exp(logits[i][e]);
            T_NEAR(world_get(a.lse, i), log(sum), 1e-14);
            for (int j = 0; j < 2; j++) {
                T_EQ(at(a.choice, 2 * i + j), want[i][j]);
                two += exp(logits[i][want[i][j]]);
            }
            for (int j = 0; j < 2; j++)
                T_NEAR(world_get(a.weight, 2 * i + j),
                       exp(logits[i][want[i][j]]) / (normalize ? two : sum), 1e-15);
        }
    }
    static const int count[4] = {1, 3, 1, 1}, slot[6] = {1, 4, 0, 2, 5, 3};
    static const int start[5] = {0, 1, 4, 5, 6};
    for (int e = 0; e < 4; e++)
        T_EQ(at(a.count, e), count[e]);
    for (int e = 0; e <= 4; e++)
        T_EQ(at(a.start, e), start[e]);
    for (int i = 0; i < 6; i++)
        T_EQ(at(a.slot, i), slot[i]);
    world_guarded(&w);
}

/* Every pair has a slot of its own, by expert and then by token. */
static void slots_are_in_order(void)
{
    enum { n = 41, E = 5, k = 3 };
    begin(2);
    struct route_args a = routing(n, E, k, true);
    int64_t expert[n * k], token[n * k], counted[E] = {0};
    memset(expert, -1, sizeof(expert));
    for (int64_t i = 0; i < n * k; i++) {
        int64_t s = at(a.slot, i);
        T_CHECK(s >= 0 && s < n * k && expert[s] < 0);
        expert[s] = at(a.choice, i);
        token[s] = i / k;
        counted[expert[s]]++;
    }
    for (int64_t s = 1; s < n * k; s++)
        T_CHECK(expert[s] > expert[s - 1] ||
                (expert[s] == expert[s - 1] && token[s] > token[s - 1]));
    for (int e = 0; e < E; e++)
        T_EQ(at(a.count, e), counted[e]);
}

/* Of a uniform router the balancing loss is 1 when coefficient and sizes are Megatron's. */
static void balanced_is_one(void)
{
    enum { n = 8, E = 4, k = 2 };
    begin(3);
    struct route_args a = routing(n, E, k, true);
    for (int i = 0; i < n * E; i++)
        world_set(a.logits, i, 3);
    op_route(&w.ops, &a);
    for (int e = 0; e < E; e++)
        world_set(a.count, e, n * k / E);
    const int64_t two = 2;
    struct tensor sums = world_poisoned(&w, DTYPE_F64, 0, 1, &two);
    world_set(sums, 0, 10);
    world_set(sums, 1, 20);
    op_route_loss(&w.ops, &(struct route_loss_args){.sums = sums,
                                                    .prob = a.prob,
                                                    .lse = a.lse,
                                                    .total = a.count,
                                                    .balance = (double)E / (n * n * k),
                                                    .z = 1.0 / n});
    T_NEAR(world_get(sums, 0), 11, 1e-14);
    T_NEAR(world_get(sums, 1), 20 + pow(3 + log(4), 2), 1e-12);
}

/* ---- gradients ------------------------------------------------------------------------------- */

static double dot(struct tensor x, struct tensor y)
{
    double sum = 0;
    for (int64_t i = 0; i < tensor_count(x); i++)
        sum += world_get(x, i) * world_get(y, i);
    return sum;
}

static void slopes(const char *what, struct tensor x, struct tensor grad, struct tensor before,
                   double (*loss)(void))
{
    const double h = 1e-5;
    for (int64_t i = 0; i < tensor_count(x); i++) {
        double kept = world_get(x, i), difference = 0;
        for (int side = -1; side <= 1; side += 2) {
            world_set(x, i, kept + side * h);
            difference += side * loss();
        }
        world_set(x, i, kept);
        double want = difference / (2 * h);
        double have = world_get(grad, i) - (tensor_none(before) ? 0 : world_get(before, i));
        if (!(fabs(have - want) <= 1e-7 * (1 + fabs(want))))
            t_fail(__FILE__, __LINE__, "%s[%lld]: gradient %.10g, slope %.10g", what, (long long)i,
                   have, want);
    }
}

static struct tensor copy_of(struct tensor t)
{
    struct tensor c = world_poisoned(&w, t.dtype, 0, t.rank, t.size);
    for (int64_t i = 0; i < tensor_count(t); i++)
        world_set(c, i, world_get(t, i));
    return c;
}

static struct route_args route;
static struct tensor weigh, total, sums;
static double balance, z;

static double route_loss(void)
{
    op_route(&w.ops, &route);
    world_set(sums, 0, 0);
    world_set(sums, 1, 0);
    op_route_loss(&w.ops, &(struct route_loss_args){.sums = sums,
                                                    .prob = route.prob,
                                                    .lse = route.lse,
                                                    .total = total,
                                                    .balance = balance,
                                                    .z = z});
    return dot(route.weight, weigh) + world_get(sums, 0) + world_get(sums, 1);
}

/* bits: normalized weights, balancing loss, z loss. */
static void route_bwd(void)
{
    enum { n = 7, E = 5, k = 3 };
    const int64_t two = 2;
    for (int bits = 0; bits < 8; bits++) {
        begin(10 + (uint64_t)bits);
        route = routing(n, E, k, bits & 1);
        balance = bits & 2 ? 0.3 : 0;
        z = bits & 4 ? 0.2 : 0;
        weigh = world_2d(&w, 1, n, k, 2);
        total = world_ids(&w, E, 9);
        sums = world_poisoned(&w, DTYPE_F64, 0, 1, &two);
        struct tensor half = world_poisoned(&w, DTYPE_F64, 0, 1, (const int64_t[]){1});
        world_set(half, 0, 0.5);
        struct route_bwd_args b = {.dlogits = poison_2d(DTYPE_F64, n, E, 1),
                                   .dweight = weigh,
                                   .prob = route.prob,
                                   .lse = route.lse,
                                   .weight = route.weight,
                                   .choice = route.choice,
                                   .total = total,
                                   .normalize = route.normalize,
                                   .scale = half,
                                   .balance = 2 * balance,
                                   .z = 2 * z};
        op_route_bwd(&w.ops, &b);
        slopes("dlogits", route.logits, b.dlogits, none, route_loss);
        world_guarded(&w);
    }
}

static struct permute_args permute;

static double permute_loss(void)
{
    op_permute(&w.ops, &permute);
    return dot(permute.to, weigh);
}

static void permute_bwd(void)
{
    enum { n = 6, k = 3, C = 5 };
    begin(20);
    route = routing(n, 4, k, true);
    permute = (struct permute_args){
        .to = poison_2d(DTYPE_F64, n * k, C, 2), .x = world_2d(&w, 1, n, C, 1), .slot = route.slot};
    weigh = world_2d(&w, 1, n * k, C, 1);
    struct permute_bwd_args b = {
        .dx = poison_2d(DTYPE_F64, n, C, 1), .dto = weigh, .slot = route.slot};
    op_permute_bwd(&w.ops, &b);
    slopes("dx", permute.x, b.dx, none, permute_loss);
    world_guarded(&w);
}

static struct unpermute_args unpermute;

static double unpermute_loss(void)
{
    op_unpermute(&w.ops, &unpermute);
    return dot(unpermute.y, weigh);
}

static void unpermute_bwd(void)
{
    enum { n = 6, k = 3, C = 5 };
    begin(21);
    route = routing(n, 4, k, true);
    unpermute = (struct unpermute_args){.y = poison_2d(DTYPE_F64, n, C, 2),
                                        .from = world_2d(&w, 1, n * k, C, 1),
                                        .slot = route.slot,
                                        .weight = world_2d(&w, 1, n, k, 1)};
    weigh = world_2d(&w, 1, n, C, 1);
    struct unpermute_bwd_args b = {.dfrom = poison_2d(DTYPE_F64, n * k, C, 1),
                                   .dweight = poison_2d(DTYPE_F64, n, k, 1),
                                   .dy = weigh,
                                   .from = unpermute.from,
                                   .slot = route.slot,
                                   .weight = unpermute.weight};
    op_unpermute_bwd(&w.ops, &b);
    slopes("dfrom", unpermute.from, b.dfrom, none, unpermute_loss);
    slopes("dweight", unpermute.weight, b.dweight, none, unpermute_loss);
    world_guarded(&w);
}

static struct grouped_args grouped;
static int64_t used; /* rows of y */

static double grouped_loss(void)
{
    op_grouped(&w.ops, &grouped);
    return dot(tensor_rows(grouped.y, 0, used), tensor_rows(weigh, 0, used));
}

/* Two groups for each of three matrices, some empty; rows behind the last group stay as they are.
 */
static void grouped_bwd(void)
{
    enum { E = 3, O = 4, I = 5, rows = 12 };
    static const int32_t start[2 * E + 1] = {0, 2, 2, 5, 6, 9, 9};
    begin(22);
    used = start[2 * E];
    grouped = (struct grouped_args){.y = poison_2d(DTYPE_F64, rows, O, 2),
                                    .x = world_2d(&w, 1, rows, I, 1),
                                    .w = world_random(&w, 1, 3, 3, (const int64_t[]){E, O, I}),
                                    .start = world_ints(&w, 2 * E + 1, start)};
    weigh = world_2d(&w, 1, rows, O, 1);
    struct grouped_args back = {.y = poison_2d(DTYPE_F64, rows, I, 1),
                                .x = weigh,
                                .w = grouped.w,
                                .start = grouped.start,
                                .backward = true};
    struct grouped_bwd_args b = {.dw = world_random(&w, 1, 1, 3, (const int64_t[]){E, O, I}),
                                 .dy = weigh,
                                 .x = grouped.x,
                                 .start = grouped.start};
    struct tensor before = copy_of(b.dw);
    op_grouped(&w.ops, &back);
    op_grouped_bwd(&w.ops, &b);
    slopes("dx", tensor_rows(grouped.x, 0, used), tensor_rows(back.y, 0, used), none, grouped_loss);
    slopes("dw", grouped.w, b.dw, before, grouped_loss);
    struct tensor untouched = poison_2d(DTYPE_F64, 1, 1, 0);
    for (int64_t i = used * O; i < rows * O; i++)
        T_CHECK(memcmp((double *)grouped.y.data + i / O * grouped.y.stride + i % O, untouched.data,
                       sizeof(double)) == 0);
    world_guarded(&w);
}

/* ---- fast ------------------------------------------------------------------------------------ */

enum { OUTS = 8, REPEATS = 60 };

struct results {
    struct tensor t[OUTS];
    int n;
};

static struct tensor keep(struct results *r, struct tensor t)
{
    r->t[r->n++] = t;
    return t;
}

struct sizes {
    int64_t n, E, k, C, F;
};

static struct tensor weights(const struct sizes *s, int64_t out, int64_t in)
{
    return world_random(&w, 1, 5, 3, (const int64_t[]){s->E, out, in});
}

/* Forward and backward of a layer's ops in fp32, each on random inputs of its own. */
static void run_all(const struct sizes *s, struct results *r)
{
    int64_t n = s->n, k = s->k, C = s->C, F = s->F, slots = n * k;
    struct route_args a = routing(n, s->E, k, true);
    int32_t start[64] = {0};
    for (int64_t e = 0; e < s->E; e++)
        start[e + 1] = start[e] + (int32_t)at(a.count, e);
    struct tensor from = world_ints(&w, s->E + 1, start), gate = world_2d(&w, 1, n, k, 1);
    op_permute(&w.ops, &(struct permute_args){.to = keep(r, poison_2d(DTYPE_F32, slots, C, 3)),
                                              .x = world_2d(&w, 1, n, C, 1),
                                              .slot = a.slot});
    op_permute_bwd(&w.ops, &(struct permute_bwd_args){.dx = keep(r, poison_2d(DTYPE_F32, n, C, 3)),
                                                      .dto = world_2d(&w, 1, slots, C, 1),
                                                      .slot = a.slot});
    op_unpermute(&w.ops, &(struct unpermute_args){.y = keep(r, poison_2d(DTYPE_F32, n, C, 3)),
                                                  .from = world_2d(&w, 1, slots, C, 1),
                                                  .slot = a.slot,
                                                  .weight = gate});
    op_unpermute_bwd(
        &w.ops, &(struct unpermute_bwd_args){.dfrom = keep(r, poison_2d(DTYPE_F32, slots, C, 3)),
                                             .dweight = keep(r, poison_2d(DTYPE_F32, n, k, 3)),
                                             .dy = world_2d(&w, 1, n, C, 1),
                                             .from = world_2d(&w, 1, slots, C, 1),
                                             .slot = a.slot,
                                             .weight = gate});
    for (int backward = 0; backward < 2; backward++)
        op_grouped(&w.ops, &(struct grouped_args){
                               .y = keep(r, poison_2d(DTYPE_F32, slots, backward ? C : F, 3)),
                               .x = world_2d(&w, 1, slots, backward ? F : C, 1),
                               .w = weights(s, F, C),
                               .start = from,
                               .backward = backward});
    op_grouped_bwd(&w.ops, &(struct grouped_bwd_args){.dw = keep(r, weights(s, F, C)),
                                                      .dy = world_2d(&w, 1, slots, F, 1),
                                                      .x = world_2d(&w, 1, slots, C, 1),
                                                      .start = from});
}

static void compare_results(const struct results *want, const double *const *value,
                            const struct results *got)
{
    for (int i = 0; i < want->n; i++)
        for (int64_t k = 0; k < tensor_count(got->t[i]); k++) {
            double have = world_get(got->t[i], k), one = value[i][k];
            if (!(fabs(have - one) <= 2e-5 * (fabs(one) + 10)))
                t_fail(__FILE__, __LINE__, "result %d [%lld] is %.9g, plain C has %.9g", i,
                       (long long)k, have, one);
        }
}

static void fast_is_plain(void)
{
    static const char *const levels[] = {"plain", "avx2", "avx512"};
    for (int i = 0; i < REPEATS; i++) {
        uint64_t seed = (uint64_t)i;
        struct sizes s = {.n = 1 + t_rand(seed, 1) % 60,
                          .E = 1 + t_rand(seed, 2) % 8,
                          .C = 1 + t_rand(seed, 3) % 70,
                          .F = 1 + t_rand(seed, 4) % 70};
        s.k = 1 + (int64_t)(t_rand(seed, 5) % (uint64_t)s.E);
        struct results want = {.n = 0};
        double *value[OUTS];
        world_close(&w);
        world_open(&w, DTYPE_F32, "ref", 1, 1 << 22);
        world_clear(&w, seed);
        run_all(&s, &want);
        for (int k = 0; k < want.n; k++) {
            value[k] = malloc((size_t)(tensor_count(want.t[k]) + 1) * sizeof(double));
            for (int64_t j = 0; j < tensor_count(want.t[k]); j++)
                value[k][j] = world_get(want.t[k], j);
        }
        for (int l = 0; l < 3; l++) {
            struct results got = {.n = 0};
            struct err e;
            struct ops probe;
            if (ops_cpu_init(&probe, &w.dev, &w.workspace, DTYPE_F32, levels[l], &e))
                continue;
            world_close(&w);
            world_open(&w, DTYPE_F32, levels[l], 2, 1 << 22);
            world_clear(&w, seed);
            run_all(&s, &got);
            compare_results(&want, (const double *const *)value, &got);
            world_guarded(&w);
        }
        for (int k = 0; k < want.n; k++)
            free(value[k]);
    }
    world_close(&w);
}

T_MAIN(T_CASE(the_router_takes_the_largest), T_CASE(slots_are_in_order), T_CASE(balanced_is_one),
       T_CASE(route_bwd), T_CASE(permute_bwd), T_CASE(unpermute_bwd), T_CASE(grouped_bwd),
       T_CASE(fast_is_plain))

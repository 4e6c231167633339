/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Every op of the GPU's table against its plain twin on the host, which sums in double: the calls
 * of test_twins.c, and some at the sizes of models. Outputs and scratch are poisoned, tensors lie
 * between guards, and a second run must give the same bytes. Without a GPU every case is skipped.
 */

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/t.h"
#include "tests/train/ops/compare.h"
#include "tests/train/ops/cuda/mirror.h"

enum { WORKSPACE = 256 << 20 };

static struct world w;
static struct mirror gpu;

static void run_there(const struct call *c, const struct outcome *before, struct outcome *ret)
{
    outcome_put_back(c, before);
    mirror_run(&gpu, &w, c);
    *ret = outcome_save(c);
}

static void compare(const struct twin *t, const int64_t *d, uint32_t bits)
{
    struct call c = {0};
    struct outcome ref, first, second;
    char name[256];
    int n = snprintf(name, sizeof(name), "%s bits %u, %s =", t->name, bits, t->what);
    for (int i = 0; i < TWIN_SIZES && t->most[i]; i++)
        n += snprintf(name + n, sizeof(name) - (size_t)n, " %lld", (long long)d[i]);
    world_clear(&w, bits);
    t->make(&w, &c, d, bits);
    struct outcome before = outcome_save(&c);
    run_there(&c, &before, &first);
    run_there(&c, &before, &second);
    for (int k = 0; k < c.outs; k++)
        if (memcmp(first.bytes[k], second.bytes[k], tensor_bytes(c.out[k])) != 0)
            t_fail(__FILE__, __LINE__, "%s: output %d differs between two runs", name, k);
    outcome_put_back(&c, &before);
    call_run(&w.ops, &c);
    ref = outcome_save(&c);
    outcome_near(name, &c, &ref, &first);
    outcome_drop(&before);
    outcome_drop(&ref);
    outcome_drop(&first);
    outcome_drop(&second);
}

static void open_both(void)
{
    mirror_open(&gpu, WORKSPACE);
    world_open(&w, DTYPE_F32, "ref", 1, WORKSPACE);
}

static void close_both(void)
{
    world_close(&w);
    mirror_close(&gpu);
}

static void drawn(const char *name)
{
    open_both();
    for (int k = 0; k < twin_count; k++)
        if (strcmp(twins[k].name, name) == 0)
            draw_calls(k, compare);
    close_both();
}

static const struct twin *twin_named(const char *name)
{
    for (int k = 0; k < twin_count; k++)
        if (strcmp(twins[k].name, name) == 0)
            return &twins[k];
    t_fail(__FILE__, __LINE__, "no twin %s", name);
}

#define DRAWN(name)                                                                                \
    static void name(void)                                                                         \
    {                                                                                              \
        drawn(#name);                                                                              \
    }

DRAWN(embed)
DRAWN(embed_bwd)
DRAWN(norm)
DRAWN(norm_bwd)
DRAWN(forward)
DRAWN(dgrad)
DRAWN(wgrad)
DRAWN(product)
DRAWN(glu)
DRAWN(glu_bwd)
DRAWN(rope)
DRAWN(attention)
DRAWN(attention_bwd)
DRAWN(xent_stats)
DRAWN(xent_loss)
DRAWN(adamw)
DRAWN(sgd)
DRAWN(sumsq)
DRAWN(fill)
DRAWN(copy)
DRAWN(cap)
DRAWN(head_norm)
DRAWN(head_norm_bwd)
DRAWN(route)
DRAWN(route_bwd)
DRAWN(route_loss)
DRAWN(permute)
DRAWN(permute_bwd)
DRAWN(unpermute)
DRAWN(unpermute_bwd)
DRAWN(grouped)
DRAWN(grouped_bwd)
DRAWN(gate)
DRAWN(gate_bwd)

/* Enough rows for every range, tile and pass to be in use. */
static void model_sizes(void)
{
    static const struct {
        const char *name;
        uint32_t bits;
        int64_t d[TWIN_SIZES];
    } calls[] = {
        {"embed", 32, {5000, 768, 50257}},
        {"embed_bwd", 32, {20011, 192, 50257}},
        {"embed_bwd", 0, {20011, 130, 300}},
        {"norm", 96, {5000, 768}},
        {"norm", 224, {3000, 1600}},
        {"norm", 80, {2000, 4096}},
        {"norm", 80, {700, 8192}},
        {"norm_bwd", 96, {20011, 768}},
        {"norm_bwd", 224, {9001, 1600}},
        {"norm_bwd", 80, {2000, 4096}},
        {"norm_bwd", 80, {700, 8192}},
        {"wgrad", 16, {4099, 96, 80}},
        {"glu", 0, {2000, 8192}},
        {"rope", 0, {9000, 64, 12}},
        {"xent_stats", 0, {300, 50304}},
        {"xent_loss", 32, {300, 50304}},
        {"xent_loss", 32, {20011, 64}},
        {"adamw", 16, {5 << 20}},
        {"sumsq", 0, {5 << 20}},
        {"attention", 0, {2, 700, 2, 2, 64}},
        {"attention_bwd", 0, {2, 700, 2, 2, 64}},
        {"attention_bwd", 544, {1, 300, 1, 2, 256}},
        {"cap", 0, {300, 50304}},
        {"head_norm", 32, {3000, 128, 12}},
        {"head_norm_bwd", 0, {3000, 128, 12}},
        {"route", 16, {20011, 128, 8}},
        {"route_bwd", 208, {5000, 128, 8}},
        {"route_loss", 0, {20011, 128}},
        {"unpermute_bwd", 0, {500, 4096, 2}},
        {"grouped", 0, {400, 300, 260, 8}},
        {"grouped", 64, {400, 300, 260, 8}},
        {"grouped_bwd", 16, {900, 200, 150, 8}},
    };
    open_both();
    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
        compare(twin_named(calls[i].name), calls[i].d, calls[i].bits);
    close_both();
}

/* Rows of logits that are read once for statistics and gradient, but for the last. */
static void long_rows(void)
{
    enum { ALONE = 1 << 8, MASK = 1 << 6, GRAD = 1 << 5, FIRST = 1 << 4, GAP = 1 };
    static const struct {
        int64_t d[TWIN_SIZES];
        uint32_t bits;
    } rows[] = {{{300, 50301}, ALONE | MASK | GRAD | GAP},
                {{40, 151933}, ALONE | FIRST | GRAD | GAP},
                {{7, 16384}, ALONE | MASK | GRAD}, /* with factor and divisor */
                {{40, 50257}, ALONE | MASK | GRAD}};
    open_both();
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        compare(twin_named("xent_loss"), rows[i].d, rows[i].bits);
    close_both();
}

static void same_number(double a, double b)
{
    if (isfinite(b))
        T_CHECK(fabs(a - b) <= 1e-15 * fabs(b));
    else
        T_CHECK(isnan(b) ? isnan(a) : a == b);
}

/* The op has no call among the twins. */
static void clip(void)
{
    static const double totals[] = {0, 1e-9, 0.25, 4, 1e30, INFINITY, NAN};
    open_both();
    for (int i = 0; i < 28; i++) {
        struct clip_args a = {.max_norm = i % 2 ? 0 : 1};
        struct tensor *const all[] = {&a.total, &a.norm, &a.factor, &a.skip};
        double ref[4];
        const int64_t n = 1;
        world_clear(&w, 0);
        for (int k = 0; k < 4; k++)
            *all[k] = world_poisoned(&w, k < 3 ? DTYPE_F64 : DTYPE_I32, 0, 1, &n);
        world_set(a.total, 0, totals[i / 2 % 7]);
        if (i >= 14)
            a.count = world_poisoned(&w, DTYPE_F64, 0, 1, &n);
        if (i >= 14)
            world_set(a.count, 0, i % 3 ? 7 : 0);
        op_clip(&w.ops, &a);
        for (int k = 0; k < 4; k++)
            ref[k] = world_get(*all[k], 0);
        for (int k = 1; k < 4; k++)
            world_poison(*all[k]);
        mirror_upload(&gpu, &w);
        struct clip_args there = a;
        there.total = mirror_tensor(&gpu, &w, a.total);
        there.norm = mirror_tensor(&gpu, &w, a.norm);
        there.factor = mirror_tensor(&gpu, &w, a.factor);
        there.skip = mirror_tensor(&gpu, &w, a.skip);
        if (i >= 14)
            there.count = mirror_tensor(&gpu, &w, a.count);
        op_clip(&gpu.ops, &there);
        mirror_download(&gpu, &w);
        world_guarded(&w);
        for (int k = 0; k < 4; k++)
            same_number(world_get(*all[k], 0), ref[k]);
    }
    close_both();
}

T_MAIN(T_CASE(embed), T_CASE(embed_bwd), T_CASE(norm), T_CASE(norm_bwd), T_CASE(forward),
       T_CASE(dgrad), T_CASE(wgrad), T_CASE(product), T_CASE(glu), T_CASE(glu_bwd), T_CASE(rope),
       T_CASE(attention), T_CASE(attention_bwd), T_CASE(xent_stats), T_CASE(xent_loss),
       T_CASE(adamw), T_CASE(sgd), T_CASE(sumsq), T_CASE(fill), T_CASE(copy), T_CASE(cap),
       T_CASE(head_norm), T_CASE(head_norm_bwd), T_CASE(route), T_CASE(route_bwd),
       T_CASE(route_loss), T_CASE(permute), T_CASE(permute_bwd), T_CASE(unpermute),
       T_CASE(unpermute_bwd), T_CASE(grouped), T_CASE(grouped_bwd), T_CASE(gate), T_CASE(gate_bwd),
       T_CASE(clip), T_CASE(model_sizes), T_CASE(long_rows))

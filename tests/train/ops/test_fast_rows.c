/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The fast entries that work along rows (embed, norm, glu, rope and their backwards) against their
 * plain twins: over shapes, gaps, optional tensors and dropout, at every level that this machine
 * has, and the same bytes for any number of threads.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/t.h"
#include "tests/train/ops/world.h"

enum { WORKSPACE = 1 << 22 };

/* What a call has written. */
struct written {
    int count;
    struct tensor t[6];
};

/* Bits of `pick` choose what is optional. */
typedef void call_fn(struct world *w, uint32_t pick, int64_t n, int64_t width, struct written *out);

static void wrote(struct written *out, struct tensor t)
{
    if (!tensor_none(t))
        out->t[out->count++] = t;
}

static struct tensor fresh(struct world *w, int64_t rows, int64_t cols, int64_t gap)
{
    return world_poisoned(w, DTYPE_F32, gap, 2, (const int64_t[]){rows, cols});
}

static struct tensor fresh_1d(struct world *w, int64_t n)
{
    return world_poisoned(w, DTYPE_F32, 0, 1, &n);
}

static struct dropout drop_of(uint32_t pick)
{
    return (struct dropout){.p = pick & 1 ? 0.3f : 0, .seed = 5, .sub = 9, .row0 = 2 * pick + 1};
}

static void embed(struct world *w, uint32_t pick, int64_t n, int64_t width, struct written *out)
{
    struct embed_args a = {.id = world_ids(w, n, 7),
                           .tok = world_2d(w, 1, 7, width, 1),
                           .y = fresh(w, n, width, 3),
                           .drop = drop_of(pick)};
    if (pick & 2) {
        a.pos = world_2d(w, 1, 5, width, 0);
        a.position = world_ids(w, n, 5);
    }
    op_embed(&w->ops, &a);
    wrote(out, a.y);
}

static void embed_bwd(struct world *w, uint32_t pick, int64_t n, int64_t width, struct written *out)
{
    struct embed_bwd_args a = {.dy = world_2d(w, 1, n, width, 1), .drop = drop_of(pick)};
    if (pick & 2) {
        a.id = world_ids(w, n, 37);
        a.dtok = world_2d(w, 1, 37, width, 2);
    }
    if (pick & 4) {
        a.position = world_ids(w, n, 20);
        a.dpos = world_2d(w, 1, 20, width, 1);
    }
    op_embed_bwd(&w->ops, &a);
    wrote(out, a.dtok);
    wrote(out, a.dpos);
}

static void norm(struct world *w, uint32_t pick, int64_t n, int64_t width, struct written *out)
{
    struct norm_args a = {.kind = pick & 2 ? NORM_RMS : NORM_LAYER,
                          .eps = 1e-5f,
                          .x = world_2d(w, 2, n, width, 1),
                          .w = world_1d(w, 1, width),
                          .y = fresh(w, n, width, 2),
                          .rstd = fresh_1d(w, n)};
    if (a.kind == NORM_LAYER)
        a.mean = fresh_1d(w, n);
    if (pick & 4)
        a.b = world_1d(w, 1, width);
    if (pick & 8) {
        a.drop = drop_of(pick);
        a.a = world_2d(w, 1, n, width, 3);
        a.r = pick & 32 ? a.x : fresh(w, n, width, 1);
        if (pick & 16)
            a.bias = world_1d(w, 1, width);
    }
    op_norm(&w->ops, &a);
    wrote(out, a.y);
    wrote(out, a.r);
    wrote(out, a.mean);
    wrote(out, a.rstd);
}

static void norm_bwd(struct world *w, uint32_t pick, int64_t n, int64_t width, struct written *out)
{
    struct norm_bwd_args a = {.kind = pick & 2 ? NORM_RMS : NORM_LAYER,
                              .dr = world_2d(w, 1, n, width, 1),
                              .dy = world_2d(w, 1, n, width, 2),
                              .r = world_2d(w, 1, n, width, 0),
                              .rstd = world_1d(w, 0.1, n),
                              .w = world_1d(w, 1, width),
                              .dw = world_1d(w, 1, width)};
    if (a.kind == NORM_LAYER)
        a.mean = world_1d(w, 0.2, n);
    for (int64_t i = 0; i < n; i++)
        world_set(a.rstd, i, 1 + world_get(a.rstd, i));
    if (pick & 4)
        a.db = world_1d(w, 1, width);
    if (pick & 8) {
        a.drop = drop_of(pick);
        a.da = pick & 32 && !(pick & 1) ? a.dr : fresh(w, n, width, 3);
        if (pick & 16)
            a.dbias = world_1d(w, 1, width);
    }
    op_norm_bwd(&w->ops, &a);
    wrote(out, a.dr);
    wrote(out, a.dw);
    wrote(out, a.db);
    wrote(out, a.da);
    wrote(out, a.dbias);
}

static void glu(struct world *w, uint32_t pick, int64_t n, int64_t width, struct written *out)
{
    struct glu_args a = {.x = world_2d(w, pick & 1 ? 20 : 2, n, 2 * width, 1),
                         .y = fresh(w, n, width, 2)};
    op_glu(&w->ops, &a);
    wrote(out, a.y);
}

static void glu_bwd(struct world *w, uint32_t pick, int64_t n, int64_t width, struct written *out)
{
    struct glu_bwd_args a = {.x = world_2d(w, pick & 1 ? 20 : 2, n, 2 * width, 1),
                             .dy = world_2d(w, 1, n, width, 2)};
    a.dx = pick & 2 ? a.x : fresh(w, n, 2 * width, 3);
    op_glu_bwd(&w->ops, &a);
    wrote(out, a.dx);
}

static void rope(struct world *w, uint32_t pick, int64_t n, int64_t width, struct written *out)
{
    int64_t dim = width < 2 ? 2 : width, rotary = pick & 2 ? dim / 2 * 2 : (dim + 2) / 4 * 2;
    struct rope_args a = {.x = world_3d(w, 1, n, 1 + pick % 3, dim, 5),
                          .rotary = rotary,
                          .cos = world_2d(w, 1, 11, rotary / 2, 0),
                          .sin = world_2d(w, 1, 11, rotary / 2, 1),
                          .position = world_ids(w, n, 11),
                          .backward = pick & 1};
    op_rope(&w->ops, &a);
    wrote(out, a.x);
}

/* ---- comparisons ------------------------------------------------------------------------------
 */

static const char *const levels[] = {"plain", "avx2", "avx512"};
static const int64_t widths[] = {1, 3, 17, 20, 64, 513, 768, 1000};
static const int64_t counts[] = {0, 1, 5, 43};
enum {
    LEVELS = sizeof(levels) / sizeof(levels[0]),
    WIDTHS = sizeof(widths) / sizeof(widths[0]),
    COUNTS = sizeof(counts) / sizeof(counts[0]),
};

static bool has_level(const char *level)
{
    struct ops o;
    struct err e;
    return ops_cpu_init(&o, NULL, NULL, DTYPE_F32, level, &e) == 0;
}

/* The same random arguments for the same pick and sizes. */
static struct written call(struct world *w, call_fn *fn, uint32_t pick, int64_t n, int64_t width)
{
    struct written out = {0};
    world_clear(w, 1000 * (uint64_t)n + (uint64_t)width);
    memset(w->workspace.base, 0xff, WORKSPACE);
    fn(w, pick, n, width, &out);
    world_guarded(w);
    return out;
}

static void compare(const struct written *have, const struct written *want, const char *what)
{
    T_EQ(have->count, want->count);
    for (int k = 0; k < want->count; k++) {
        for (int64_t i = 0; i < tensor_count(want->t[k]); i++) {
            double a = world_get(have->t[k], i), b = world_get(want->t[k], i);
            double limit = 2e-5 * (b > 1 ? b : b < -1 ? -b : 1);
            if (!(a - b <= limit && b - a <= limit))
                t_fail(__FILE__, __LINE__, "%s, output %d, element %lld: %.9g instead of %.9g",
                       what, k, (long long)i, a, b);
        }
    }
}

static void against_plain(call_fn *fn, uint32_t picks)
{
    struct world fast, ref;
    char what[128];
    world_open(&ref, DTYPE_F32, "ref", 1, WORKSPACE);
    for (int l = 0; l < LEVELS; l++) {
        if (!has_level(levels[l]))
            continue;
        world_open(&fast, DTYPE_F32, levels[l], 2, WORKSPACE);
        for (uint32_t i = 0; i < WIDTHS * COUNTS; i++) {
            int64_t width = widths[i % WIDTHS], n = counts[i / WIDTHS];
            for (uint32_t pick = width < 100 ? 0 : i % 7; pick < picks;
                 pick += width < 100 ? 1 : 7) {
                struct written want = call(&ref, fn, pick, n, width);
                struct written have = call(&fast, fn, pick, n, width);
                snprintf(what, sizeof(what), "%s, [%lld, %lld], pick %u", levels[l], (long long)n,
                         (long long)width, pick);
                compare(&have, &want, what);
            }
        }
        world_close(&fast);
    }
    world_close(&ref);
}

/* Sizes that make many tasks; some of the choices. */
static void same_bytes(call_fn *fn, uint32_t picks)
{
    static const int threads[] = {2, 3, 7};
    struct world one, more, ref;
    world_open(&ref, DTYPE_F32, "ref", 1, WORKSPACE);
    for (int l = 0; l < LEVELS; l++) {
        if (!has_level(levels[l]))
            continue;
        world_open(&one, DTYPE_F32, levels[l], 1, WORKSPACE);
        for (int i = 0; i < 3; i++) {
            world_open(&more, DTYPE_F32, levels[l], threads[i], WORKSPACE);
            for (uint32_t pick = (uint32_t)i; pick<picks; pick += picks> 8 ? 13 : 3) {
                struct written a = call(&one, fn, pick, 301, 520);
                struct written b = call(&more, fn, pick, 301, 520);
                struct written plain = call(&ref, fn, pick, 301, 520);
                compare(&a, &plain, levels[l]);
                T_EQ(a.count, b.count);
                for (int k = 0; k < a.count; k++) {
                    void *want = world_bytes(a.t[k]), *have = world_bytes(b.t[k]);
                    T_MEM(have, want, tensor_bytes(a.t[k]));
                    free(want);
                    free(have);
                }
            }
            world_close(&more);
        }
        world_close(&one);
    }
    world_close(&ref);
}

/* Rows far from zero: the mean is taken off before anything is squared. */
static void norm_of_large_means(void)
{
    struct world w;
    for (int l = 0; l < LEVELS; l++) {
        if (!has_level(levels[l]))
            continue;
        world_open(&w, DTYPE_F32, levels[l], 1, WORKSPACE);
        struct norm_args a = {.kind = NORM_LAYER,
                              .x = world_2d(&w, 1, 2, 1003, 0),
                              .w = world_1d(&w, 0, 1003),
                              .y = fresh(&w, 2, 1003, 0),
                              .mean = fresh_1d(&w, 2),
                              .rstd = fresh_1d(&w, 2)};
        double square = 0, sum = 0;
        for (int64_t i = 0; i < 2006; i++)
            world_set(a.x, i, world_get(a.x, i) + 1000);
        for (int64_t j = 0; j < 1003; j++)
            world_set(a.w, j, 1);
        op_norm(&w.ops, &a);
        for (int64_t j = 0; j < 1003; j++) {
            sum += world_get(a.y, j) / 1003;
            square += world_get(a.y, j) * world_get(a.y, j) / 1003;
        }
        T_NEAR(sum, 0, 1e-4);
        T_NEAR(square, 1, 1e-5);
        world_close(&w);
    }
}

#define PAIR(fn, picks)                                                                            \
    static void fn##_as_plain(void)                                                                \
    {                                                                                              \
        against_plain(fn, picks);                                                                  \
    }                                                                                              \
    static void fn##_on_any_threads(void)                                                          \
    {                                                                                              \
        same_bytes(fn, picks);                                                                     \
    }
PAIR(embed, 4)
PAIR(embed_bwd, 8)
PAIR(norm, 64)
PAIR(norm_bwd, 64)
PAIR(glu, 2)
PAIR(glu_bwd, 4)
PAIR(rope, 6)

T_MAIN(T_CASE(embed_as_plain), T_CASE(embed_on_any_threads), T_CASE(embed_bwd_as_plain),
       T_CASE(embed_bwd_on_any_threads), T_CASE(norm_as_plain), T_CASE(norm_on_any_threads),
       T_CASE(norm_bwd_as_plain), T_CASE(norm_bwd_on_any_threads), T_CASE(glu_as_plain),
       T_CASE(glu_on_any_threads), T_CASE(glu_bwd_as_plain), T_CASE(glu_bwd_on_any_threads),
       T_CASE(rope_as_plain), T_CASE(rope_on_any_threads), T_CASE(norm_of_large_means))

/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Attention over parts of the keys, as context-parallel ranks compute it one after the other: what
 * they merge, and the gradients of all parts together, are those of one call over all keys. In
 * double by the plain ops, in float by the fast ones.
 */

#include <math.h>
#include <stdlib.h>

#include "tests/t.h"
#include "tests/train/ops/world.h"
#include "train/layout/context.h"

enum { LENGTH = 48, SEQUENCES = 2, ROWS = LENGTH * SEQUENCES, D = 6, MOST = 32 };

static struct world w;

struct run {
    struct context c;
    int64_t heads, groups;
    const int32_t *document;
    int64_t documents;
    struct attention_args whole; /* over the global rows */
    struct attention_bwd_args grad;
};

static struct tensor make(const struct run *r, int64_t n, int64_t heads)
{
    return world_poisoned(&w, w.ops.real, r->heads, 3, (const int64_t[]){n, heads, D});
}

static struct tensor make_2d(int64_t rows, int64_t cols)
{
    return world_poisoned(&w, w.ops.real, 0, 2, (const int64_t[]){rows, cols});
}

static void make_whole(struct run *r, int64_t window, float p)
{
    int32_t len[MOST], longest = 1;
    for (int64_t d = 0; d < r->documents; d++) {
        len[d] = r->document[d + 1] - r->document[d];
        longest = len[d] > longest ? len[d] : longest;
    }
    r->whole = (struct attention_args){.q = world_3d(&w, 1, ROWS, r->heads, D, 1),
                                       .k = world_3d(&w, 1, ROWS, r->groups, D, 2),
                                       .v = world_3d(&w, 1, ROWS, r->groups, D, 0),
                                       .o = make(r, ROWS, r->heads),
                                       .lse = make_2d(r->heads, ROWS),
                                       .q_start = world_ints(&w, r->documents + 1, r->document),
                                       .k_start = world_ints(&w, r->documents, r->document),
                                       .k_len = world_ints(&w, r->documents, len),
                                       .max_len = longest,
                                       .window = window,
                                       .scale = 0.5f,
                                       .drop = {.p = p, .seed = 4, .sub = 1, .row0 = 1000}};
    r->grad = (struct attention_bwd_args){.dout = world_3d(&w, 1, ROWS, r->heads, D, 0),
                                          .dq = make(r, ROWS, r->heads),
                                          .dk = make(r, ROWS, r->groups),
                                          .dv = make(r, ROWS, r->groups)};
    op_attention(&w.ops, &r->whole);
    r->grad.fwd = r->whole;
    op_attention_bwd(&w.ops, &r->grad);
}

/* The rows of a rank's half, from the global rows. */
static struct tensor rows_of(const struct run *r, int rank, int half, struct tensor from)
{
    struct context c = r->c;
    c.rank = rank;
    int64_t n = ROWS / r->c.cp / 2, width = from.size[1] * D;
    struct tensor t = make(r, n, from.size[1]);
    for (int64_t i = 0; i < n; i++)
        for (int64_t k = 0; k < width; k++)
            world_set(t, i * width + k, world_get(from, context_row(c, half * n + i) * width + k));
    return t;
}

static void near(const char *what, double have, double want)
{
    double tolerance = w.ops.real == DTYPE_F64 ? 1e-12 : 3e-5;
    if (have != want && !(fabs(have - want) <= tolerance * fmax(1, fabs(want))))
        t_fail(__FILE__, __LINE__, "%s: %.12g, expected %.12g", what, have, want);
}

/* One call: a half's queries against a half's keys. False: there is none. Sequences that are empty
 * change nothing. */
static bool part_args(const struct run *r, int half, int key_rank, int key_half,
                      struct attention_args *ret)
{
    int32_t a[6][MOST + 1];
    struct context_rows rows = {a[0], a[1], a[2], a[3], a[4], a[5]};
    struct context_call call = {half, key_rank, key_half};
    struct context other = r->c;
    other.rank = key_rank;
    if (context_piece(other, key_half) > context_piece(r->c, half))
        return false;
    int64_t n = context_rows(r->c, r->document, r->documents, call, rows);
    T_CHECK(n < MOST);
    context_rows_pad(rows, n, n + 1);
    n++;
    ret->q_start = world_ints(&w, n + 1, a[0]);
    ret->k_start = world_ints(&w, n, a[1]);
    ret->k_len = world_ints(&w, n, a[2]);
    ret->ahead = world_ints(&w, n, a[3]);
    ret->drop_row = world_ints(&w, n, a[4]);
    ret->drop_key = world_ints(&w, n, a[5]);
    ret->k = rows_of(r, key_rank, key_half, r->whole.k);
    ret->v = rows_of(r, key_rank, key_half, r->whole.v);
    return true;
}

/* o and lse of a half of this rank, merged over all keys; compared with the whole's. */
static struct attention_args merged(const struct run *r, int half)
{
    int64_t n = ROWS / r->c.cp / 2;
    struct attention_args a = r->whole;
    a.q = rows_of(r, r->c.rank, half, r->whole.q);
    struct merge_args m = {.o = make(r, n, r->heads),
                           .lse = make_2d(r->heads, n),
                           .part_o = make(r, n, r->heads),
                           .part_lse = make_2d(r->heads, n)};
    for (int64_t i = 0; i < tensor_count(m.o); i++)
        world_set(m.o, i, 0);
    for (int64_t i = 0; i < tensor_count(m.lse); i++)
        world_set(m.lse, i, -INFINITY);
    a.o = m.part_o;
    a.lse = m.part_lse;
    for (int k = 0; k < 2 * r->c.cp; k++)
        if (part_args(r, half, k / 2, k % 2, &a)) {
            op_attention(&w.ops, &a);
            op_merge(&w.ops, &m);
        }
    a.o = m.o;
    a.lse = m.lse;
    for (int64_t i = 0; i < n; i++) {
        int64_t at = context_row(r->c, half * n + i);
        for (int64_t k = 0; k < r->heads * D; k++)
            near("o", world_get(a.o, i * r->heads * D + k),
                 world_get(r->whole.o, at * r->heads * D + k));
        for (int64_t h = 0; h < r->heads; h++)
            near("lse", world_get(a.lse, h * n + i), world_get(r->whole.lse, h * ROWS + at));
    }
    return a;
}

/* Adds what a part gives to the global rows of a rank's half. */
static void add_rows(const struct run *r, int rank, int half, struct tensor part, struct tensor to)
{
    struct context c = r->c;
    c.rank = rank;
    int64_t n = ROWS / r->c.cp / 2, width = to.size[1] * D;
    for (int64_t i = 0; i < n * width; i++) {
        int64_t at = context_row(c, half * n + i / width) * width + i % width;
        world_set(to, at, world_get(to, at) + world_get(part, i));
    }
}

static void backward_of_parts(const struct run *r, int half, struct attention_args fwd,
                              const struct attention_bwd_args *sum)
{
    int64_t n = ROWS / r->c.cp / 2;
    struct attention_bwd_args b = {.dout = rows_of(r, r->c.rank, half, r->grad.dout)};
    b.dq = make(r, n, r->heads);
    b.dk = make(r, n, r->groups);
    b.dv = make(r, n, r->groups);
    for (int k = 0; k < 2 * r->c.cp; k++) {
        if (!part_args(r, half, k / 2, k % 2, &fwd))
            continue;
        b.fwd = fwd;
        op_attention_bwd(&w.ops, &b);
        add_rows(r, r->c.rank, half, b.dq, sum->dq);
        add_rows(r, k / 2, k % 2, b.dk, sum->dk);
        add_rows(r, k / 2, k % 2, b.dv, sum->dv);
    }
}

static struct tensor zeros_like(struct tensor t)
{
    struct tensor z = world_poisoned(&w, t.dtype, 0, 3, t.size);
    for (int64_t i = 0; i < tensor_count(z); i++)
        world_set(z, i, 0);
    return z;
}

static void same(const char *what, struct tensor have, struct tensor want)
{
    for (int64_t i = 0; i < tensor_count(want); i++)
        near(what, world_get(have, i), world_get(want, i));
}

static void check(struct run r, int64_t window, float p)
{
    world_clear(&w, (uint64_t)(r.c.cp * 100 + r.heads * 10 + window + r.documents));
    make_whole(&r, window, p);
    struct attention_bwd_args sum = {
        .dq = zeros_like(r.grad.dq), .dk = zeros_like(r.grad.dk), .dv = zeros_like(r.grad.dv)};
    for (r.c.rank = 0; r.c.rank < r.c.cp; r.c.rank++)
        for (int half = 0; half < 2; half++)
            backward_of_parts(&r, half, merged(&r, half), &sum);
    same("dq", sum.dq, r.grad.dq);
    same("dk", sum.dk, r.grad.dk);
    same("dv", sum.dv, r.grad.dv);
    world_guarded(&w);
}

static void check_all(enum dtype real, const char *level, int threads)
{
    static const int32_t plain[] = {0, LENGTH, ROWS};
    static const int32_t some[] = {0, 3, 5, 30, LENGTH, 49, 60, ROWS};
    world_open(&w, real, level, threads, 8 << 20);
    for (int cp = 1; cp <= 4; cp++)
        for (int k = 0; k < 6; k++) {
            struct run r = {.c = {.cp = cp, .length = LENGTH, .sequences = SEQUENCES},
                            .heads = k % 3 == 2 ? 4 : 2,
                            .groups = k % 3 == 1 ? 1 : 2,
                            .document = k % 2 ? some : plain,
                            .documents = k % 2 ? 7 : 2};
            check(r, k > 3 ? 9 : 0, k == 3 || k == 4 ? 0.2f : 0);
        }
    world_close(&w);
}

static void parts_are_the_whole_in_double(void)
{
    check_all(DTYPE_F64, "ref", 1);
}

static void parts_are_the_whole_by_fast_ops(void)
{
    static const char *const levels[] = {"plain", "avx2", "avx512"};
    for (int l = 0; l < 3; l++) {
        struct ops o;
        if (ops_cpu_init(&o, NULL, NULL, DTYPE_F32, levels[l], NULL) == 0)
            check_all(DTYPE_F32, levels[l], 3);
    }
}

/* ---- numbers of rows --------------------------------------------------------------------------
 */

enum { NUMBERED = 7, WIDTH = 21 };

static const int32_t numbers[NUMBERED] = {40, 3, 4, 5, 90, 0, 17};

static struct tensor row_of(struct tensor t, int64_t i)
{
    return tensor_none(t) ? t : tensor_rows(t, i, 1);
}

/* The dropout of row i alone. */
static struct dropout drop_of(struct dropout d, int64_t i)
{
    d.row0 += (uint64_t)numbers[i];
    d.rows = (struct tensor){0};
    return d;
}

static void embed_rows(struct dropout drop)
{
    struct embed_args a = {.id = world_ids(&w, NUMBERED, 5),
                           .tok = world_2d(&w, 1, 5, WIDTH, 0),
                           .y = world_2d(&w, 1, NUMBERED, WIDTH, 1),
                           .noise = 0.3f,
                           .drop = drop};
    struct embed_bwd_args b = {.dy = a.y, .id = a.id, .drop = drop};
    struct tensor y = make_2d(NUMBERED, WIDTH), dtok = world_2d(&w, 1, 5, WIDTH, 0);
    b.dtok = make_2d(5, WIDTH);
    for (int64_t i = 0; i < 5 * WIDTH; i++)
        world_set(b.dtok, i, world_get(dtok, i));
    op_embed(&w.ops, &a);
    op_embed_bwd(&w.ops, &b);
    for (int64_t i = 0; i < NUMBERED; i++) {
        struct embed_args one = a;
        struct embed_bwd_args back = b;
        one.y = row_of(y, i);
        back.id = one.id = row_of(a.id, i);
        back.drop = one.drop = drop_of(drop, i);
        back.dy = row_of(a.y, i);
        back.dtok = dtok;
        op_embed(&w.ops, &one);
        op_embed_bwd(&w.ops, &back);
    }
    same("y", a.y, y);
    same("dtok", b.dtok, dtok);
}

static void norm_rows(struct dropout drop)
{
    struct norm_args a = {.kind = NORM_RMS,
                          .eps = 1e-5f,
                          .x = world_2d(&w, 1, NUMBERED, WIDTH, 0),
                          .a = world_2d(&w, 1, NUMBERED, WIDTH, 2),
                          .w = world_1d(&w, 1, WIDTH),
                          .r = make_2d(NUMBERED, WIDTH),
                          .y = make_2d(NUMBERED, WIDTH),
                          .rstd = world_1d(&w, 1, NUMBERED),
                          .drop = drop};
    struct norm_bwd_args b = {.kind = NORM_RMS,
                              .dy = world_2d(&w, 1, NUMBERED, WIDTH, 0),
                              .w = a.w,
                              .dw = world_1d(&w, 1, WIDTH),
                              .da = make_2d(NUMBERED, WIDTH),
                              .drop = drop};
    struct tensor r = make_2d(NUMBERED, WIDTH), dr = make_2d(NUMBERED, WIDTH);
    struct tensor da = make_2d(NUMBERED, WIDTH), y = make_2d(NUMBERED, WIDTH);
    b.dr = world_2d(&w, 1, NUMBERED, WIDTH, 0);
    for (int64_t i = 0; i < NUMBERED * WIDTH; i++)
        world_set(dr, i, world_get(b.dr, i));
    op_norm(&w.ops, &a);
    b.r = a.r;
    b.rstd = a.rstd;
    op_norm_bwd(&w.ops, &b);
    for (int64_t i = 0; i < NUMBERED; i++) {
        struct norm_args one = a;
        struct norm_bwd_args back = b;
        one.x = row_of(a.x, i);
        one.a = row_of(a.a, i);
        one.r = row_of(r, i);
        one.y = row_of(y, i);
        back.rstd = one.rstd = row_of(a.rstd, i);
        back.drop = one.drop = drop_of(drop, i);
        back.dy = row_of(b.dy, i);
        back.r = one.r;
        back.dr = row_of(dr, i);
        back.da = row_of(da, i);
        op_norm(&w.ops, &one);
        op_norm_bwd(&w.ops, &back);
    }
    same("r", a.r, r);
    same("y", a.y, y);
    same("dr", b.dr, dr);
    same("da", b.da, da);
}

/* Rows that are not neighbours: the masks are those of each row by itself. */
static void rows_have_numbers(void)
{
    static const char *const levels[] = {"ref", "plain", "avx2", "avx512"};
    for (int l = 0; l < 4; l++) {
        struct ops o;
        if (ops_cpu_init(&o, NULL, NULL, DTYPE_F32, levels[l], NULL))
            continue;
        world_open(&w, DTYPE_F32, levels[l], 2, 1 << 20);
        world_clear(&w, 5);
        struct dropout d = {.p = 0.4f, .seed = 3, .sub = 6, .row0 = 1000};
        d.rows = world_ints(&w, NUMBERED, numbers);
        embed_rows(d);
        norm_rows(d);
        world_guarded(&w);
        world_close(&w);
    }
}

T_MAIN(T_CASE(parts_are_the_whole_in_double), T_CASE(parts_are_the_whole_by_fast_ops),
       T_CASE(rows_have_numbers))

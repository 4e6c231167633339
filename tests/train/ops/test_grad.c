/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Every backward against central differences of its forward, in double. The forward's outputs are
 * weighed by random numbers (the gradient that comes from behind) and summed to one loss.
 */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/t.h"
#include "tests/train/ops/world.h"

static struct world w;

static void begin(uint64_t stream)
{
    world_close(&w);
    world_open(&w, DTYPE_F64, NULL, 1, 1 << 16);
    world_clear(&w, stream);
}

static double dot(struct tensor x, struct tensor y)
{
    double sum = 0;
    for (int64_t i = 0; i < tensor_count(x); i++)
        sum += world_get(x, i) * world_get(y, i);
    return sum;
}

/* grad - before must be the slope of loss() in every element of x. before: zeros if none. */
static void slopes(const char *what, struct tensor x, struct tensor grad, struct tensor before,
                   double (*loss)(void))
{
    const double h = 1e-5;
    for (int64_t i = 0; i < tensor_count(x); i++) {
        double at = world_get(x, i), difference = 0;
        for (int side = -1; side <= 1; side += 2) {
            world_set(x, i, at + side * h);
            difference += side * loss();
        }
        world_set(x, i, at);
        double want = difference / (2 * h);
        double have = world_get(grad, i) - (tensor_none(before) ? 0 : world_get(before, i));
        if (!(fabs(have - want) <= 1e-7 * (1 + fabs(want))))
            t_fail(__FILE__, __LINE__, "%s[%lld]: gradient %.10g, slope %.10g", what, (long long)i,
                   have, want);
    }
}

/* A copy of a gradient's contents before the backward adds to it. */
static struct tensor copy_of(struct tensor t)
{
    struct tensor c = world_poisoned(&w, t.dtype, 0, t.rank, t.size);
    for (int64_t i = 0; i < tensor_count(t); i++)
        world_set(c, i, world_get(t, i));
    return c;
}

static struct tensor like(struct tensor t, int64_t gap)
{
    return world_poisoned(&w, t.dtype, gap, t.rank, t.size);
}

static const struct tensor none;

/* ---- embed ----------------------------------------------------------------------------------- */

static struct embed_args embed;
static struct tensor weigh; /* the loss is the dot product of the output with it */

static double embed_loss(void)
{
    op_embed(&w.ops, &embed);
    return dot(embed.y, weigh);
}

static void embed_case(uint64_t stream, float p, bool positions)
{
    enum { n = 9, V = 5, P = 4, C = 7 };
    begin(stream);
    embed = (struct embed_args){.id = world_ids(&w, n, V), .tok = world_2d(&w, 1, V, C, 2)};
    if (positions) {
        embed.pos = world_2d(&w, 1, P, C, 0);
        embed.position = world_ids(&w, n, P);
    }
    embed.drop = (struct dropout){.p = p, .seed = 3, .sub = 8, .row0 = 5};
    embed.scale = positions ? 0 : 4.5;
    weigh = world_2d(&w, 1, n, C, 1);
    embed.y = like(weigh, 3);
    struct embed_bwd_args b = {.dy = weigh,
                               .id = embed.id,
                               .dtok = world_2d(&w, 1, V, C, 1),
                               .position = embed.position,
                               .scale = embed.scale,
                               .drop = embed.drop};
    if (positions)
        b.dpos = world_2d(&w, 1, P, C, 2);
    struct tensor tok0 = copy_of(b.dtok), pos0 = positions ? copy_of(b.dpos) : none;
    op_embed_bwd(&w.ops, &b);
    slopes("dtok", embed.tok, b.dtok, tok0, embed_loss);
    if (positions)
        slopes("dpos", embed.pos, b.dpos, pos0, embed_loss);
    world_guarded(&w);
}

/* A part of the vocabulary: ids that have no row here change nothing but positions. */
static void embed_shard_bwd(void)
{
    enum { n = 12, V = 9, C = 5, FIRST = 3, ROWS = 4 };
    for (int positions = 0; positions < 2; positions++) {
        begin(4);
        embed = (struct embed_args){.id = world_ids(&w, n, V),
                                    .tok = world_2d(&w, 1, ROWS, C, 2),
                                    .shard = true,
                                    .first = FIRST};
        if (positions) {
            embed.pos = world_2d(&w, 1, 3, C, 0);
            embed.position = world_ids(&w, n, 3);
        }
        weigh = world_2d(&w, 1, n, C, 1);
        embed.y = like(weigh, 3);
        struct embed_bwd_args b = {.dy = weigh,
                                   .id = embed.id,
                                   .dtok = world_2d(&w, 1, ROWS, C, 1),
                                   .position = embed.position,
                                   .shard = true,
                                   .first = FIRST};
        if (positions)
            b.dpos = world_2d(&w, 1, 3, C, 2);
        struct tensor tok0 = copy_of(b.dtok), pos0 = positions ? copy_of(b.dpos) : none;
        op_embed_bwd(&w.ops, &b);
        slopes("dtok", embed.tok, b.dtok, tok0, embed_loss);
        if (positions)
            slopes("dpos", embed.pos, b.dpos, pos0, embed_loss);
        for (int i = 0; i < n && !positions; i++) {
            int64_t id = ((const int32_t *)embed.id.data)[i] - FIRST;
            bool here = id >= 0 && id < ROWS;
            T_CHECK(world_get(embed.y, i * C) == (here ? world_get(embed.tok, id * C) : 0));
        }
        world_guarded(&w);
    }
}

static void embed_bwd(void)
{
    embed_case(1, 0, true);
    embed_case(2, 0.3f, true);
    embed_case(3, 0.3f, false);
}

/* ---- norm ------------------------------------------------------------------------------------ */

static struct norm_args norm;
static struct tensor weigh_r;

static double norm_loss(void)
{
    op_norm(&w.ops, &norm);
    struct tensor r = tensor_none(norm.a) ? norm.x : norm.r;
    return dot(norm.y, weigh) + dot(r, weigh_r);
}

static void norm_case(uint64_t stream, enum norm kind, bool residual, bool biases, float p)
{
    enum { n = 5, C = 11 };
    begin(stream);
    norm = (struct norm_args){.kind = kind,
                              .less_one = stream % 2 == 0,
                              .eps = 1e-3f,
                              .x = world_2d(&w, 1, n, C, 1),
                              .w = world_1d(&w, 1, C),
                              .rstd = world_1d(&w, 1, n)};
    norm.y = like(norm.x, 2);
    if (kind == NORM_LAYER)
        norm.mean = like(norm.rstd, 0);
    if (biases)
        norm.b = world_1d(&w, 1, C);
    if (residual) {
        norm.a = world_2d(&w, 1, n, C, 2);
        norm.r = like(norm.x, 0);
        norm.bias = biases ? world_1d(&w, 1, C) : none;
        norm.drop = (struct dropout){.p = p, .seed = 4, .sub = 1, .row0 = 2};
    }
    weigh = world_2d(&w, 1, n, C, 0);
    weigh_r = world_2d(&w, 1, n, C, 0);
    norm_loss();
    struct norm_bwd_args b = {.kind = kind,
                              .less_one = norm.less_one,
                              .dy = weigh,
                              .dr = copy_of(weigh_r),
                              .r = residual ? norm.r : norm.x,
                              .mean = norm.mean,
                              .rstd = norm.rstd,
                              .w = norm.w,
                              .dw = world_1d(&w, 1, C),
                              .drop = norm.drop};
    struct tensor dw0 = copy_of(b.dw), db0 = none, dbias0 = none;
    if (biases) {
        b.db = world_1d(&w, 1, C);
        db0 = copy_of(b.db);
    }
    if (residual)
        b.da = p > 0 ? like(b.dr, 1) : b.dr;
    if (residual && biases) {
        b.dbias = world_1d(&w, 1, C);
        dbias0 = copy_of(b.dbias);
    }
    op_norm_bwd(&w.ops, &b);
    slopes("dr", norm.x, b.dr, none, norm_loss);
    slopes("dw", norm.w, b.dw, dw0, norm_loss);
    if (biases)
        slopes("db", norm.b, b.db, db0, norm_loss);
    if (residual)
        slopes("da", norm.a, b.da, none, norm_loss);
    if (residual && biases)
        slopes("dbias", norm.bias, b.dbias, dbias0, norm_loss);
    world_guarded(&w);
}

static void norm_bwd(void)
{
    norm_case(1, NORM_LAYER, false, true, 0);
    norm_case(2, NORM_LAYER, true, true, 0);
    norm_case(3, NORM_LAYER, true, true, 0.4f);
    norm_case(4, NORM_RMS, false, false, 0);
    norm_case(5, NORM_RMS, true, false, 0);
    norm_case(6, NORM_RMS, true, true, 0.4f);
}

/* ---- matmul ---------------------------------------------------------------------------------- */

static struct matmul_args up, down; /* h = act(x up^T + bias), y = h down^T */

static double mlp_loss(void)
{
    op_matmul(&w.ops, &up);
    op_matmul(&w.ops, &down);
    return dot(down.y, weigh);
}

static void mlp_case(uint64_t stream, enum act act)
{
    enum { n = 4, C = 5, F = 9, O = 3 };
    begin(stream);
    up = (struct matmul_args){.a = world_2d(&w, 1, n, C, 1),
                              .b = world_2d(&w, 1, F, C, 2),
                              .tb = true,
                              .act = act,
                              .bias = world_1d(&w, 1, F)};
    struct tensor h = world_2d(&w, 1, n, F, 1), dh = like(h, 1);
    up.y = h;
    up.pre = act == ACT_NONE ? none : like(h, 2);
    weigh = world_2d(&w, 1, n, O, 1);
    down = (struct matmul_args){
        .y = like(weigh, 1), .a = h, .b = world_2d(&w, 1, O, F, 0), .tb = true};
    struct tensor dup = world_2d(&w, 1, F, C, 1), dup0 = copy_of(dup);
    struct tensor ddown = world_2d(&w, 1, O, F, 1), ddown0 = copy_of(ddown);
    struct tensor dbias = world_1d(&w, 1, F), dbias0 = copy_of(dbias), dx = like(up.a, 1);
    mlp_loss();
    op_matmul(&w.ops, &(struct matmul_args){.y = dh,
                                            .a = weigh,
                                            .b = down.b,
                                            .act = act,
                                            .act_bwd = act != ACT_NONE,
                                            .pre = up.pre});
    op_matmul(&w.ops, &(struct matmul_args){
                          .y = ddown, .a = weigh, .b = h, .ta = true, .accumulate = true});
    op_matmul(&w.ops,
              &(struct matmul_args){
                  .y = dup, .a = dh, .b = up.a, .ta = true, .accumulate = true, .dbias = dbias});
    op_matmul(&w.ops, &(struct matmul_args){.y = dx, .a = dh, .b = up.b});
    slopes("dx", up.a, dx, none, mlp_loss);
    slopes("dw of up", up.b, dup, dup0, mlp_loss);
    slopes("dw of down", down.b, ddown, ddown0, mlp_loss);
    slopes("dbias", up.bias, dbias, dbias0, mlp_loss);
    world_guarded(&w);
}

static void matmul_plain(void)
{
    mlp_case(1, ACT_NONE);
}

static void matmul_gelu(void)
{
    mlp_case(2, ACT_GELU_TANH);
    mlp_case(3, ACT_GELU_ERF);
}

/* ---- glu, rope ------------------------------------------------------------------------------- */

static struct glu_args glu;

static double glu_loss(void)
{
    op_glu(&w.ops, &glu);
    return dot(glu.y, weigh);
}

static void glu_bwd(void)
{
    for (int i = 0; i < 6; i++) {
        bool in_place = i % 2;
        begin(7);
        glu.act = (enum glu)(i / 2);
        glu.x = world_2d(&w, 2, 5, 14, 1);
        weigh = world_2d(&w, 1, 5, 7, 2);
        glu.y = like(weigh, 0);
        struct tensor x = copy_of(glu.x), dx = in_place ? x : like(x, 3);
        op_glu_bwd(&w.ops, &(struct glu_bwd_args){.dx = dx, .dy = weigh, .x = x, .act = glu.act});
        slopes("dx", glu.x, dx, none, glu_loss);
        world_guarded(&w);
    }
}

static struct rope_args rope;
static struct tensor rope_in;

static double rope_loss(void)
{
    for (int64_t i = 0; i < tensor_count(rope_in); i++)
        world_set(rope.x, i, world_get(rope_in, i));
    op_rope(&w.ops, &rope);
    return dot(rope.x, weigh);
}

static void rope_bwd(void)
{
    enum { n = 5, H = 2, D = 8, rotary = 6, P = 4 };
    begin(8);
    rope_in = world_3d(&w, 1, n, H, D, 1);
    rope = (struct rope_args){.x = like(rope_in, 2),
                              .cos = world_2d(&w, 1, P, rotary / 2, 1),
                              .sin = world_2d(&w, 1, P, rotary / 2, 0),
                              .rotary = rotary,
                              .position = world_ids(&w, n, P)};
    for (int64_t i = 0; i < P * rotary / 2; i++) {
        world_set(rope.cos, i, cos((double)i));
        world_set(rope.sin, i, sin((double)i));
    }
    weigh = world_3d(&w, 1, n, H, D, 1);
    struct rope_args back = rope;
    back.x = copy_of(weigh);
    back.backward = true;
    op_rope(&w.ops, &back);
    slopes("dx", rope_in, back.x, none, rope_loss);
    world_guarded(&w);
}

/* ---- attention ------------------------------------------------------------------------------- */

static struct attention_args attention;

static double attention_loss(void)
{
    op_attention(&w.ops, &attention);
    return dot(attention.o, weigh);
}

/* Three sequences: all keys are queries; queries are the last of the keys; one query. */
static void attention_case(int64_t heads, int64_t groups, int64_t window, float p, float cap)
{
    enum { D = 5, n = 9, nk = 19 };
    static uint64_t stream;
    begin(++stream);
    attention = (struct attention_args){.q = world_3d(&w, 1, n, heads, D, 2),
                                        .k = world_3d(&w, 1, nk, groups, D, 1),
                                        .v = world_3d(&w, 1, nk, groups, D, 3),
                                        .q_start = world_ints(&w, 4, (const int32_t[]){0, 5, 8, 9}),
                                        .k_start = world_ints(&w, 3, (const int32_t[]){1, 14, 7}),
                                        .k_len = world_ints(&w, 3, (const int32_t[]){5, 5, 6}),
                                        .max_len = 7,
                                        .window = window,
                                        .scale = 0.4f,
                                        .cap = cap,
                                        .drop = {.p = p, .seed = 9, .sub = 5, .row0 = 11}};
    attention.o = like(attention.q, 1);
    attention.lse = world_2d(&w, 1, heads, n, 2);
    weigh = world_3d(&w, 1, n, heads, D, 0);
    attention_loss();
    struct attention_bwd_args b = {.fwd = attention,
                                   .dout = weigh,
                                   .dq = like(attention.q, 0),
                                   .dk = like(attention.k, 2),
                                   .dv = like(attention.v, 1)};
    op_attention_bwd(&w.ops, &b);
    slopes("dq", attention.q, b.dq, none, attention_loss);
    slopes("dk", attention.k, b.dk, none, attention_loss);
    slopes("dv", attention.v, b.dv, none, attention_loss);
    world_guarded(&w);
}

static void attention_bwd(void)
{
    attention_case(2, 2, 0, 0, 0);
    attention_case(4, 2, 0, 0, 0.7f);
    attention_case(3, 1, 3, 0, 0);
}

/* Parts of the keys: all seen, some, none at all, none by the first queries; a window. */
static void attention_part_case(uint64_t stream, int64_t window, float p)
{
    enum { D = 4, n = 10, nk = 15, H = 2 };
    begin(stream);
    attention =
        (struct attention_args){.q = world_3d(&w, 1, n, H, D, 2),
                                .k = world_3d(&w, 1, nk, 1, D, 1),
                                .v = world_3d(&w, 1, nk, 1, D, 3),
                                .q_start = world_ints(&w, 5, (const int32_t[]){0, 3, 6, 7, 10}),
                                .k_start = world_ints(&w, 4, (const int32_t[]){1, 12, 7, 8}),
                                .k_len = world_ints(&w, 4, (const int32_t[]){5, 2, 0, 3}),
                                .ahead = world_ints(&w, 4, (const int32_t[]){3, 1, 4, -1}),
                                .drop_row = world_ints(&w, 4, (const int32_t[]){40, 7, 0, 90}),
                                .drop_key = world_ints(&w, 4, (const int32_t[]){0, 9, 0, 3}),
                                .head0 = 3,
                                .all_heads = 6,
                                .max_len = 20,
                                .window = window,
                                .scale = 0.4f,
                                .drop = {.p = p, .seed = 9, .sub = 5, .row0 = 11}};
    attention.o = like(attention.q, 1);
    attention.lse = world_2d(&w, 1, H, n, 2);
    weigh = world_3d(&w, 1, n, H, D, 0);
    attention_loss();
    struct attention_bwd_args b = {.fwd = attention,
                                   .dout = weigh,
                                   .dq = like(attention.q, 0),
                                   .dk = like(attention.k, 2),
                                   .dv = like(attention.v, 1)};
    op_attention_bwd(&w.ops, &b);
    slopes("dq", attention.q, b.dq, none, attention_loss);
    slopes("dk", attention.k, b.dk, none, attention_loss);
    slopes("dv", attention.v, b.dv, none, attention_loss);
    /* query 6 has no keys, query 7 sees none of three */
    T_CHECK(world_get(attention.o, 6 * H * D) == 0 && world_get(attention.o, 7 * H * D) == 0);
    T_CHECK(world_get(attention.lse, 6) == -INFINITY && world_get(attention.lse, 7) == -INFINITY);
    T_CHECK(world_get(attention.o, 8 * H * D) != 0);
    world_guarded(&w);
}

static void attention_bwd_of_parts(void)
{
    attention_part_case(6, 0, 0);
    attention_part_case(7, 4, 0);
    attention_part_case(8, 0, 0.3f);
}

static void attention_bwd_with_dropout(void)
{
    attention_case(2, 1, 0, 0.3f, 0);
    attention_case(2, 2, 2, 0.3f, 1.2f);
}

/* ---- cross-entropy --------------------------------------------------------------------------- */

enum { XENT_N = 6, XENT_V = 9 };
static struct xent_stats_args stats;
static struct xent_loss_args xent;

static double xent_total(void)
{
    world_set(xent.total, 0, 0);
    op_xent_stats(&w.ops, &stats);
    op_xent_loss(&w.ops, &xent);
    return world_get(xent.total, 0) * (double)xent.scale;
}

static void begin_xent(uint64_t stream)
{
    const int64_t one = 1, rows = XENT_N;
    begin(stream);
    stats = (struct xent_stats_args){.logits = world_2d(&w, 2, XENT_N, XENT_V, 1),
                                     .label = world_ids(&w, XENT_N, XENT_V),
                                     .max = world_1d(&w, 1, XENT_N),
                                     .sum = world_1d(&w, 1, XENT_N),
                                     .target = world_1d(&w, 1, XENT_N)};
    xent = (struct xent_loss_args){.logits = stats.logits,
                                   .label = stats.label,
                                   .max = stats.max,
                                   .sum = stats.sum,
                                   .target = stats.target,
                                   .scale = 0.3f,
                                   .loss = world_1d(&w, 1, XENT_N)};
    xent.total = world_poisoned(&w, DTYPE_F64, 0, 1, &one);
    xent.mask = world_poisoned(&w, DTYPE_F32, 0, 1, &rows);
    const double mask[XENT_N] = {1, 0, 1, 0.5, 1, 1};
    for (int i = 0; i < XENT_N; i++)
        world_set(xent.mask, i, mask[i]);
}

static struct tensor uncapped;

static double capped_total(void)
{
    for (int64_t i = 0; i < tensor_count(uncapped); i++)
        world_set(xent.logits, i, world_get(uncapped, i));
    op_cap(&w.ops, &(struct cap_args){.x = xent.logits, .cap = 1.5f});
    return xent_total();
}

/* Of what went into the cap. */
static void xent_grad_through_a_cap(void)
{
    begin_xent(3);
    uncapped = copy_of(xent.logits);
    capped_total();
    struct xent_loss_args backward = xent;
    backward.grad = true;
    backward.cap = 1.5f;
    backward.logits = copy_of(xent.logits);
    op_xent_loss(&w.ops, &backward);
    slopes("dlogits", uncapped, backward.logits, none, capped_total);
    world_guarded(&w);
}

static void xent_grad(void)
{
    begin_xent(1);
    struct tensor logits = stats.logits;
    struct xent_loss_args backward = xent;
    xent_total();
    backward.grad = true;
    backward.logits = copy_of(logits);
    op_xent_loss(&w.ops, &backward);
    slopes("dlogits", logits, backward.logits, none, xent_total);
    world_guarded(&w);
}

/* The vocabulary over two ranks: the parts' statistics, reduced by hand, give the same gradient. */
static void xent_grad_of_a_split_vocabulary(void)
{
    enum { CUT = 4 };
    begin_xent(2);
    struct xent_loss_args whole = xent;
    xent_total();
    whole.grad = true;
    whole.logits = copy_of(stats.logits);
    op_xent_loss(&w.ops, &whole);
    struct xent_stats_args part[2] = {stats, stats};
    for (int r = 0; r < 2; r++) {
        struct tensor cols = tensor_cols(stats.logits, r ? CUT : 0, r ? XENT_V - CUT : CUT);
        part[r].logits = copy_of(cols);
        part[r].first = r ? CUT : 0;
        part[r].max = like(stats.max, 0);
        part[r].sum = like(stats.sum, 0);
        part[r].target = like(stats.target, 0);
        op_xent_stats(&w.ops, &part[r]);
    }
    for (int64_t i = 0; i < XENT_N; i++) {
        double max = fmax(world_get(part[0].max, i), world_get(part[1].max, i));
        world_set(part[0].max, i, max);
        world_set(part[1].max, i, max);
    }
    for (int r = 0; r < 2; r++) {
        part[r].max_given = true;
        op_xent_stats(&w.ops, &part[r]);
    }
    for (int64_t i = 0; i < XENT_N; i++) {
        T_NEAR(world_get(part[0].sum, i) + world_get(part[1].sum, i), world_get(xent.sum, i),
               1e-12);
        T_NEAR(world_get(part[0].target, i) + world_get(part[1].target, i),
               world_get(xent.target, i), 1e-12);
    }
    for (int r = 0; r < 2; r++) {
        struct xent_loss_args half = xent;
        half.logits = part[r].logits;
        half.first = part[r].first;
        half.grad = true;
        op_xent_loss(&w.ops, &half);
        for (int64_t i = 0; i < tensor_count(half.logits); i++) {
            int64_t width = half.logits.size[1];
            int64_t at = i / width * XENT_V + half.first + i % width;
            T_NEAR(world_get(half.logits, i), world_get(whole.logits, at), 1e-12);
        }
    }
    world_guarded(&w);
}

T_MAIN(T_CASE(embed_bwd), T_CASE(embed_shard_bwd), T_CASE(norm_bwd), T_CASE(matmul_plain),
       T_CASE(matmul_gelu), T_CASE(glu_bwd), T_CASE(rope_bwd), T_CASE(attention_bwd),
       T_CASE(attention_bwd_with_dropout), T_CASE(attention_bwd_of_parts), T_CASE(xent_grad),
       T_CASE(xent_grad_through_a_cap), T_CASE(xent_grad_of_a_split_vocabulary))

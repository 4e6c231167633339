/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/train/ops/twins.h"

#include <math.h>
#include <string.h>

#include "tests/train/ops/twins_pieces.h"
#include "train/ops/segments.h"

static const struct tensor none;

/* ---- embed: n C V ---------------------------------------------------------------------------- */

/* Ids below, and as many above, those of a part of the vocabulary. */
enum { ELSEWHERE = 4 };

static void make_embed(struct world *w, struct call *c, const int64_t *d, uint32_t bits)
{
    struct embed_args *a = &c->u.embed;
    c->op = OP_EMBED;
    c->tolerance = 1e-6;
    a->y = out(c, poison_2d(w, d[0], d[1], gap(bits, 0)));
    a->shard = bit(bits, 7);
    a->first = a->shard ? ELSEWHERE : 0;
    a->id = world_ids(w, d[0], d[2] + 2 * a->first);
    a->tok = world_2d(w, 1, d[2], d[1], gap(bits, 1));
    a->scale = bit(bits, 8) ? 2.5 : 0;
    a->drop = dropout(w, bits, 4);
    a->noise = bit(bits, 6) ? 0.5f : 0;
    if (bit(bits, 5)) {
        a->pos = world_2d(w, 1, 9, d[1], gap(bits, 2));
        a->position = world_ids(w, d[0], 9);
    }
}

static void make_embed_bwd(struct world *w, struct call *c, const int64_t *d, uint32_t bits)
{
    struct embed_bwd_args *a = &c->u.embed_bwd;
    c->op = OP_EMBED_BWD;
    c->tolerance = 2e-6;
    a->dy = world_2d(w, 1, d[0], d[1], gap(bits, 0));
    a->drop = dropout(w, bits, 4);
    a->shard = bit(bits, 7);
    a->first = a->shard ? ELSEWHERE : 0;
    if (!bit(bits, 6)) {
        a->id = world_ids(w, d[0], d[2] + 2 * a->first);
        a->dtok = out(c, world_2d(w, 1, d[2], d[1], gap(bits, 1)));
        a->scale = bit(bits, 8) ? 2.5 : 0;
    }
    if (bit(bits, 5)) {
        a->dpos = out(c, world_2d(w, 1, 9, d[1], gap(bits, 2)));
        a->position = world_ids(w, d[0], 9);
    }
}

/* ---- norm: n C ------------------------------------------------------------------------------- */

static void make_norm(struct world *w, struct call *c, const int64_t *d, uint32_t bits)
{
    struct norm_args *a = &c->u.norm;
    c->op = OP_NORM;
    c->tolerance = d[1] < 8 ? 1e-3 : 4e-6; /* two numbers nearly the same lose their digits */
    a->kind = bit(bits, 4) ? NORM_RMS : NORM_LAYER;
    a->eps = 1e-5f;
    a->less_one = bit(bits, 10);
    a->y = out(c, poison_2d(w, d[0], d[1], gap(bits, 0)));
    a->x = world_2d(w, 1, d[0], d[1], gap(bits, 1));
    a->w = world_1d(w, 1, d[1]);
    a->rstd = out(c, poison_1d(w, d[0]));
    if (!bit(bits, 4))
        a->mean = out(c, poison_1d(w, d[0]));
    if (bit(bits, 5))
        a->b = world_1d(w, 1, d[1]);
    if (bit(bits, 6)) {
        a->a = world_2d(w, 1, d[0], d[1], gap(bits, 2));
        a->r = out(c, bit(bits, 8) ? a->x : poison_2d(w, d[0], d[1], gap(bits, 3)));
        a->bias = bit(bits, 9) ? world_1d(w, 1, d[1]) : none;
        a->drop = dropout(w, bits, 7);
    }
}

static void make_norm_bwd(struct world *w, struct call *c, const int64_t *d, uint32_t bits)
{
    struct norm_bwd_args *a = &c->u.norm_bwd;
    c->op = OP_NORM_BWD;
    c->tolerance = 1e-5;
    a->kind = bit(bits, 4) ? NORM_RMS : NORM_LAYER;
    a->dr = out(c, world_2d(w, 1, d[0], d[1], gap(bits, 0)));
    a->dy = world_2d(w, 1, d[0], d[1], gap(bits, 1));
    a->r = world_2d(w, 1, d[0], d[1], gap(bits, 2));
    a->rstd = world_1d(w, 1, d[0]);
    a->mean = bit(bits, 4) ? none : world_1d(w, 0.1, d[0]);
    a->less_one = bit(bits, 10);
    a->w = world_1d(w, 1, d[1]);
    a->dw = out(c, world_1d(w, 1, d[1]));
    if (bit(bits, 5))
        a->db = out(c, world_1d(w, 1, d[1]));
    if (bit(bits, 6)) {
        a->drop = dropout(w, bits, 7);
        a->da =
            bit(bits, 7) || bit(bits, 8) ? out(c, poison_2d(w, d[0], d[1], gap(bits, 3))) : a->dr;
        a->dbias = bit(bits, 9) ? out(c, world_1d(w, 1, d[1])) : none;
    }
}

/* ---- matmul: n O I --------------------------------------------------------------------------- */

static enum act act_of(uint32_t bits)
{
    return bit(bits, 5) ? bit(bits, 6) ? ACT_GELU_ERF : ACT_GELU_TANH : ACT_NONE;
}

static void make_forward(struct world *w, struct call *c, const int64_t *d, uint32_t bits)
{
    struct matmul_args *a = &c->u.matmul;
    c->op = OP_MATMUL;
    c->tolerance = 1e-5;
    *a = (struct matmul_args){.y = out(c, poison_2d(w, d[0], d[1], gap(bits, 0))),
                              .tb = true,
                              .a = world_2d(w, 1, d[0], d[2], gap(bits, 1)),
                              .b = world_2d(w, 1 / sqrt((double)d[2]), d[1], d[2], gap(bits, 2)),
                              .act = act_of(bits)};
    if (bit(bits, 4))
        a->bias = world_1d(w, 1, d[1]);
    if (a->act != ACT_NONE && bit(bits, 7))
        a->pre = out(c, poison_2d(w, d[0], d[1], gap(bits, 3)));
}

/* dx [n,I] = dy [n,O] w [O,I] */
static void make_dgrad(struct world *w, struct call *c, const int64_t *d, uint32_t bits)
{
    struct matmul_args *a = &c->u.matmul;
    c->op = OP_MATMUL;
    c->tolerance = 1e-5;
    *a = (struct matmul_args){.y = out(c, poison_2d(w, d[0], d[2], gap(bits, 0))),
                              .a = world_2d(w, 1, d[0], d[1], gap(bits, 1)),
                              .b = world_2d(w, 1 / sqrt((double)d[1]), d[1], d[2], gap(bits, 2)),
                              .act = act_of(bits),
                              .act_bwd = act_of(bits) != ACT_NONE};
    if (a->act_bwd)
        a->pre = world_2d(w, 2, d[0], d[2], gap(bits, 3));
}

/* dw [O,I] += dy [n,O]^T x [n,I] */
static void make_wgrad(struct world *w, struct call *c, const int64_t *d, uint32_t bits)
{
    struct matmul_args *a = &c->u.matmul;
    c->op = OP_MATMUL;
    c->tolerance = 1e-5;
    *a = (struct matmul_args){.y = out(c, world_2d(w, 1, d[1], d[2], gap(bits, 0))),
                              .a = world_2d(w, 1, d[0], d[1], gap(bits, 1)),
                              .b = world_2d(w, 1, d[0], d[2], gap(bits, 2)),
                              .ta = true,
                              .accumulate = true};
    if (bit(bits, 4))
        a->dbias = out(c, world_1d(w, 1, d[1]));
}

/* m n k, any orientation */
static void make_product(struct world *w, struct call *c, const int64_t *d, uint32_t bits)
{
    struct matmul_args *a = &c->u.matmul;
    bool ta = bit(bits, 4), tb = bit(bits, 5);
    c->op = OP_MATMUL;
    c->tolerance = 1e-5;
    *a = (struct matmul_args){.ta = ta, .tb = tb, .accumulate = bit(bits, 6)};
    a->y = a->accumulate ? world_2d(w, 1, d[0], d[1], gap(bits, 0))
                         : poison_2d(w, d[0], d[1], gap(bits, 0));
    out(c, a->y);
    a->a = world_2d(w, 1, ta ? d[2] : d[0], ta ? d[0] : d[2], gap(bits, 1));
    a->b = world_2d(w, 1, tb ? d[1] : d[2], tb ? d[2] : d[1], gap(bits, 2));
}

/* ---- cross-entropy: n V ---------------------------------------------------------------------- */

/* Minus infinity in front of the last number, or in every place; a NaN in some rows. */
static void spoil_row(struct tensor logits, int64_t row)
{
    int64_t width = logits.size[1], low = row % 2 ? width : width - 1;
    for (int64_t j = 0; j < low; j++)
        world_set(logits, row * width + j, -INFINITY);
    if (row % 3 == 2)
        world_set(logits, row * width, NAN);
}

static void make_stats(struct world *w, struct call *c, const int64_t *d, uint32_t bits)
{
    struct xent_stats_args *a = &c->u.xent_stats;
    c->op = OP_XENT_STATS;
    a->logits = world_2d(w, 4, d[0], d[1], gap(bits, 0));
    a->first = bit(bits, 4) ? 5 : 0;
    a->label = world_ids(w, d[0], d[1] + 2 * a->first);
    a->max_given = bit(bits, 5);
    a->max = out(c, a->max_given ? world_1d(w, 4, d[0]) : poison_1d(w, d[0]));
    within(c, 0, 0);
    a->sum = out(c, poison_1d(w, d[0]));
    within(c, 2e-6, 0);
    a->target = out(c, poison_1d(w, d[0]));
    within(c, 0, 0);
    for (int64_t i = 0; i < d[0]; i++) {
        if (a->max_given)
            world_set(a->max, i, 21);
        if (bit(bits, 6))
            spoil_row(a->logits, i);
    }
}

/* What xent_loss writes as xent_stats does. */
static void make_alone(struct call *c, struct xent_loss_args *a)
{
    out(c, a->max);
    within(c, 0, 0);
    out(c, a->sum);
    within(c, 2e-6, 0);
    out(c, a->target);
    within(c, 0, 0);
}

static void make_loss(struct world *w, struct call *c, const int64_t *d, uint32_t bits)
{
    struct xent_loss_args *a = &c->u.xent_loss;
    c->op = OP_XENT_LOSS;
    a->logits = world_2d(w, 4, d[0], d[1], gap(bits, 0));
    a->first = bit(bits, 4) ? 5 : 0;
    a->label = world_ids(w, d[0], d[1] + 2 * a->first);
    if (bit(bits, 6) && d[0])
        world_set(a->logits, d[1] - 1, NAN); /* in a row without weight */
    a->max = poison_1d(w, d[0]);
    a->sum = poison_1d(w, d[0]);
    a->target = poison_1d(w, d[0]);
    a->alone = bit(bits, 8);
    if (a->alone)
        make_alone(c, a);
    else
        op_xent_stats(&w->ops, &(struct xent_stats_args){.logits = a->logits,
                                                         .label = a->label,
                                                         .first = a->first,
                                                         .max = a->max,
                                                         .sum = a->sum,
                                                         .target = a->target});
    a->mask = poison_1d(w, d[0]);
    for (int64_t i = 0; i < d[0]; i++)
        world_set(a->mask, i, bit(bits, 6) ? (double)(i % 3) * 0.5 : 1);
    a->loss = out(c, poison_1d(w, d[0]));
    within(c, 1e-6, 1e-7);
    a->total = out(c, one(w, DTYPE_F64, 1.5));
    within(c, a->alone ? 1e-6 : 1e-12, 1e-12);
    a->scale = 0.125f;
    if (bits % 3 == 1) {
        a->factor = one(w, DTYPE_F64, 64);
        a->divisor = one(w, DTYPE_F64, bits % 2 ? 0 : 3);
    }
    a->cap = bit(bits, 7) ? 9 : 0; /* of logits below it */
    a->grad = bit(bits, 5);
    out(c, a->logits);
    within(c, a->alone ? 6e-6 : 3e-6, 1e-30);
}

/* ---- the optimizer and copies: n; rows width ------------------------------------------------- */

/* Of unlike lengths round the op's first element, one by one towards the end. */
static struct tensor segments(struct world *w, int64_t n, int64_t *ret_first)
{
    enum { MOST = 40 };
    struct update_segment s[MOST] = {{0}};
    for (int64_t i = 0, at = 0; i < MOST; i++) {
        s[i].begin = at;
        s[i].kind = (int32_t)((i + n) % 3);
        at += i < 20 ? 1 + n / 12 + i : 1 + i % 3;
    }
    *ret_first = n / 9;
    struct tensor t = world_poisoned(w, DTYPE_I32, 0, 2, (const int64_t[]){MOST, SEGMENT_INTS});
    memcpy(t.data, s, sizeof(s));
    return t;
}

static void make_adamw(struct world *w, struct call *c, const int64_t *d, uint32_t bits)
{
    struct adamw_args *a = &c->u.adamw;
    c->op = OP_ADAMW;
    *a = (struct adamw_args){.beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8};
    double number = bit(bits, 7) ? 12345 : 1 + bits % 3;
    a->values = world_values(w, step_values_make(3e-4, 0.1, number, a->beta1, a->beta2));
    if (bit(bits, 8))
        a->segments = segments(w, d[0], &a->first);
    a->p = out(c, world_1d(w, 0.02, d[0]));
    within(c, 2e-7, 2e-9); /* steps of up to 0.01 */
    a->g = world_1d(w, 1e-3, d[0]);
    a->m = out(c, world_1d(w, 1e-3, d[0]));
    within(c, 2e-7, 1e-10);
    a->v = out(c, world_1d(w, 1e-6, d[0]));
    within(c, 5e-7, 1e-30);
    for (int64_t i = 0; i < d[0]; i++)
        world_set(a->v, i, fabs(world_get(a->v, i)) + 1e-8);
    if (bit(bits, 4))
        a->factor = one(w, DTYPE_F64, 0.37);
    if (bit(bits, 5))
        a->skip = one(w, DTYPE_I32, bit(bits, 6));
}

static void make_sgd(struct world *w, struct call *c, const int64_t *d, uint32_t bits)
{
    struct sgd_args *a = &c->u.sgd;
    c->op = OP_SGD;
    *a = (struct sgd_args){.momentum = 0.9};
    a->values = world_values(w, step_values_make(3e-2, 0.1, 1, 0, 0));
    if (bit(bits, 8))
        a->segments = segments(w, d[0], &a->first);
    a->p = out(c, world_1d(w, 0.02, d[0]));
    within(c, 2e-7, 2e-9);
    a->g = world_1d(w, 1e-3, d[0]);
    if (bit(bits, 7)) {
        a->m = out(c, world_1d(w, 1e-3, d[0]));
        within(c, 5e-7, 1e-9);
    }
    if (bit(bits, 4))
        a->factor = one(w, DTYPE_F64, 0.37);
    if (bit(bits, 5))
        a->skip = one(w, DTYPE_I32, bit(bits, 6));
}

static void make_sumsq(struct world *w, struct call *c, const int64_t *d, uint32_t bits)
{
    (void)bits;
    c->op = OP_SUMSQ;
    c->u.sumsq.total = out(c, one(w, DTYPE_F64, 0.25));
    within(c, 1e-12, 0);
    c->u.sumsq.x = world_1d(w, 3, d[0]);
}

static const enum dtype types[] = {DTYPE_F32, DTYPE_F32, DTYPE_F64, DTYPE_I32};

static void make_fill(struct world *w, struct call *c, const int64_t *d, uint32_t bits)
{
    c->op = OP_FILL;
    c->u.fill.value = -3;
    c->u.fill.y = out(c, world_poisoned(w, types[bits >> 4 & 3], gap(bits, 0), 2, d));
    within(c, 0, 0);
}

static void make_copy(struct world *w, struct call *c, const int64_t *d, uint32_t bits)
{
    struct copy_args *a = &c->u.copy;
    c->op = OP_COPY;
    enum dtype type = types[bits >> 5 & 3];
    a->accumulate = bit(bits, 4) && type == DTYPE_F32;
    a->x = world_poisoned(w, type, gap(bits, 0), 2, d);
    for (int64_t i = 0; i < d[0] * d[1]; i++)
        world_set(a->x, i, (double)i - 7);
    a->y = out(c, a->accumulate ? world_2d(w, 1, d[0], d[1], gap(bits, 1))
                                : world_poisoned(w, type, gap(bits, 1), 2, d));
    within(c, 0, 0);
}

/* Sizes of the 124 M model at 4 x 256 tokens (head in chunks), and of one with C = 256. */
const struct twin twins[] = {
    {"embed", make_embed, "n C V", {301, 520, 37}, true, {{32, {1024, 768, 50257}}}},
    {"embed_bwd", make_embed_bwd, "n C V", {301, 520, 37}, true, {{32, {1024, 768, 50257}}}},
    {"norm",
     make_norm,
     "n C",
     {301, 1003},
     true,
     {{96, {1024, 768}}, {224, {1024, 768}}, {80, {1024, 256}}}},
    {"norm_bwd",
     make_norm_bwd,
     "n C",
     {301, 520},
     true,
     {{96, {1024, 768}}, {224, {1024, 768}}, {80, {1024, 256}}}},
    {"forward",
     make_forward,
     "n O I",
     {100, 150, 90},
     false,
     {{16, {1024, 2304, 768}},
      {0, {1024, 768, 768}},
      {176, {1024, 3072, 768}},
      {0, {1024, 768, 3072}},
      {0, {320, 50257, 768}},
      {0, {1024, 768, 256}},
      {176, {1024, 1024, 256}},
      {0, {1024, 256, 1024}},
      {0, {1, 768, 768}},
      {0, {1, 50257, 768}}}},
    {"dgrad",
     make_dgrad,
     "n O I",
     {100, 150, 90},
     false,
     {{0, {1024, 2304, 768}},
      {0, {1024, 768, 768}},
      {0, {1024, 3072, 768}},
      {32, {1024, 768, 3072}},
      {0, {320, 50257, 768}},
      {0, {1024, 768, 256}},
      {0, {1024, 1024, 256}},
      {32, {1024, 256, 1024}}}},
    {"wgrad",
     make_wgrad,
     "n O I",
     {150, 100, 90},
     false,
     {{16, {1024, 2304, 768}},
      {0, {1024, 768, 768}},
      {16, {1024, 3072, 768}},
      {0, {1024, 768, 3072}},
      {0, {320, 50257, 768}},
      {16, {1024, 768, 256}},
      {16, {1024, 1024, 256}},
      {0, {1024, 256, 1024}}}},
    {"product", make_product, "m n k", {60, 60, 1700}, false, {{32, {1024, 1024, 1024}}}},
    {"glu", make_glu, "n F", {301, 520}, true, {{0, {1024, 2048}}}},
    {"glu_bwd", make_glu_bwd, "n F", {301, 520}, true, {{0, {1024, 2048}}}},
    {"rope", make_rope, "n D H", {301, 140, 5}, true, {{0, {1024, 64, 12}}}},
    {"attention",
     make_attention,
     "s T K H/K D queries",
     {3, 150, 3, 3, 70, 9},
     false,
     {{0, {4, 256, 12, 1, 64}},
      {64, {4, 256, 12, 1, 64}},
      {0, {1, 1024, 12, 1, 64}},
      {0, {1, 1024, 8, 4, 128}},
      {0, {4, 256, 4, 1, 64}},
      {0, {1, 1024, 12, 1, 64, 1}}}},
    {"attention_bwd",
     make_attention_bwd,
     "s T K H/K D queries",
     {3, 150, 3, 3, 70, 9},
     false,
     {{0, {4, 256, 12, 1, 64}},
      {64, {4, 256, 12, 1, 64}},
      {0, {1, 1024, 12, 1, 64}},
      {0, {1, 1024, 8, 4, 128}},
      {0, {4, 256, 4, 1, 64}}}},
    {"xent_stats", make_stats, "n V", {40, 3000}, true, {{0, {320, 50257}}, {0, {1024, 2000}}}},
    {"xent_loss", make_loss, "n V", {40, 3000}, true, {{32, {320, 50257}}, {32, {1024, 2000}}}},
    {"adamw", make_adamw, "n", {300000}, true, {{16, {16 << 20}}, {16, {1 << 20}}}},
    {"sgd", make_sgd, "n", {300000}, true, {{144, {16 << 20}}, {16, {1 << 20}}}},
    {"sumsq", make_sumsq, "n", {300000}, true, {{0, {16 << 20}}}},
    {"fill", make_fill, "rows width", {60, 2000}, true, {{0, {1024, 768}}}},
    {"copy", make_copy, "rows width", {60, 2000}, true, {{0, {1024, 768}}, {0, {1 << 14, 1024}}}},
    {"cap", make_cap, "n V", {40, 3000}, true, {{0, {320, 50257}}}, true},
    {"head_norm", make_head_norm, "n D H", {60, 140, 5}, true, {{32, {1024, 128, 12}}}, true},
    {"head_norm_bwd",
     make_head_norm_bwd,
     "n D H",
     {60, 140, 5},
     true,
     {{0, {1024, 128, 12}}},
     true},
    {"route", make_route, "n E k", {301, 140, 9}, true, {{0, {4096, 64, 8}}}, true},
    {"route_bwd", make_route_bwd, "n E k", {301, 140, 9}, true, {{112, {4096, 64, 8}}}, true},
    {"route_loss", make_route_loss, "n E", {301, 140}, true, {{0, {4096, 64}}}, true},
    {"permute", make_permute, "n C k", {100, 520, 5}, true, {{0, {1024, 768, 2}}}, true},
    {"permute_bwd", make_permute_bwd, "n C k", {100, 520, 5}, true, {{0, {1024, 768, 2}}}, true},
    {"unpermute", make_unpermute, "n C k", {100, 520, 5}, true, {{0, {1024, 768, 2}}}, true},
    {"unpermute_bwd",
     make_unpermute_bwd,
     "n C k",
     {100, 520, 5},
     true,
     {{0, {1024, 768, 2}}},
     true},
    {"grouped",
     make_grouped,
     "n O I E",
     {200, 150, 150, 7},
     false,
     {{0, {2048, 512, 256, 8}}},
     true},
    {"grouped_bwd",
     make_grouped_bwd,
     "n O I E",
     {200, 150, 150, 7},
     false,
     {{0, {2048, 512, 256, 8}}},
     true},
    {"gate", make_gate, "n F", {301, 520}, true, {{0, {1024, 2048}}}, true},
    {"gate_bwd", make_gate_bwd, "n F", {301, 520}, true, {{0, {1024, 2048}}}, true},
};
const int twin_count = sizeof(twins) / sizeof(twins[0]);

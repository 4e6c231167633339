/* SPDX-License-Identifier: Apache-2.0 */

/* Forms of ops that only some families have: vectors compute what plain C does. */

#include <math.h>

#include "tests/t.h"
#include "tests/train/ops/world.h"
#include "train/ops/blocks.h"

enum { MOST = 400000 };

static struct world w;

/* Everything that a case writes, one tensor after the other. */
struct output {
    double at[MOST];
    size_t n;
};

static void keep(struct output *o, struct tensor t)
{
    for (int64_t i = 0; i < tensor_count(t); i++) {
        T_CHECK(o->n < MOST);
        o->at[o->n++] = world_get(t, i);
    }
}

static struct tensor like(struct tensor t)
{
    return world_poisoned(&w, t.dtype, 2, t.rank, t.size);
}

/* A case with each table on the same numbers. */
static void compare(void (*run)(struct output *o, int64_t n), int64_t n, double tolerance)
{
    static struct output plain, fast;
    for (int i = 0; i < 2; i++) {
        struct output *o = i ? &fast : &plain;
        world_close(&w);
        world_open(&w, DTYPE_F32, i ? NULL : "ref", 2, 1 << 24);
        world_clear(&w, (uint64_t)n);
        o->n = 0;
        run(o, n);
        world_guarded(&w);
    }
    T_EQ(fast.n, plain.n);
    for (size_t k = 0; k < fast.n; k++)
        T_NEAR(fast.at[k], plain.at[k], tolerance * (1 + fabs(plain.at[k])));
}

/* n queries of all keys; windows and dropout in every other case; few queries of many keys. */
static void attention(struct output *o, int64_t n)
{
    int32_t keys = (int32_t)(n < 4 ? 300 : n), queries = (int32_t)n;
    struct attention_args a = {.q = world_3d(&w, 2, n, 4, 20, 1),
                               .k = world_3d(&w, 2, keys, 2, 20, 3),
                               .v = world_3d(&w, 1, keys, 2, 20, 0),
                               .q_start = world_ints(&w, 2, (const int32_t[]){0, queries}),
                               .k_start = world_ints(&w, 1, (const int32_t[]){0}),
                               .k_len = world_ints(&w, 1, &keys),
                               .max_len = keys,
                               .window = n % 2 ? 60 : 0,
                               .scale = 0.2f,
                               .cap = 1.5f,
                               .drop = {.p = n % 3 ? 0 : 0.3f, .seed = 9, .sub = 5, .row0 = 11}};
    a.o = like(a.q);
    a.lse = world_2d(&w, 1, 4, n, 2);
    op_attention(&w.ops, &a);
    struct attention_bwd_args b = {.fwd = a,
                                   .dout = world_3d(&w, 1, n, 4, 20, 2),
                                   .dq = like(a.q),
                                   .dk = like(a.k),
                                   .dv = like(a.v)};
    op_attention_bwd(&w.ops, &b);
    keep(o, a.o);
    keep(o, a.lse);
    keep(o, b.dq);
    keep(o, b.dk);
    keep(o, b.dv);
}

static void soft_caps_of_scores(void)
{
    static const int64_t n[] = {1, 3, 40, 63, 150, 401};
    for (size_t i = 0; i < sizeof(n) / sizeof(n[0]); i++)
        compare(attention, n[i], 3e-5);
}

static void gates(struct output *o, int64_t n)
{
    for (int i = 0; i < 2; i++) {
        enum glu act = i ? GLU_GELU_ERF : GLU_GELU_TANH;
        struct tensor x = world_2d(&w, 3, 9, 2 * n, 1), dy = world_2d(&w, 1, 9, n, 3);
        struct tensor y = like(dy), dx = like(x);
        op_glu(&w.ops, &(struct glu_args){.y = y, .x = x, .act = act});
        op_glu_bwd(&w.ops, &(struct glu_bwd_args){.dx = dx, .dy = dy, .x = x, .act = act});
        keep(o, y);
        keep(o, dx);
    }
}

/* Logits, some of them near 0, through the cap and the loss. */
static void capped_loss(struct output *o, int64_t n)
{
    const int64_t one = 1, rows = 9;
    struct tensor total = world_poisoned(&w, DTYPE_F64, 0, 1, &one), x = world_2d(&w, 3, 9, n, 1);
    struct tensor mask = world_poisoned(&w, DTYPE_F32, 0, 1, &rows), id = world_ids(&w, 9, n);
    struct tensor max = world_1d(&w, 1, 9), sum = world_1d(&w, 1, 9), target = world_1d(&w, 1, 9);
    struct tensor loss = world_1d(&w, 1, 9);
    for (int64_t i = 0; i < 9; i++) {
        world_set(mask, i, i == 3 ? 0 : 1);
        world_set(x, i * n, 1e-4 * (double)(i - 4));
    }
    world_set(total, 0, 0);
    op_cap(&w.ops, &(struct cap_args){.x = x, .cap = 2});
    keep(o, x);
    op_xent_stats(&w.ops, &(struct xent_stats_args){
                              .logits = x, .label = id, .max = max, .sum = sum, .target = target});
    op_xent_loss(&w.ops, &(struct xent_loss_args){.logits = x,
                                                  .label = id,
                                                  .max = max,
                                                  .sum = sum,
                                                  .target = target,
                                                  .mask = mask,
                                                  .loss = loss,
                                                  .total = total,
                                                  .scale = 1,
                                                  .grad = true,
                                                  .cap = 2});
    keep(o, x);
    keep(o, loss);
    keep(o, total);
}

static void norms_and_embeddings(struct output *o, int64_t n)
{
    struct tensor x = world_2d(&w, 1, 13, n, 1), weight = world_1d(&w, 0.3, n), y = like(x);
    struct tensor rstd = world_1d(&w, 1, 13), dr = world_2d(&w, 1, 13, n, 2);
    struct tensor dy = world_2d(&w, 1, 13, n, 0), dw = world_1d(&w, 1, n);
    op_norm(&w.ops, &(struct norm_args){.kind = NORM_RMS,
                                        .less_one = true,
                                        .eps = 1e-3f,
                                        .y = y,
                                        .rstd = rstd,
                                        .x = x,
                                        .w = weight});
    op_norm_bwd(&w.ops, &(struct norm_bwd_args){.kind = NORM_RMS,
                                                .less_one = true,
                                                .dr = dr,
                                                .dy = dy,
                                                .r = x,
                                                .rstd = rstd,
                                                .w = weight,
                                                .dw = dw});
    keep(o, y);
    keep(o, dr);
    keep(o, dw);
    struct tensor id = world_ids(&w, 13, 5), dtok = world_2d(&w, 1, 5, n, 1);
    op_embed(&w.ops,
             &(struct embed_args){.y = y, .id = id, .tok = world_2d(&w, 1, 5, n, 3), .scale = 4.5});
    op_embed_bwd(&w.ops, &(struct embed_bwd_args){.dy = dy, .id = id, .dtok = dtok, .scale = 4.5});
    keep(o, y);
    keep(o, dtok);
}

static void other_forms(void)
{
    static const int64_t n[] = {8, 31, 100, 700};
    for (size_t i = 0; i < sizeof(n) / sizeof(n[0]); i++) {
        compare(gates, n[i], 3e-6);
        compare(capped_loss, n[i], 3e-6);
        compare(norms_and_embeddings, n[i], 2e-5);
    }
}

/* What the GPU is refused for. */
static void forms_have_names(void)
{
    struct attention_args part = {.cap = 1, .window = 3};
    T_CHECK(!ops_host_form(OP_ATTENTION, &part));
    T_CHECK(!ops_host_form(OP_NORM, &(struct norm_args){.less_one = true}));
    part.ahead = tensor_1d(NULL, DTYPE_I32, 1);
    T_STR(ops_host_form(OP_ATTENTION, &part), "parts of the keys (context parallelism)");
    T_STR(ops_host_form(OP_ATTENTION_BWD, &(struct attention_bwd_args){.fwd = part}),
          "parts of the keys (context parallelism)");
}

T_MAIN(T_CASE(soft_caps_of_scores), T_CASE(other_forms), T_CASE(forms_have_names))

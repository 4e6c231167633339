/* SPDX-License-Identifier: Apache-2.0 */

/*
 * All that differs between two steps or micro-batches changes here from one to the next: learning
 * rate, weight decay, the step's number, the clip factor, the loss scale (doubled after each
 * step), labels that count, and the rows of dropout. Gradients of a step are compared with those of
 * another rank, which has no loss scale and takes the micro-batches the other way round, and the
 * update with AdamW's formula.
 */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/mem.h"
#include "dataset/sample/batch.h"
#include "dataset/sample/feed.h"
#include "tests/t.h"
#include "tests/train/tiny.h"
#include "train/engine/step.h"
#include "train/engine/step_scalars.h"

enum { MICROS = 2, STEPS = 4, SAMPLES = STEPS * MICROS * TINY_ROWS };

static struct rank rank, plain;

/* Micro-batches have unlike numbers of labels. */
static int make_row(const void *self, uint64_t k, struct feed_row *ret, struct err *e)
{
    (void)self;
    (void)e;
    for (uint64_t i = 0; i < TINY_LENGTH; i++) {
        ret->tokens[i] = (int32_t)(t_rand(k, 2 * i) % TINY_VOCAB);
        ret->labels[i] = (int32_t)(t_rand(k, 2 * i + 1) % TINY_VOCAB);
        ret->loss_mask[i] = i > k % 5 ? 1 : 0;
        ret->position[i] = (int32_t)i;
    }
    ret->ends[0] = TINY_LENGTH;
    ret->nends = 1;
    return 0;
}

static struct loader *open_loader(struct rank *r, int64_t first)
{
    static const struct feed feed = {.row = make_row,
                                     .count = 1 << 20,
                                     .seq_length = TINY_LENGTH,
                                     .pad = -1,
                                     .name = "values",
                                     .part = "train"};
    struct batch_layout l = {.eod = -1};
    struct loader *in;
    struct err e;
    rank_share_batches(r, &l);
    T_OK(loader_create(&feed, &l, (uint64_t)first, 1, &in, &e), &e);
    return in;
}

static struct rank_config configure(struct spec s)
{
    struct rank_config c = tiny_config(s, DTYPE_F64);
    c.micros = MICROS;
    c.clip = 0.05;
    c.lr = (struct lr){.style = LR_LINEAR, .max = 0.01, .warmup = SAMPLES, .decay = 2 * SAMPLES};
    c.decay = (struct decay){.style = DECAY_LINEAR, .start = 0.01, .end = 0.5, .samples = SAMPLES};
    return c;
}

/* The gradients of the step after rank.at, without a loss scale. */
static void plain_gradients(void)
{
    struct err e;
    op_fill(&plain.ops, &(struct fill_args){.y = plain.zero.grads, .value = 0});
    memcpy(plain.zero.weights.data, rank.zero.weights.data, tensor_bytes(rank.zero.weights));
    for (int i = MICROS - 1; i >= 0; i--) {
        const struct batch *b;
        double labels = 0;
        struct loader *in = open_loader(&plain, rank.at.consumed + i * TINY_ROWS);
        T_OK(loader_next(in, &b, &e), &e);
        for (int k = 0; k < TINY_ROWS * TINY_LENGTH; k++)
            labels += (double)b->loss_mask[k];
        tiny_micro(&plain, b, 1 / (labels * MICROS));
        loader_destroy(in);
    }
}

static void same_gradients(double scale)
{
    const double *got = rank.zero.grads.data, *want = plain.zero.grads.data;
    for (int64_t k = 0; k < rank.params.elements; k++)
        T_NEAR(got[k] / scale, want[k], 1e-11 + 1e-9 * fabs(want[k]));
}

struct adam {
    double *p, *m, *v;
};

static void update(struct adam *a, double lr, double wd, int number)
{
    const struct rank_config *c = &rank.config;
    const double *g = plain.zero.grads.data;
    double sum = 0;
    for (int64_t k = 0; k < rank.params.elements; k++)
        sum += g[k] * g[k];
    double factor = c->clip / (sqrt(sum) + 1e-6);
    T_CHECK(factor < 1);
    for (int i = 0; i < rank.params.n; i++) {
        const struct param *q = &rank.params.at[i];
        for (int64_t k = q->offset; k < q->offset + q->count; k++) {
            double x = g[k] * factor;
            a->m[k] = c->beta1 * a->m[k] + (1 - c->beta1) * x;
            a->v[k] = c->beta2 * a->v[k] + (1 - c->beta2) * x * x;
            double m = a->m[k] / (1 - pow(c->beta1, number));
            double v = a->v[k] / (1 - pow(c->beta2, number));
            a->p[k] -= lr * (m / (sqrt(v) + c->eps) + (q->decay ? wd * a->p[k] : 0));
        }
    }
}

static void steps_of(struct spec s)
{
    struct err e;
    struct rank_config c = configure(s);
    T_OK(rank_open(&plain, &c, &e), &e);
    c.scale = (struct loss_scale){.first = 1024, .dynamic = true, .least = 1, .window = 1};
    T_OK(rank_open(&rank, &c, &e), &e);
    size_t n = (size_t)rank.params.elements;
    struct adam a = {mem_new(n, sizeof(double)), mem_new(n, sizeof(double)),
                     mem_new(n, sizeof(double))};
    memcpy(a.p, rank.zero.weights.data, n * sizeof(double));
    struct loader *in = open_loader(&rank, 0);
    for (int step = 1; step <= STEPS; step++) {
        struct step_result ret;
        const struct cursor at = rank.at;
        double lr = lr_at(&c.lr, at.scheduled), wd = decay_at(&c.decay, at.scheduled);
        T_NEAR(at.scale.scale, 1024 * pow(2, step - 1), 0);
        plain_gradients();
        T_OK(tiny_step(&rank, in, &ret, &e), &e);
        same_gradients(at.scale.scale);
        update(&a, lr, wd, step);
        for (size_t k = 0; k < n; k++)
            T_NEAR(((double *)rank.zero.weights.data)[k], a.p[k], 1e-9);
        memcpy(a.p, rank.zero.weights.data, n * sizeof(double));
    }
    loader_destroy(in);
    free(a.p);
    free(a.m);
    free(a.v);
    rank_close(&rank);
    rank_close(&plain);
}

static void gpt_with_dropout(void)
{
    struct spec s = tiny_gpt();
    s.hidden_dropout = s.attention_dropout = 0.2;
    steps_of(s);
}

static void mixture(void)
{
    steps_of(tiny_mixtral());
}

/* ---- steps that are issued before the one before is known -------------------------------------
 */

static void open_overflowing(struct rank *r, struct loader **ret)
{
    struct err e;
    struct spec s = tiny_gpt();
    s.hidden_dropout = 0.2;
    struct rank_config c = configure(s);
    c.real = DTYPE_F16;
    c.scale = (struct loss_scale){
        .first = 0x1p19, .dynamic = true, .least = 1, .window = 3, .hysteresis = 1};
    T_OK(rank_open(r, &c, &e), &e);
    *ret = open_loader(r, 0);
}

static void same_tensor(struct tensor a, struct tensor b)
{
    T_MEM(a.data, b.data, tensor_bytes(a));
}

/* Some of the steps overflow: what follows then is learnt a step late, and is the same. */
static void ahead_is_as_in_turn(void)
{
    enum { N = 4 * STEPS };
    struct err e;
    struct loader *in, *other;
    struct step_result turn, late;
    int skipped = 0;
    open_overflowing(&plain, &in);
    open_overflowing(&rank, &other);
    T_OK(step_issue(&rank, other, &e), &e);
    T_CHECK(!step_may_issue(&rank)); /* how long a step takes is not known */
    for (int i = 1; i <= N; i++) {
        rank.step_seconds = AHEAD_MS / 1e3;
        T_CHECK(!step_may_issue(&rank));
        rank.step_seconds /= 2;
        T_CHECK(step_may_issue(&rank));
        if (i < N)
            T_OK(step_issue(&rank, other, &e), &e);
        T_EQ(step_may_issue(&rank), i == N);
        T_OK(step_complete(&rank, &late, &e), &e);
        T_CHECK(rank.step_seconds > 0);
        T_OK(tiny_step(&plain, in, &turn, &e), &e);
        T_MEM(&plain.at, &rank.at, sizeof(rank.at));
        T_CHECK(turn.loss == late.loss && turn.lr == late.lr);
        T_CHECK(turn.skipped || turn.grad_norm == late.grad_norm);
        T_EQ(turn.skipped, late.skipped);
        skipped += turn.skipped;
    }
    T_CHECK(skipped > 1 && skipped < N / 2);
    same_tensor(plain.optim.master, rank.optim.master);
    same_tensor(plain.optim.state[0], rank.optim.state[0]);
    same_tensor(plain.optim.state[1], rank.optim.state[1]);
    loader_destroy(in);
    loader_destroy(other);
    rank_close(&plain);
    rank_close(&rank);
}

/* ---- several micro-batches in a pass -----------------------------------------------------------
 */

/* As rank_open for a GPU would. */
static void open_merged(struct rank *r, struct rank_config c, struct loader **ret)
{
    struct err e;
    struct dev_desc desc;
    T_OK(dev_host_describe(&desc, 0, 1, &e), &e);
    T_EQ(rank_merged(&c, &desc), 1);
    desc.host = false;
    c.merge_tokens = 3 * TINY_ROWS * TINY_LENGTH; /* but 3 does not divide the step */
    T_EQ(rank_merged(&c, &desc), MICROS);
    T_OK(rank_plan(r, &c, &desc, &e), &e);
    T_EQ(r->effective.micros, 1);
    T_OK(rank_bind(r, &e), &e);
    *ret = open_loader(r, 0);
}

/* Unlike numbers of labels, dropout, a norm that is clipped: as one by one. */
static void merged_is_as_one_by_one(void)
{
    struct err e;
    struct loader *in, *other;
    struct step_result one, all;
    struct spec s = tiny_gpt();
    s.hidden_dropout = s.attention_dropout = 0.2;
    struct rank_config c = configure(s);
    T_OK(rank_open(&plain, &c, &e), &e);
    in = open_loader(&plain, 0);
    open_merged(&rank, c, &other);
    for (int i = 1; i <= STEPS; i++) {
        T_OK(tiny_step(&plain, in, &one, &e), &e);
        T_OK(tiny_step(&rank, other, &all, &e), &e);
        T_NEAR(all.loss, one.loss, 1e-12);
        T_NEAR(all.grad_norm, one.grad_norm, 1e-9 * one.grad_norm);
        T_MEM(&plain.at, &rank.at, sizeof(rank.at));
        for (int64_t k = 0; k < rank.params.elements; k++)
            T_NEAR(((double *)rank.zero.weights.data)[k], ((double *)plain.zero.weights.data)[k],
                   1e-9);
    }
    loader_destroy(in);
    loader_destroy(other);
    rank_close(&plain);
    rank_close(&rank);
}

/* The seed is that of the run. */
static void seeds_differ(void)
{
    struct err e;
    struct spec s = tiny_gpt();
    struct batch b;
    double loss[2];
    s.hidden_dropout = 0.5;
    struct rank_config c = configure(s);
    tiny_batch(&b, 1);
    for (uint64_t i = 0; i < 2; i++) {
        T_OK(rank_open(&rank, &c, &e), &e);
        rank.config.seed = 70 + i; /* the same weights */
        loss[i] = tiny_loss(&rank, &b, true);
        rank_close(&rank);
    }
    T_CHECK(fabs(loss[0] - loss[1]) > 1e-6);
    batch_finish(&b);
}

T_MAIN(T_CASE(gpt_with_dropout), T_CASE(mixture), T_CASE(seeds_differ), T_CASE(ahead_is_as_in_turn),
       T_CASE(merged_is_as_one_by_one))

/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/train/engine/graph_steps.h"

#include <stdlib.h>

#include "base/core/mem.h"
#include "dataset/sample/feed.h"
#include "tests/t.h"
#include "tests/train/tiny.h"
#include "train/engine/step.h"

enum { PASSES = GRAPH_STEPS * GRAPH_MICROS, EVALUATED_AFTER = 5 };

static struct rank plain, graphs;

/* Unlike numbers of labels; a micro-batch of two rows has as many examples as its number says. */
static int make_row(const void *self, uint64_t k, struct feed_row *ret, struct err *e)
{
    const struct graph_cell *c = self;
    uint64_t all = c->documents ? k / 2 % (c->documents + 1) : 0; /* more than two */
    uint64_t first = all < TINY_LENGTH ? all : TINY_LENGTH - 1, cuts = k % 2 ? all - first : first;
    (void)e;
    for (uint64_t i = 0; i < TINY_LENGTH; i++) {
        ret->tokens[i] = (int32_t)(t_rand(k, 2 * i) % TINY_VOCAB);
        ret->labels[i] = (int32_t)(t_rand(k, 2 * i + 1) % TINY_VOCAB);
        ret->loss_mask[i] = i > k % 5 ? 1 : 0;
        ret->position[i] = (int32_t)(i < cuts ? 0 : i - cuts);
    }
    for (uint64_t i = 0; i < cuts; i++) /* examples of one token, then the rest of the row */
        ret->ends[i] = (int32_t)i + 1;
    ret->ends[cuts] = TINY_LENGTH;
    ret->nends = (uint32_t)cuts + 1;
    return 0;
}

static struct loader *open_loader(const struct rank *r, const struct graph_cell *c)
{
    static struct feed feed = {.row = make_row,
                               .count = 1 << 20,
                               .seq_length = TINY_LENGTH,
                               .pad = -1,
                               .name = "graphs",
                               .part = "train"};
    struct batch_layout l = {.eod = -1, .reset_attention_mask = c->documents > 0};
    struct loader *in;
    struct err e;
    feed.self = c;
    rank_share_batches(r, &l);
    T_OK(loader_create(&feed, &l, 0, 1, &in, &e), &e);
    return in;
}

static struct rank_config configure(const struct rank_backends *b, const struct graph_cell *c)
{
    struct spec s = c->spec;
    s.head_dim = 8; /* which a GPU's tensor cores take */
    s.hidden = s.heads * s.head_dim;
    s.ffn = 40;
    s.init_std = 0.1;
    struct rank_config r = tiny_config(s, c->real);
    r.backends = b;
    r.micros = GRAPH_MICROS;
    r.documents = c->documents > 0;
    r.recompute = c->recompute;
    r.clip = 0.05;
    r.lr = (struct lr){
        .style = LR_LINEAR, .max = 0.01, .warmup = PASSES, .decay = 2 * PASSES * TINY_ROWS};
    r.decay = (struct decay){
        .style = DECAY_LINEAR, .start = 0.01, .end = 0.5, .samples = PASSES * TINY_ROWS};
    if (c->overflow)
        r.scale = (struct loss_scale){
            .first = 0x1p24, .dynamic = true, .least = 1, .window = 3, .hysteresis = 1};
    return r;
}

static void same(struct tensor a, struct tensor b)
{
    char *x = mem_new(1, tensor_bytes(a) + 1), *y = mem_new(1, tensor_bytes(b) + 1);
    T_EQ(tensor_bytes(a), tensor_bytes(b));
    rank_fetch(&plain, x, a);
    rank_fetch(&graphs, y, b);
    T_MEM(x, y, tensor_bytes(a));
    free(x);
    free(y);
}

static void same_result(const struct step_result *a, const struct step_result *b)
{
    T_CHECK(a->loss == b->loss && a->lr == b->lr && a->balance == b->balance && a->z == b->z);
    T_CHECK(a->skipped || a->grad_norm == b->grad_norm);
    T_EQ(a->skipped, b->skipped);
    T_MEM(&plain.at, &graphs.at, sizeof(plain.at));
}

/* A step of each; `graphs` issues the next one before, where it may. */
static bool step_both(struct loader *one, struct loader *other, bool ahead)
{
    struct err e;
    struct step_result a, b;
    T_OK(tiny_step(&plain, one, &a, &e), &e);
    if (!graphs.steps_issued)
        T_OK(step_issue(&graphs, other, &e), &e);
    if (ahead)
        T_OK(step_issue(&graphs, other, &e), &e);
    T_OK(step_complete(&graphs, &b, &e), &e);
    same_result(&a, &b);
    return a.skipped;
}

static void evaluate_both(const struct graph_cell *c)
{
    struct loader *one = open_loader(&plain, c), *other = open_loader(&graphs, c);
    double a, b;
    struct err e;
    T_OK(step_evaluate(&plain, one, 4, &a, &e), &e);
    T_OK(step_evaluate(&graphs, other, 4, &b, &e), &e);
    T_CHECK(a == b && a > 0);
    loader_destroy(one);
    loader_destroy(other);
}

struct graph_outcome graph_steps(const struct rank_backends *b, const struct graph_cell *c)
{
    struct err e;
    struct rank_config config = configure(b, c);
    struct graph_outcome ret = {0};
    config.graphs = GRAPHS_OFF;
    T_OK(rank_open(&plain, &config, &e), &e);
    config.graphs = GRAPHS_ON;
    T_OK(rank_open(&graphs, &config, &e), &e);
    T_CHECK(!plain.graphs.on && graphs.graphs.on);
    struct loader *one = open_loader(&plain, c), *other = open_loader(&graphs, c);
    for (int i = 1; i <= GRAPH_STEPS; i++) {
        ret.skipped += step_both(one, other, c->ahead && i % EVALUATED_AFTER && i < GRAPH_STEPS);
        if (i % EVALUATED_AFTER == 0)
            evaluate_both(c);
    }
    same(rank_master(&plain), rank_master(&graphs));
    same(plain.zero.weights, graphs.zero.weights);
    for (int i = 0; i < plain.optim.rule->states; i++)
        same(plain.optim.state[i], graphs.optim.state[i]);
    ret.on = graphs.graphs.on;
    ret.kinds = graphs.graphs.n;
    ret.replays = graphs.graphs.replays;
    T_EQ(plain.graphs.n, 0);
    loader_destroy(one);
    loader_destroy(other);
    rank_close(&plain);
    rank_close(&graphs);
    return ret;
}

/* ---- cells ----------------------------------------------------------------------------------- */

static struct spec dropped(struct spec s)
{
    s.hidden_dropout = s.attention_dropout = 0.2;
    return s;
}

/* Each kind of passes runs once as it is; two parts of each one that trains. */
static struct graph_outcome all_replayed(const struct rank_backends *b, struct graph_cell c)
{
    struct graph_outcome o = graph_steps(b, &c);
    int kinds = c.documents ? (int)c.documents + 1 : 1, evaluations = GRAPH_STEPS / EVALUATED_AFTER;
    int runs = 2 * PASSES + 4 * evaluations;
    T_CHECK(o.on);
    T_CHECK(o.kinds >= kinds + 1 && o.kinds <= 2 * kinds);
    T_EQ(o.replays, runs - 2 * kinds - (o.kinds - kinds));
    return o;
}

void graph_dropout(const struct rank_backends *b, enum dtype real)
{
    all_replayed(b, (struct graph_cell){.spec = dropped(tiny_gpt()), .real = real});
    all_replayed(b, (struct graph_cell){.spec = dropped(tiny_gpt()), .real = real, .ahead = true});
}

void graph_overflow(const struct rank_backends *b)
{
    struct graph_cell c = {.spec = dropped(tiny_gpt()), .real = DTYPE_F16, .overflow = true};
    struct graph_outcome turn = all_replayed(b, c);
    c.ahead = true;
    struct graph_outcome late = all_replayed(b, c);
    T_CHECK(turn.skipped > 1 && turn.skipped < GRAPH_STEPS && late.skipped == turn.skipped);
}

void graph_documents(const struct rank_backends *b, enum dtype real)
{
    all_replayed(b, (struct graph_cell){.spec = tiny_llama(), .real = real, .documents = 2});
    all_replayed(b, (struct graph_cell){
                        .spec = dropped(tiny_gpt()), .real = real, .documents = 3, .ahead = true});
}

void graph_families(const struct rank_backends *b, enum dtype real)
{
    struct recompute uniform = {.kind = RECOMPUTE_UNIFORM, .layers = 1};
    all_replayed(b, (struct graph_cell){.spec = tiny_mixtral(), .real = real});
    all_replayed(b, (struct graph_cell){.spec = tiny_gemma3(), .real = real});
    all_replayed(
        b, (struct graph_cell){.spec = dropped(tiny_gpt()), .real = real, .recompute = uniform});
}

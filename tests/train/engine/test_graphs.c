/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Passes that are recorded and replayed, on a device that is the CPU and yet records calls of ops
 * with their arguments: what a pass takes from anywhere but memory would be repeated.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/mem.h"
#include "tests/t.h"
#include "tests/train/engine/graph_steps.h"
#include "tests/train/tiny.h"
#include "train/ops/experts.h"
#include "train/ops/head_norm.h"
#include "train/ops/values.h"

/* ---- the device ------------------------------------------------------------------------------ */

static const size_t size_of[OP_COUNT] = {
    [OP_EMBED] = sizeof(struct embed_args),
    [OP_EMBED_BWD] = sizeof(struct embed_bwd_args),
    [OP_NORM] = sizeof(struct norm_args),
    [OP_NORM_BWD] = sizeof(struct norm_bwd_args),
    [OP_MATMUL] = sizeof(struct matmul_args),
    [OP_GLU] = sizeof(struct glu_args),
    [OP_GLU_BWD] = sizeof(struct glu_bwd_args),
    [OP_ROPE] = sizeof(struct rope_args),
    [OP_ATTENTION] = sizeof(struct attention_args),
    [OP_ATTENTION_BWD] = sizeof(struct attention_bwd_args),
    [OP_XENT_STATS] = sizeof(struct xent_stats_args),
    [OP_XENT_LOSS] = sizeof(struct xent_loss_args),
    [OP_FILL] = sizeof(struct fill_args),
    [OP_COPY] = sizeof(struct copy_args),
    [OP_CAP] = sizeof(struct cap_args),
    [OP_ROUTE] = sizeof(struct route_args),
    [OP_ROUTE_BWD] = sizeof(struct route_bwd_args),
    [OP_ROUTE_LOSS] = sizeof(struct route_loss_args),
    [OP_PERMUTE] = sizeof(struct permute_args),
    [OP_PERMUTE_BWD] = sizeof(struct permute_bwd_args),
    [OP_UNPERMUTE] = sizeof(struct unpermute_args),
    [OP_UNPERMUTE_BWD] = sizeof(struct unpermute_bwd_args),
    [OP_GROUPED] = sizeof(struct grouped_args),
    [OP_GROUPED_BWD] = sizeof(struct grouped_bwd_args),
    [OP_GATE] = sizeof(struct gate_args),
    [OP_GATE_BWD] = sizeof(struct gate_bwd_args),
    [OP_HEAD_NORM] = sizeof(struct head_norm_args),
    [OP_HEAD_NORM_BWD] = sizeof(struct head_norm_bwd_args),
};

struct recorded_call {
    struct ops *ops;
    enum op op;
    size_t mark; /* of the workspace */
    void *args;
};

struct dev_graph {
    struct recorded_call *call;
    size_t n, room;
};

static struct {
    struct dev_table table;
    struct dev_graph *now; /* that is recorded; NULL: none */
    int live;              /* recordings that are not freed */
    bool no_begin, no_end, fault;
} fake;

static void add_call(struct dev_graph *g, struct recorded_call c)
{
    if (g->n == g->room) {
        g->room = g->room ? 2 * g->room : 64;
        g->call = mem_grow(g->call, g->room, sizeof(*g->call));
    }
    g->call[g->n++] = c;
}

static void call_or_record(struct ops *o, enum op op, const void *args)
{
    if (!fake.now) {
        ops_run(o, op, args);
        return;
    }
    BUG_ON(!size_of[op], "arguments of op %s", op_name(op));
    struct recorded_call c = {.ops = o, .op = op, .mark = slab_mark(o->workspace)};
    c.args = mem_new(1, size_of[op]);
    memcpy(c.args, args, size_of[op]);
    add_call(fake.now, c);
    if (fake.fault) {
        o->dev->fault = ERR_FAULT;
        snprintf(o->dev->fault_text, sizeof(o->dev->fault_text), "planted");
    }
}

static void fake_free(struct dev *d, struct dev_graph *g)
{
    (void)d;
    for (size_t i = 0; i < g->n; i++)
        free(g->call[i].args);
    free(g->call);
    free(g);
    fake.live--;
}

static int fake_begin(struct dev *d, int stream, struct err *e)
{
    (void)d;
    BUG_ON(fake.now || stream != STREAM_COMPUTE, "a recording in another, or of another stream");
    if (fake.no_begin)
        return err_set(e, ERR_FAULT, "no beginning");
    fake.now = mem_new(1, sizeof(*fake.now));
    *fake.now = (struct dev_graph){0};
    fake.live++;
    return 0;
}

static int fake_end(struct dev *d, int stream, struct dev_graph **ret, struct err *e)
{
    struct dev_graph *g = fake.now;
    (void)stream;
    int code = dev_fault(d, e);
    d->fault = 0;
    fake.now = NULL;
    if (!code && fake.no_end)
        code = err_set(e, ERR_FAULT, "no end");
    if (code)
        fake_free(d, g);
    *ret = code ? NULL : g;
    return code;
}

static void fake_replay(struct dev *d, int stream, struct dev_graph *g)
{
    (void)d;
    (void)stream;
    BUG_ON(fake.now, "a replay in a recording");
    for (size_t i = 0; i < g->n; i++) {
        const struct recorded_call *c = &g->call[i];
        size_t mark = slab_mark(c->ops->workspace);
        slab_reset(c->ops->workspace, c->mark);
        ops_run(c->ops, c->op, c->args);
        slab_reset(c->ops->workspace, mark);
    }
}

/* Nothing but ops may be between the beginning and the end of a recording. */
static void fake_copy(struct dev *d, int stream, void *to, const void *from, size_t bytes)
{
    (void)d;
    (void)stream;
    BUG_ON(fake.now, "a copy while a pass is recorded");
    memcpy(to, from, bytes);
}

static void fake_wait(struct dev *d, int number)
{
    (void)d;
    (void)number;
    BUG_ON(fake.now, "a wait while a pass is recorded");
}

static int fake_describe(struct dev_desc *ret, int which, int threads, struct err *e)
{
    int code = dev_host_describe(ret, which, threads, e);
    ret->host = false;
    ret->memory_free = ret->memory;
    return code;
}

static int fake_start(struct dev *ret, int which, int threads, struct err *e)
{
    int code = dev_host_start(ret, which, threads, e);
    fake.table = *ret->fn;
    fake.table.copy = fake_copy;
    fake.table.sync = fake.table.await = fake_wait;
    fake.table.capture_begin = fake_begin;
    fake.table.capture_end = fake_end;
    fake.table.replay = fake_replay;
    fake.table.graph_free = fake_free;
    ret->fn = &fake.table;
    ret->desc.host = false;
    return code;
}

static int fake_open_ops(struct ops *ret, struct dev *d, struct slab *workspace,
                         const struct ops_config *c, struct err *e)
{
    int code = ops_cpu_open(ret, d, workspace, c, e);
    ret->call = call_or_record;
    return code;
}

static const struct rank_backends recording = {.name = "recording",
                                               .describe_device = fake_describe,
                                               .open_device = fake_start,
                                               .init_ops = fake_open_ops};

/* ---- cases ----------------------------------------------------------------------------------- */

static void dropout_and_accumulation(void)
{
    graph_dropout(&recording, DTYPE_F32);
    graph_dropout(&recording, DTYPE_BF16);
    T_EQ(fake.live, 0);
}

static void skipped_steps(void)
{
    graph_overflow(&recording);
}

static void documents(void)
{
    graph_documents(&recording, DTYPE_F32);
}

static void families(void)
{
    graph_families(&recording, DTYPE_F32);
}

/* More kinds of passes than are kept: the others run kernel by kernel. */
static void more_kinds_than_are_kept(void)
{
    struct graph_cell c = {.spec = tiny_llama(), .real = DTYPE_F32};
    c.documents = 2 * (TINY_LENGTH - 1);
    struct graph_outcome o = graph_steps(&recording, &c);
    T_EQ(o.kinds, GRAPH_KINDS);
    T_CHECK(o.on && o.replays > 0);
    T_EQ(fake.live, 0);
}

/* As without recordings, with one warning. */
static void what_cannot_be_recorded(void)
{
    struct graph_cell c = {.spec = tiny_gpt(), .real = DTYPE_F32};
    for (int i = 0; i < 3; i++) {
        fake.no_begin = i == 0;
        fake.no_end = i == 1;
        fake.fault = i == 2;
        struct graph_outcome o = graph_steps(&recording, &c);
        T_CHECK(!o.on && o.replays == 0);
        T_EQ(fake.live, 0);
    }
    fake.no_begin = fake.no_end = fake.fault = false;
}

static void where_it_pays(void)
{
    struct rank_config c = tiny_config(tiny_gpt(), DTYPE_F32);
    struct dev_desc gpu = {.host = false}, host = {.host = true};
    c.micro_batch = 2;
    c.seq_length = GRAPH_TOKENS / 2;
    T_CHECK(graphs_wanted(&c, c.micro_batch * c.seq_length, &gpu) &&
            !graphs_wanted(&c, c.micro_batch * c.seq_length, &host));
    c.micro_batch = 3;
    T_CHECK(!graphs_wanted(&c, c.micro_batch * c.seq_length, &gpu));
    c.graphs = GRAPHS_ON;
    T_CHECK(graphs_wanted(&c, c.micro_batch * c.seq_length, &gpu) &&
            !graphs_wanted(&c, c.micro_batch * c.seq_length, &host));
    c.layout.mesh.dp = 2;
    T_CHECK(!graphs_wanted(&c, c.micro_batch * c.seq_length, &gpu));
    c.layout.mesh.dp = 1;
    c.use = MODEL_EVAL;
    T_CHECK(!graphs_wanted(&c, c.micro_batch * c.seq_length, &gpu));
    c.use = MODEL_TRAIN;
    c.micro_batch = 1;
    c.graphs = GRAPHS_OFF;
    T_CHECK(!graphs_wanted(&c, c.micro_batch * c.seq_length, &gpu));
}

T_MAIN(T_CASE(dropout_and_accumulation), T_CASE(skipped_steps), T_CASE(documents), T_CASE(families),
       T_CASE(more_kinds_than_are_kept), T_CASE(what_cannot_be_recorded), T_CASE(where_it_pays))

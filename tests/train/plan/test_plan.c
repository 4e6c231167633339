/* SPDX-License-Identifier: Apache-2.0 */
#include "train/plan/plan.h"

#include <string.h>

#include "tests/t.h"
#include "tests/train/tiny.h"
#include "train/engine/pipeline.h"
#include "train/engine/step.h"

static struct rank rank;

static int one_batch(void *arg, const struct batch **ret, struct err *e)
{
    (void)e;
    *ret = arg;
    return 0;
}

/* A real step under the wrapper makes the calls that the plan counted, touches each slab's planned
 * peak, and allocates nothing. */
static void check(struct spec s)
{
    struct err e;
    struct plan seen;
    struct batch b;
    struct rank_config c = tiny_config(s, DTYPE_F32);
    T_OK(rank_open(&rank, &c, &e), &e);
    size_t planned = rank.slab[SLAB_WORKSPACE].size;
    rank.slab[SLAB_WORKSPACE].peak = 0;
    tiny_batch(&b, 1);
    plan_wrap(&seen, &rank.dev, &rank.ops, &rank.comm, true);
    tiny_values(&rank, 0, 0, 1);
    T_OK(pipeline_train(&rank, &(struct pipeline_source){.next = one_batch, .arg = &b}, &e), &e);
    step_issue_update(&rank);
    plan_unwrap(&seen, &rank.dev, &rank.ops, &rank.comm);
    for (int i = 0; i < OP_COUNT; i++) {
        T_EQ(seen.op[i].calls, rank.plan.op[i].calls);
        T_CHECK(seen.op[i].flops == rank.plan.op[i].flops);
    }
    T_EQ(seen.collectives, rank.plan.collectives);
    T_EQ(seen.allocations, 0);
    T_EQ(rank.slab[SLAB_WORKSPACE].peak, planned);
    batch_finish(&b);
    rank_close(&rank);
}

static void gpt_step_is_as_planned(void)
{
    check(tiny_gpt());
}

static void llama_step_is_as_planned(void)
{
    check(tiny_llama());
}

static void mixture_step_is_as_planned(void)
{
    check(tiny_mixtral());
}

/* Tensor-parallel ranks reduce together, also where the last one has hardly any of the vocabulary.
 */
static void parts_of_a_vocabulary_take_the_same_chunks(void)
{
    struct err e;
    struct dev_desc desc;
    struct spec s = tiny_gpt();
    uint64_t calls[2];
    s.vocab = 26000;
    s.padded_vocab = 50432;
    s.heads = s.kv_heads = 2;
    s.head_dim = s.hidden / 2;
    s.max_positions = 1024;
    struct rank_config c = tiny_config(s, DTYPE_F32);
    c.layout = layout_plain(mesh_dense(2, 1, 1, 1));
    c.micro_batch = 64;
    c.seq_length = 1024;
    T_OK(dev_host_describe(&desc, 0, 1, &e), &e);
    for (c.rank = 0; c.rank < 2; c.rank++) {
        T_OK(rank_plan(&rank, &c, &desc, &e), &e);
        calls[c.rank] = rank.plan.collectives;
        rank_close(&rank);
    }
    T_EQ(calls[0], calls[1]);
}

/* 124M at T 256, batch 4: operations within 2 % of 6 N tokens plus attention, and the memory by
 * hand. */
static void planned_work_of_124m(void)
{
    struct err e;
    struct spec s = tiny_gpt();
    s.layers = 2;
    s.hidden = 768;
    s.heads = s.kv_heads = 12;
    s.head_dim = 64;
    s.ffn = 3072;
    s.vocab = 5000;
    s.padded_vocab = 5120;
    s.max_positions = 256;
    struct rank_config c = tiny_config(s, DTYPE_F32);
    c.micro_batch = 4;
    c.seq_length = 256;
    T_OK(rank_open(&rank, &c, &e), &e);
    double n = 1024, matmuls = 2.0 * (12.0 * 768 * 768) + 5000.0 * 768;
    /* the causal half; backward is 2.5 times forward */
    double attention = 2.0 * 12 * 4 * (256.0 * 257 / 2) * 64 * 2 * 2 * 3.5;
    T_NEAR(plan_flops(&rank.plan) / (6 * n * matmuls + attention), 1, 0.05);
    T_EQ(rank.slab[SLAB_OPTIMIZER].size, 2 * rank.slab[SLAB_PARAMETERS].size);
    rank_close(&rank);
}

/* Context-parallel ranks share out the operations of one rank, however keys come to queries. */
static void context_ranks_share_out_the_work(void)
{
    struct err e;
    struct dev_desc desc;
    struct spec s = tiny_gpt();
    s.heads = s.kv_heads = 4;
    s.head_dim = 3;
    s.max_positions = 512;
    struct rank_config c = tiny_config(s, DTYPE_F32);
    c.seq_length = 512;
    T_OK(dev_host_describe(&desc, 0, 1, &e), &e);
    T_OK(rank_plan(&rank, &c, &desc, &e), &e);
    double alone = plan_flops(&rank.plan);
    rank_close(&rank);
    for (int k = 0; k < CONTEXT_COMMS; k++) {
        double sum = 0;
        c.layout = layout_plain(mesh_dense(1, 4, 1, 1));
        c.layout.context = (enum context_comm)k;
        for (c.rank = 0; c.rank < 4; c.rank++) {
            T_OK(rank_plan(&rank, &c, &desc, &e), &e);
            sum += plan_flops(&rank.plan);
            rank_close(&rank);
        }
        c.rank = 0;
        T_NEAR(sum / alone, 1, 0.02);
    }
}

/* A table that lacks what a gated MLP needs. */
static int open_without_glu(struct ops *o, struct dev *d, struct slab *workspace,
                            const struct ops_config *c, struct err *e)
{
    int code = ops_cpu_open(o, d, workspace, c, e);
    o->entry[OP_GLU] = (struct op_entry){0};
    return code;
}

static void a_missing_operation_is_named(void)
{
    for (int i = 0; i < 2; i++) {
        struct err e = {0};
        struct rank_config c = tiny_config(i ? tiny_llama() : tiny_gpt(), DTYPE_F32);
        struct rank_backends lacking = *c.backends;
        lacking.init_ops = open_without_glu;
        c.backends = &lacking;
        T_EQ(rank_open(&rank, &c, &e), i ? ERR_USAGE : 0);
        T_CHECK(!i || strstr(e.msg, "it has no operation 'glu'"));
        rank_close(&rank);
    }
}

T_MAIN(T_CASE(gpt_step_is_as_planned), T_CASE(llama_step_is_as_planned),
       T_CASE(mixture_step_is_as_planned), T_CASE(parts_of_a_vocabulary_take_the_same_chunks),
       T_CASE(planned_work_of_124m), T_CASE(context_ranks_share_out_the_work),
       T_CASE(a_missing_operation_is_named))

/* SPDX-License-Identifier: Apache-2.0 */
#include "train/ops/ops.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/t.h"
#include "tests/train/ops/world.h"

static struct world w;

static void every_op_has_a_name_and_an_entry(void)
{
    world_open(&w, DTYPE_F32, "ref", 1, 4096);
    for (int i = 0; i < OP_COUNT; i++) {
        T_CHECK(op_name((enum op)i)[0]);
        T_CHECK(w.ops.entry[i].run && w.ops.entry[i].backend);
    }
    world_close(&w);
}

static void an_unknown_level_is_refused(void)
{
    struct ops o;
    struct err e;
    T_ERR(ops_cpu_init(&o, NULL, NULL, DTYPE_F32, "sse9", &e), &e, ERR_USAGE, "sse9");
}

static struct attention_args small_attention(struct slab *s)
{
    const int64_t size[] = {8, 2, 4};
    struct attention_args a = {.max_len = 5, .scale = 1};
    a.q = slab_take(s, DTYPE_F32, 3, size);
    a.k = a.v = a.o = a.q;
    a.q_start = slab_1d(s, DTYPE_I32, 3);
    a.k_start = a.k_len = slab_1d(s, DTYPE_I32, 2);
    return a;
}

/* Addresses of an unbound slab are no memory: whoever touched them would crash. */
static void an_unbound_workspace_only_measures(void)
{
    struct slab work, acts;
    struct err e;
    world_open(&w, DTYPE_F32, "ref", 1, 4096);
    slab_init(&work, "workspace", PLACE_HOST);
    slab_init(&acts, "activations", PLACE_HOST);
    struct ops o;
    T_OK(ops_cpu_init(&o, &w.dev, &work, DTYPE_F32, NULL, &e), &e);
    struct attention_args a = small_attention(&acts);
    size_t scratch = o.entry[OP_ATTENTION].scratch(&w.dev.desc, &a);
    op_attention(&o, &a);
    T_EQ(work.used, 0);
    T_EQ(work.peak, (scratch + 255) / 256 * 256);
    world_close(&w);
}

static void costs_are_counted_from_shapes(void)
{
    struct slab s;
    slab_init(&s, "activations", PLACE_HOST);
    struct matmul_args mm = {.y = slab_2d(&s, DTYPE_F32, 3, 5),
                             .a = slab_2d(&s, DTYPE_F32, 3, 7),
                             .b = slab_2d(&s, DTYPE_F32, 5, 7),
                             .tb = true};
    struct op_cost c = op_cost(OP_MATMUL, &mm);
    T_EQ(c.flops, 2 * 3 * 5 * 7);
    T_EQ(c.bytes, 4 * (15 + 21 + 35));
    /* 2 sequences of 4 queries, 5 keys each: they see 2, 3, 4 and 5 */
    struct attention_args at = small_attention(&s);
    c = op_cost(OP_ATTENTION, &at);
    T_EQ(c.flops, 8 * 2 * 3.5 * (4 * 4 + 3));
    at.window = 2;
    T_EQ(op_cost(OP_ATTENTION, &at).flops, 8 * 2 * 2 * (4 * 4 + 3));
    at.window = 4; /* 2, 3, 4 and 4 */
    T_EQ(op_cost(OP_ATTENTION, &at).flops, 8 * 2 * 3.25 * (4 * 4 + 3));
    struct sumsq_args sq = {.total = slab_1d(&s, DTYPE_F64, 1), .x = slab_1d(&s, DTYPE_F32, 9)};
    T_EQ(op_cost(OP_SUMSQ, &sq).bytes, 36);
}

/* Runs fn in a child; true if it aborted with a sentence that has the word. */
static bool is_a_bug(void (*fn)(void), const char *word)
{
    int fd[2];
    char said[1024] = "";
    T_EQ(pipe(fd), 0);
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        dup2(fd[1], 2);
        signal(SIGABRT, SIG_DFL);
        fn();
        _exit(0);
    }
    close(fd[1]);
    size_t have = 0;
    for (ssize_t n; (n = read(fd[0], said + have, sizeof(said) - 1 - have)) > 0;)
        have += (size_t)n;
    close(fd[0]);
    int status;
    waitpid(pid, &status, 0);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT && strstr(said, word);
}

static struct matmul_args wrong; /* each case below makes one mistake in a good call */

static void call_matmul(void)
{
    op_matmul(&w.ops, &wrong);
}

static struct matmul_args good(void)
{
    return (struct matmul_args){.y = world_2d(&w, 1, 3, 5, 0),
                                .a = world_2d(&w, 1, 3, 7, 0),
                                .b = world_2d(&w, 1, 5, 7, 0),
                                .tb = true};
}

static void mistakes_are_bugs(void)
{
    world_open(&w, DTYPE_F32, "ref", 1, 4096);
    wrong = good();
    T_CHECK(!is_a_bug(call_matmul, ""));
    wrong.b.size[1] = 6;
    T_CHECK(is_a_bug(call_matmul, "matmul: b is F32 [5,6]"));
    wrong = good();
    wrong.a.dtype = DTYPE_F64;
    T_CHECK(is_a_bug(call_matmul, "matmul: a is F64 [3,7]"));
    wrong = good();
    wrong.y.stride = 4;
    T_CHECK(is_a_bug(call_matmul, "stride 4"));
    wrong = good();
    wrong.y.rank = 0;
    T_CHECK(is_a_bug(call_matmul, "matmul: y"));
    wrong = good();
    wrong.accumulate = true;
    wrong.bias = world_1d(&w, 1, 5);
    T_CHECK(is_a_bug(call_matmul, "bias"));
    wrong = good();
    wrong.act_bwd = true;
    T_CHECK(is_a_bug(call_matmul, "act_bwd"));
    wrong = good();
    wrong.dbias = world_1d(&w, 1, 3);
    T_CHECK(is_a_bug(call_matmul, "dbias"));
    world_close(&w);
}

T_MAIN(T_CASE(every_op_has_a_name_and_an_entry), T_CASE(an_unknown_level_is_refused),
       T_CASE(an_unbound_workspace_only_measures), T_CASE(costs_are_counted_from_shapes),
       T_CASE(mistakes_are_bugs))

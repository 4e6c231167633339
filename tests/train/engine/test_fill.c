/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Initial weights: however the work is cut, by whatever buffers and types they come to the device,
 * they are what the parameter table says. The device here has memory of its own, as far as the rank
 * can tell, and copies late: when an event or the stream is waited for.
 */

#include <stdlib.h>
#include <string.h>

#include "base/core/mem.h"
#include "tests/t.h"
#include "tests/train/tiny.h"
#include "train/tensor/box.h"

static struct rank rank;

/* ---- a device that copies late --------------------------------------------------------------- */

enum { LATE = 1024 };

static struct {
    struct dev_table table;
    struct {
        void *to;
        const void *from;
        size_t bytes;
    } copy[LATE];
    int n, done, until[EVENT_COUNT], most;
} late;

static void copy_until(int n)
{
    for (; late.done < n; late.done++)
        memcpy(late.copy[late.done].to, late.copy[late.done].from, late.copy[late.done].bytes);
    if (late.done == late.n) {
        late.done = late.n = 0;
        memset(late.until, 0, sizeof(late.until));
    }
}

static void late_copy(struct dev *d, int stream, void *to, const void *from, size_t bytes)
{
    (void)d;
    (void)stream;
    BUG_ON(late.n == LATE, "%d copies wait", LATE);
    late.copy[late.n].to = to;
    late.copy[late.n].from = from;
    late.copy[late.n++].bytes = bytes;
    late.most = late.n - late.done > late.most ? late.n - late.done : late.most;
}

static void late_record(struct dev *d, int stream, int event)
{
    (void)d;
    (void)stream;
    late.until[event] = late.n;
}

static void late_await(struct dev *d, int event)
{
    (void)d;
    copy_until(late.until[event] < late.n ? late.until[event] : late.n);
}

static void late_sync(struct dev *d, int stream)
{
    (void)d;
    (void)stream;
    copy_until(late.n);
}

static int late_describe(struct dev_desc *ret, int which, int threads, struct err *e)
{
    int code = dev_host_describe(ret, which, threads, e);
    ret->host = false;
    ret->memory_free = ret->memory;
    return code;
}

static int late_start(struct dev *ret, int which, int threads, struct err *e)
{
    int code = dev_host_start(ret, which, threads, e);
    late.table = *ret->fn;
    late.table.copy = late_copy;
    late.table.record = late_record;
    late.table.await = late_await;
    late.table.sync = late_sync;
    ret->fn = &late.table;
    ret->desc.host = false;
    return code;
}

static const struct rank_backends late_device = {
    .describe_device = late_describe, .open_device = late_start, .init_ops = ops_cpu_open};

/* ---- what they must be ----------------------------------------------------------------------- */

static void check_param(const struct param *p, struct tensor all)
{
    size_t n = (size_t)p->count, each = dtype_size(all.dtype);
    float *want = mem_new(n, sizeof(*want));
    char *cast = mem_new(n, each);
    param_init_rows(p, rank.config.seed, 0, p->size[0], want);
    if (rank.config.loads && p->init != INIT_ONE)
        memset(want, 0, n * sizeof(*want));
    box_cast(cast, all.dtype, want, DTYPE_F32, p->count);
    T_MEM((char *)all.data + (size_t)p->offset * each, cast, n * each);
    free(want);
    free(cast);
}

static void check(struct rank_config c)
{
    struct err e;
    T_OK(rank_open(&rank, &c, &e), &e);
    for (int i = 0; i < rank.params.n; i++)
        check_param(&rank.params.at[i], rank_master(&rank));
    rank_close(&rank);
}

/* A table of several buffers, matrices of several tasks, rows of padding. */
static struct spec large(void)
{
    struct spec s = tiny_gpt();
    s.hidden = 256;
    s.heads = s.kv_heads = 4;
    s.head_dim = 64;
    s.ffn = 300;
    s.vocab = 40000;
    s.padded_vocab = 40064;
    return s;
}

static void on_the_host(void)
{
    struct rank_config c = tiny_config(large(), DTYPE_F32);
    c.use = MODEL_EVAL;
    check(c);
    c.threads = 3;
    check(c);
    check(tiny_config(tiny_gpt(), DTYPE_F64));
}

static void by_two_buffers(void)
{
    struct rank_config c = tiny_config(large(), DTYPE_F32);
    c.use = MODEL_EVAL;
    c.backends = &late_device;
    late.most = 0;
    check(c);
    T_CHECK(late.most > 1); /* one is copied while the other is filled */
}

static void in_other_types(void)
{
    struct rank_config c = tiny_config(tiny_llama(), DTYPE_BF16);
    c.backends = &late_device;
    check(c);
    c.narrow.master = c.narrow.grad = true;
    check(c);
}

/* What is loaded afterwards is not made; norms are, of which a checkpoint may have a part. */
static void none_where_they_are_loaded(void)
{
    struct rank_config c = tiny_config(large(), DTYPE_F32);
    struct err e;
    c.use = MODEL_EVAL;
    T_OK(rank_open(&rank, &c, &e), &e);
    uint64_t bytes = rank_fill_bytes(&rank);
    rank_close(&rank);
    c.loads = true;
    check(c);
    T_OK(rank_open(&rank, &c, &e), &e);
    T_CHECK(bytes > 30 << 20 && rank_fill_bytes(&rank) < 4096);
    rank_close(&rank);
}

T_MAIN(T_CASE(on_the_host), T_CASE(by_two_buffers), T_CASE(in_other_types),
       T_CASE(none_where_they_are_loaded))

/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The choice of attention in the table: calls of even rows, which cuDNN takes where it is
 * installed, against the same calls without the promise, which our own kernels take; poisoned
 * outputs, calls in several parts, equal bytes of two runs. How a call is cut into parts is seen
 * without a GPU.
 */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/mem.h"
#include "base/core/rng.h"
#include "tests/t.h"
#include "tests/train/ops/cuda/narrow.h"
#include "train/ops/cuda/attend.h"
#include "train/ops/cuda/ops_cuda.h"
#include "train/tensor/cuda/dev_cuda.h"

enum { MEMORY = 640 << 20, POISON = 0xff };

static const size_t workspace_bytes = (size_t)2300 << 20;

static const double bound = 1e-2;
static enum dtype type = DTYPE_BF16;

struct form {
    int64_t sequences, tokens, heads, groups, dim;
    int64_t part_sequences, part_groups; /* expected */
    int64_t window;
    float cap;
    bool any_order;
};

static struct dev gpu;
static struct slab memory, workspace;
static struct ops ops;

/* ---- parts ------------------------------------------------------------------------------------
 */

static struct tensor heads_at(void *p, int64_t rows, int64_t heads, int64_t dim, int64_t stride)
{
    struct tensor t = tensor_heads(tensor_2d(p, type, rows, heads * dim), heads);
    t.stride = stride;
    return t;
}

/* Rows of q, k and v as they come out of one product. */
static struct attention_args call(struct form f, char *qkv, void *o, void *lse, int32_t *rows)
{
    int64_t n = f.sequences * f.tokens, q = f.heads * f.dim, k = f.groups * f.dim;
    return (struct attention_args){.o = heads_at(o, n, f.heads, f.dim, q),
                                   .lse = tensor_2d(lse, DTYPE_F32, f.heads, n),
                                   .q = heads_at(qkv, n, f.heads, f.dim, q + 2 * k),
                                   .k = heads_at(qkv + 2 * q, n, f.groups, f.dim, q + 2 * k),
                                   .v = heads_at(qkv + 2 * (q + k), n, f.groups, f.dim, q + 2 * k),
                                   .q_start = tensor_1d(rows, DTYPE_I32, f.sequences + 1),
                                   .k_start = tensor_1d(rows, DTYPE_I32, f.sequences),
                                   .k_len =
                                       tensor_1d(rows + f.sequences + 1, DTYPE_I32, f.sequences),
                                   .max_len = f.tokens,
                                   .even = true,
                                   .window = f.window,
                                   .cap = f.cap,
                                   .any_order = f.any_order,
                                   .scale = 1 / sqrtf((float)f.dim)};
}

static void parts_fit_the_workspace(void)
{
    static const struct form forms[] = {
        {64, 1024, 12, 12, 64, 64, 12}, {96, 1024, 12, 12, 64, 48, 12},
        {16, 1024, 25, 25, 64, 16, 25}, {4, 4096, 32, 8, 64, 2, 8},
        {1, 8192, 32, 8, 128, 1, 4},    {7, 1024, 32, 8, 128, 7, 8},
        {1, 64, 1, 1, 8, 1, 1},         {4, 4096, 4, 1, 256, 4, 1, .window = 512},
    };
    static const struct dev_desc h100 = {.capability = 90}, v100 = {.capability = 70};
    struct attend_parts p;
    char *at = (char *)4096;
    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
        struct form f = forms[i];
        struct attention_args a = call(f, at, at, at, (int32_t *)at);
        T_CHECK(attend_cut(&h100, &a, &p));
        T_EQ(p.sequences, f.part_sequences);
        T_EQ(p.groups, f.part_groups);
        int64_t heads = f.heads / f.groups * p.groups * p.sequences;
        T_CHECK(p.bytes >= (size_t)(heads * f.tokens * (2 * f.tokens + 4)));
        T_CHECK(p.bytes < ((size_t)attend_bytes + (80 << 20)));
        T_CHECK(!attend_cut(&v100, &a, &p));
    }
    struct attention_args a = call(forms[0], at, at, at, (int32_t *)at), b = a;
    b.even = false;
    T_CHECK(!attend_cut(&h100, &b, &p));
    b = a;
    b.drop.p = 0.1F;
    T_CHECK(!attend_cut(&h100, &b, &p));
    b = a;
    b.k.data = at + 8;
    T_CHECK(!attend_cut(&h100, &b, &p));
}

/* Shares of dq by key would take 8 GiB for the four heads of a group. */
static void long_rows(void)
{
    static const struct dev_desc h100 = {.capability = 90};
    const struct form f = {1, 32768, 32, 8, 64};
    struct attend_parts p;
    char *at = (char *)4096;
    struct attention_args a = call(f, at, at, at, (int32_t *)at);
    T_CHECK(!attend_cut(&h100, &a, &p));
    a.any_order = true;
    T_CHECK(attend_cut(&h100, &a, &p));
    T_EQ(p.sequences, 1);
    T_EQ(p.groups, 8);
    T_CHECK(p.bytes < (size_t)1 << 30);
}

/* ---- numbers ----------------------------------------------------------------------------------
 */

static void open_all(void)
{
    const struct ops_config wanted = {.real = type};
    struct err e;
    if (dev_cuda_open(&gpu, 0, &e))
        t_skip("%s", e.msg);
    slab_init(&workspace, "workspace", PLACE_DEVICE);
    slab_bytes(&workspace, workspace_bytes);
    T_OK(slab_bind(&workspace, &gpu, &e), &e);
    slab_init(&memory, "memory", PLACE_DEVICE);
    slab_bytes(&memory, MEMORY);
    T_OK(slab_bind(&memory, &gpu, &e), &e);
    T_OK(ops_cuda_open(&ops, &gpu, &workspace, &wanted, &e), &e);
    T_STR(ops.entry[OP_ATTENTION].backend, "own"); /* until a shape is prepared */
}

static void close_all(void)
{
    ops_close(&ops);
    slab_release(&memory, &gpu);
    slab_release(&workspace, &gpu);
    dev_close(&gpu);
}

static void *given(const void *from, size_t bytes)
{
    void *p = slab_bytes(&memory, bytes);
    gpu.fn->copy(&gpu, STREAM_COMPUTE, p, from, bytes);
    gpu.fn->sync(&gpu, STREAM_COMPUTE);
    return p;
}

/* Numbers of about -2 to 2. */
static void *drawn(int64_t n, uint64_t seed)
{
    uint16_t *v = mem_new((size_t)n, sizeof(*v));
    for (int64_t i = 0; i < n; i++) {
        struct rng4 r = rng_block(seed, RNG_TEST, 0, (uint64_t)i / 4);
        v[i] = narrow_bits(type, (double)r.v[i % 4] / 0x1p30 - 2);
    }
    void *p = given(v, (size_t)n * sizeof(*v));
    free(v);
    return p;
}

/* A call's outputs: o, then dq, dk and dv as packed rows. */
struct outcome {
    size_t o, dqkv; /* bytes */
    uint16_t *bits;
};

static struct outcome run(struct form f, bool even)
{
    int64_t n = f.sequences * f.tokens, q = f.heads * f.dim, k = f.groups * f.dim;
    struct outcome ret = {(size_t)(n * q) * 2, (size_t)(n * (q + 2 * k)) * 2, NULL};
    int32_t *rows = mem_new((size_t)(2 * f.sequences + 1), sizeof(*rows));
    struct err e;
    for (int64_t s = 0; s <= f.sequences; s++)
        rows[s] = (int32_t)(s * f.tokens);
    for (int64_t s = 0; s < f.sequences; s++)
        rows[f.sequences + 1 + s] = (int32_t)f.tokens;
    slab_reset(&memory, 0);
    char *qkv = drawn(n * (q + 2 * k), 1), *dout = drawn(n * q, 2);
    int32_t *places = given(rows, (size_t)(2 * f.sequences + 1) * sizeof(*rows));
    char *out = slab_bytes(&memory, ret.o + ret.dqkv), *dqkv = out + ret.o;
    void *lse = slab_bytes(&memory, (size_t)(f.heads * n) * sizeof(float));
    struct attention_args a = call(f, qkv, out, lse, places);
    a.even = even;
    struct attention_bwd_args b = {.fwd = a,
                                   .dout = heads_at(dout, n, f.heads, f.dim, q),
                                   .dq = heads_at(dqkv, n, f.heads, f.dim, q + 2 * k),
                                   .dk = heads_at(dqkv + 2 * q, n, f.groups, f.dim, q + 2 * k),
                                   .dv =
                                       heads_at(dqkv + 2 * (q + k), n, f.groups, f.dim, q + 2 * k)};
    ret.bits = mem_new(1, ret.o + ret.dqkv);
    memset(ret.bits, POISON, ret.o + ret.dqkv);
    gpu.fn->copy(&gpu, STREAM_COMPUTE, out, ret.bits, ret.o + ret.dqkv);
    T_OK(ops.entry[OP_ATTENTION].prepare(&ops, &a, &e), &e);
    op_attention(&ops, &a);
    op_attention_bwd(&ops, &b);
    gpu.fn->copy(&gpu, STREAM_COMPUTE, ret.bits, out, ret.o + ret.dqkv);
    gpu.fn->sync(&gpu, STREAM_COMPUTE);
    T_OK(dev_fault(&gpu, &e), &e);
    free(rows);
    return ret;
}

/* Columns first .. first + count of rows of `width`. */
static void near(const char *what, const uint16_t *a, const uint16_t *b, struct form f,
                 const int64_t column[3])
{
    double off = 0, square = 0;
    for (int64_t i = 0; i < f.sequences * f.tokens; i++)
        for (int64_t j = column[0]; j < column[0] + column[1]; j++) {
            double x = narrow_value(type, a[i * column[2] + j]);
            double y = narrow_value(type, b[i * column[2] + j]);
            off += (x - y) * (x - y);
            square += y * y;
        }
    double error = sqrt(off / square);
    printf("# %lld x %lld, %lld of %lld on %lld: %s %.2e\n", (long long)f.sequences,
           (long long)f.tokens, (long long)f.heads, (long long)f.dim, (long long)f.groups, what,
           error);
    if (!(error < bound))
        t_fail(__FILE__, __LINE__, "%s: relative error %.3g", what, error);
}

static void compare(struct form f)
{
    int64_t q = f.heads * f.dim, k = f.groups * f.dim, row = q + 2 * k;
    open_all();
    struct outcome x = run(f, true), again = run(f, true), y = run(f, false);
    printf("# attention: %s\n", ops.entry[OP_ATTENTION].backend);
    T_CHECK(f.tokens >= 64 || !strcmp(ops.entry[OP_ATTENTION].backend, "own"));
    const uint16_t *dx = x.bits + x.o / 2, *dy = y.bits + y.o / 2;
    T_MEM(x.bits, again.bits, f.any_order ? x.o : x.o + x.dqkv);
    near("o", x.bits, y.bits, f, (const int64_t[]){0, q, q});
    near("dq", dx, dy, f, (const int64_t[]){0, q, row});
    near("dk", dx, dy, f, (const int64_t[]){q, k, row});
    near("dv", dx, dy, f, (const int64_t[]){q + k, k, row});
    free(x.bits);
    free(again.bits);
    free(y.bits);
    close_all();
}

static void one_part(void)
{
    compare((struct form){.sequences = 5, .tokens = 512, .heads = 6, .groups = 6, .dim = 64});
}

static void odd_rows(void)
{
    compare((struct form){.sequences = 3, .tokens = 333, .heads = 8, .groups = 2, .dim = 64});
}

static void parts_of_sequences(void)
{
    compare((struct form){.sequences = 2, .tokens = 8192, .heads = 12, .groups = 12, .dim = 64});
}

static void parts_of_heads(void)
{
    compare((struct form){.sequences = 2, .tokens = 8192, .heads = 32, .groups = 8, .dim = 64});
}

static void wide_heads(void)
{
    compare((struct form){.sequences = 4, .tokens = 1024, .heads = 16, .groups = 4, .dim = 128});
}

static void windows(void)
{
    compare((struct form){3, 1000, 8, 2, 64, .window = 256});
    compare((struct form){2, 600, 8, 8, 96, .window = 511});
    compare((struct form){2, 600, 4, 1, 256, .window = 100});
    compare((struct form){2, 300, 4, 2, 128, .window = 300}); /* every key is in it */
}

static void caps(void)
{
    compare((struct form){2, 600, 8, 2, 64, .cap = 2});
    compare((struct form){2, 600, 8, 4, 256, .window = 128, .cap = 2});
}

static void any_order(void)
{
    compare((struct form){3, 1000, 8, 2, 64, .any_order = true});
    compare((struct form){2, 8192, 12, 12, 64, .any_order = true});
    compare((struct form){2, 600, 4, 1, 256, .window = 100, .any_order = true});
}

/* Rows that cuDNN is not asked about are our kernels' with and without the promise. */
static void few_tokens(void)
{
    compare((struct form){.sequences = 9, .tokens = 24, .heads = 4, .groups = 4, .dim = 64});
}

static void fp16(void)
{
    type = DTYPE_F16;
    odd_rows();
    wide_heads();
    few_tokens();
    type = DTYPE_BF16;
}

T_MAIN(T_CASE(parts_fit_the_workspace), T_CASE(long_rows), T_CASE(windows), T_CASE(caps),
       T_CASE(any_order), T_CASE(one_part), T_CASE(odd_rows), T_CASE(parts_of_sequences),
       T_CASE(parts_of_heads), T_CASE(wide_heads), T_CASE(few_tokens), T_CASE(fp16))

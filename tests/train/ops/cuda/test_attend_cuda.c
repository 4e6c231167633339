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
#include "train/ops/cuda/attention_table.h"
#include "train/ops/cuda/flash.h"
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

/* ---- the table, without a GPU -----------------------------------------------------------------
 */

static struct attention_args shaped(enum dtype of, int64_t tokens, int64_t dim)
{
    const struct form f = {2, tokens, 4, 2, dim};
    enum dtype before = type;
    char *at = (char *)4096;
    type = of;
    struct attention_args a = call(f, at, at, at, (int32_t *)at);
    type = before;
    return a;
}

/* `library`: cuDNN is there. */
static const struct attention_row *row(int capability, struct attention_args a, bool library)
{
    const struct dev_desc desc = {.capability = capability};
    const struct attention_call c = {.desc = &desc, .fwd = &a};
    return attention_row_of(&c, library ? ATTENTION_CUDNN : ATTENTION_OWN);
}

static void each_case_has_its_row(void)
{
    const char *fastest =
        flash_by_wgmma(&(struct dev_desc){.capability = 90}, &(struct attention_args){.cap = 0})
            ? "own wgmma"
            : "own tensor cores"; /* a build without 90a */
    struct attention_args a = shaped(DTYPE_BF16, 1024, 64);
    T_STR(row(90, a, true)->name, "cuDNN");
    T_STR(row(90, a, false)->name, fastest);
    T_STR(row(80, a, false)->name, "own tensor cores");
    a.window = 300;
    T_STR(row(90, a, true)->name, "cuDNN");
    a.cap = 50;
    T_STR(row(90, a, false)->name, "own tensor cores");
    a = shaped(DTYPE_F16, 1024, 96);
    a.even = false;
    T_STR(row(90, a, true)->name, fastest);
    a = shaped(DTYPE_F16, 1024, 128);
    a.drop.p = 0.1F;
    T_STR(row(90, a, true)->name, fastest);
    T_STR(row(90, shaped(DTYPE_BF16, 63, 128), true)->name, fastest);
    T_STR(row(90, shaped(DTYPE_BF16, 65536, 128), true)->name, fastest);
    T_STR(row(90, shaped(DTYPE_BF16, 1024, 256), true)->name, "cuDNN");
    T_CHECK(!row(90, shaped(DTYPE_BF16, 1024, 256), true)->loops);
    /* windows up to a quarter, where our own kernels have less to do */
    a = shaped(DTYPE_BF16, 4096, 128);
    a.window = 1025;
    T_STR(row(90, a, true)->name, "cuDNN");
    a.window = 1024;
    T_STR(row(90, a, true)->name, !strcmp(fastest, "own wgmma") ? fastest : "cuDNN");
    T_STR(row(80, a, true)->name, "cuDNN");
    a.any_order = true;
    T_STR(row(90, a, true)->name, "cuDNN");
    a = shaped(DTYPE_BF16, 4096, 256);
    a.window = 512;
    T_STR(row(90, a, true)->name, "cuDNN");
}

/* What no kernel on tensor cores takes is served by loops, and said so with what was lacking. */
static void loops_are_told(void)
{
    static const struct dev_desc h100 = {.capability = 90};
    struct attention_args a = shaped(DTYPE_BF16, 1024, 264), b = shaped(DTYPE_BF16, 1024, 64);
    const struct attention_call wide = {.desc = &h100, .fwd = &a},
                                full = {.desc = &h100, .fwd = &b};
    struct attention_uses u = {0};
    struct ops_served s;
    T_CHECK(row(90, a, true)->loops);
    T_CHECK(row(90, shaped(DTYPE_BF16, 1024, 20), true)->loops);
    for (int layer = 0; layer < 12; layer++) {
        bool local = layer % 6 < 5;
        b.window = local ? 512 : 0;
        attention_uses_add(&u, attention_row_of(&full, 0), &full, layer, "cuDNN 9.99", NULL);
        attention_uses_add(&u, attention_row_of(&full, 0), &full, layer, "cuDNN 9.99", NULL);
    }
    attention_uses_add(&u, attention_row_of(&wide, 0), &wide, 3, "cuDNN 9.99", NULL);
    T_CHECK(attention_uses_get(&u, 0, &s));
    T_STR(s.by, "cuDNN 9.99");
    T_STR(s.form, "window 512");
    T_STR(s.lacks, "");
    T_EQ(s.layers, 10);
    T_CHECK(attention_uses_get(&u, 1, &s));
    T_STR(s.form, "full");
    T_EQ(s.layers, 2);
    T_CHECK(attention_uses_get(&u, 2, &s) && s.loops && s.times > 10);
    T_CHECK(strstr(s.lacks, "cuDNN takes no heads wider than 256; own wgmma takes no "));
    T_CHECK(!attention_uses_get(&u, 3, &s));
    T_STR(u.names, "cuDNN 9.99, own plain loops");
    attention_uses_finish(&u);
}

/* A refusal of cuDNN's own is passed on. */
static void refusals_are_told(void)
{
    static const struct dev_desc h100 = {.capability = 90};
    struct attention_args a = shaped(DTYPE_BF16, 1024, 64);
    const struct attention_call c = {.desc = &h100, .fwd = &a};
    struct attention_uses u = {0};
    struct ops_served s;
    attention_uses_add(&u, attention_row_of(&c, ATTENTION_OWN), &c, -1, "cuDNN 9.99", "no plan");
    T_CHECK(attention_uses_get(&u, 0, &s));
    T_CHECK(!strncmp(s.lacks, "cuDNN: no plan", 14));
    attention_uses_finish(&u);
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
    T_CHECK(!ops.served(&ops, 0, &(struct ops_served){0}));
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
    T_CHECK(f.tokens >= 64 || !strstr(ops.entry[OP_ATTENTION].backend, "cuDNN"));
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

T_MAIN(T_CASE(each_case_has_its_row), T_CASE(loops_are_told), T_CASE(refusals_are_told),
       T_CASE(parts_fit_the_workspace), T_CASE(long_rows), T_CASE(windows), T_CASE(caps),
       T_CASE(any_order), T_CASE(one_part), T_CASE(odd_rows), T_CASE(parts_of_sequences),
       T_CASE(parts_of_heads), T_CASE(wide_heads), T_CASE(few_tokens), T_CASE(fp16))

/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Bandwidth of the GPU's memory-bound ops, in fp32 and in BF16, at the sizes of a micro-batch,
 * beside that of a copy of 1 GiB: the bytes that op_cost counts over the median of events. One GPU,
 * no arguments.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/mem.h"
#include "base/core/rng.h"
#include "train/ops/cuda/ops_cuda.h"
#include "train/ops/values.h"
#include "train/tensor/cuda/dev_cuda.h"

enum {
    ROUNDS = 15,
    N = 32768,
    C = 768,
    F = 2048,
    V = 50304,
    LOSS_ROWS = 4096,
    PARAMETERS = 128 << 20
};

static struct dev dev;
static struct ops ops;
static struct slab workspace, memory;
static double copy_rate;

static void or_exit(int code, const struct err *e)
{
    if (code) {
        fprintf(stderr, "bench_cuda: %s\n", e->msg);
        exit(code);
    }
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double median_ms(enum op op, const void *args)
{
    double ms[ROUNDS];
    struct err e;
    for (int i = -3; i < ROUNDS; i++) {
        dev.fn->record(&dev, STREAM_COMPUTE, 0);
        ops_run(&ops, op, args);
        dev.fn->record(&dev, STREAM_COMPUTE, 1);
        double t = dev_cuda_elapsed(&dev, 0, 1);
        if (i >= 0)
            ms[i] = t;
    }
    or_exit(dev_fault(&dev, &e), &e);
    qsort(ms, ROUNDS, sizeof(ms[0]), by_size);
    return ms[ROUNDS / 2];
}

static void measure(const char *what, enum op op, const void *args)
{
    double ms = median_ms(op, args), rate = op_cost(op, args).bytes / ms * 1e-9;
    if (op == OP_COPY)
        copy_rate = rate;
    printf("%-40s %8.3f ms %6.2f TB/s %5.0f %%\n", what, ms, rate, 100 * rate / copy_rate);
}

static struct tensor halves(int64_t rows, int64_t cols)
{
    return slab_2d(&memory, DTYPE_BF16, rows, cols);
}

static struct tensor half_vector(int64_t n)
{
    return slab_1d(&memory, DTYPE_BF16, n);
}

static struct tensor floats(int64_t rows, int64_t cols)
{
    return slab_2d(&memory, DTYPE_F32, rows, cols);
}

static struct tensor vector(int64_t n)
{
    return slab_1d(&memory, DTYPE_F32, n);
}

/* Uniform numbers in (-1, 1), or with a limit whole ones below it, over all of a tensor. */
static struct tensor set(struct tensor t, int64_t limit)
{
    int64_t n = tensor_count(t), piece = 1 << 20;
    size_t each = dtype_size(t.dtype);
    char *x = mem_new((size_t)piece, sizeof(float));
    for (int64_t i = 0; i < piece; i++) {
        uint32_t r = rng_block(1, RNG_TEST, 0, (uint64_t)i / 4).v[i % 4], bits;
        float unit = 2 * rng_unit(r) - 1;
        memcpy(&bits, &unit, sizeof(bits));
        if (limit)
            bits = r % (uint32_t)limit;
        else if (t.dtype == DTYPE_BF16)
            bits >>= 16;
        memcpy(x + (size_t)i * each, &bits, each);
    }
    for (int64_t i = 0; i < n; i += piece)
        dev.fn->copy(&dev, STREAM_COMPUTE, (char *)t.data + (size_t)i * each, x,
                     (size_t)(n - i < piece ? n - i : piece) * each);
    dev.fn->sync(&dev, STREAM_COMPUTE);
    free(x);
    return t;
}

static void bench_norms(void)
{
    struct tensor w = set(vector(C), 0), x = set(floats(N, C), 0), a = set(floats(N, C), 0);
    struct norm_args n = {.kind = NORM_LAYER,
                          .eps = 1e-5f,
                          .y = floats(N, C),
                          .r = floats(N, C),
                          .mean = vector(N),
                          .rstd = vector(N),
                          .x = x,
                          .a = a,
                          .bias = w,
                          .w = w,
                          .b = w};
    measure("residual + LayerNorm 32768 x 768", OP_NORM, &n);
    struct norm_bwd_args b = {.kind = NORM_LAYER,
                              .dr = set(floats(N, C), 0),
                              .dy = x,
                              .r = n.r,
                              .mean = n.mean,
                              .rstd = n.rstd,
                              .w = w,
                              .dw = vector(C),
                              .db = vector(C),
                              .da = floats(N, C),
                              .dbias = vector(C)};
    measure("its backward", OP_NORM_BWD, &b);
    n.drop = b.drop = (struct dropout){.p = 0.1f, .seed = 1};
    measure("residual + LayerNorm, dropout", OP_NORM, &n);
    measure("its backward", OP_NORM_BWD, &b);
}

static void bench_wide_norms(void)
{
    int64_t rows = 8192, width = 4096;
    struct tensor w = set(vector(width), 0), x = set(floats(rows, width), 0);
    struct norm_args n = {.kind = NORM_RMS,
                          .eps = 1e-5f,
                          .y = floats(rows, width),
                          .r = floats(rows, width),
                          .rstd = vector(rows),
                          .x = x,
                          .a = set(floats(rows, width), 0),
                          .w = w};
    measure("residual + RMSNorm 8192 x 4096", OP_NORM, &n);
    struct norm_bwd_args b = {.kind = NORM_RMS,
                              .dr = n.a,
                              .dy = x,
                              .r = n.r,
                              .rstd = n.rstd,
                              .w = w,
                              .dw = vector(width),
                              .da = n.a};
    measure("its backward", OP_NORM_BWD, &b);
}

static void bench_embed(void)
{
    struct tensor id = set(slab_1d(&memory, DTYPE_I32, N), V);
    struct tensor position = set(slab_1d(&memory, DTYPE_I32, N), 1024), y = set(floats(N, C), 0);
    struct tensor tok = set(floats(V, C), 0), pos = set(floats(1024, C), 0);
    struct embed_args f = {.y = y, .id = id, .tok = tok, .pos = pos, .position = position};
    measure("embedding 32768 x 768", OP_EMBED, &f);
    struct embed_bwd_args b = {.dy = y, .id = id, .dtok = tok, .dpos = pos, .position = position};
    measure("its backward", OP_EMBED_BWD, &b);
    b = (struct embed_bwd_args){.dy = y, .id = set(id, 40), .dtok = tok};
    measure("backward, 40 different ids", OP_EMBED_BWD, &b);
}

static void bench_blocks(void)
{
    struct tensor x = set(floats(N, 2 * F), 0), y = set(floats(N, F), 0);
    measure("SwiGLU 32768 x 2048", OP_GLU, &(struct glu_args){.y = y, .x = x});
    measure("its backward", OP_GLU_BWD, &(struct glu_bwd_args){.dx = x, .dy = y, .x = x});
    struct rope_args r = {.x = tensor_heads(x, 32),
                          .cos = set(floats(2048, 64), 0),
                          .sin = set(floats(2048, 64), 0),
                          .position = set(slab_1d(&memory, DTYPE_I32, N), 2048),
                          .rotary = 128};
    measure("RoPE 32768 x 32 x 128", OP_ROPE, &r);
}

static void bench_loss(void)
{
    struct tensor logits = set(floats(LOSS_ROWS, V), 0), sum = vector(LOSS_ROWS);
    struct tensor label = set(slab_1d(&memory, DTYPE_I32, LOSS_ROWS), V), max = vector(LOSS_ROWS);
    struct tensor target = vector(LOSS_ROWS);
    measure("cross-entropy, stats 4096 x 50304", OP_XENT_STATS,
            &(struct xent_stats_args){
                .logits = logits, .label = label, .max = max, .sum = sum, .target = target});
    measure("cross-entropy, loss and gradient", OP_XENT_LOSS,
            &(struct xent_loss_args){.logits = logits,
                                     .label = label,
                                     .max = max,
                                     .sum = sum,
                                     .target = target,
                                     .mask = set(vector(LOSS_ROWS), 0),
                                     .loss = vector(LOSS_ROWS),
                                     .total = slab_1d(&memory, DTYPE_F64, 1),
                                     .scale = 1,
                                     .grad = true});
}

static void bench_optimizer(void)
{
    struct tensor v = vector(PARAMETERS);
    struct adamw_args a = {.p = set(vector(PARAMETERS), 0),
                           .g = set(vector(PARAMETERS), 0),
                           .m = set(vector(PARAMETERS), 0),
                           .v = v,
                           .values = slab_1d(&memory, DTYPE_F64, STEP_VALUES),
                           .beta1 = 0.9,
                           .beta2 = 0.999,
                           .eps = 1e-8};
    const struct step_values now = step_values_make(1e-4, 0.1, 10, a.beta1, a.beta2);
    dev.fn->copy(&dev, STREAM_COMPUTE, a.values.data, &now, sizeof(now));
    ops_run(&ops, OP_FILL, &(struct fill_args){.y = v, .value = 1e-3});
    measure("AdamW 134 M", OP_ADAMW, &a);
    measure("sum of squares 134 M", OP_SUMSQ,
            &(struct sumsq_args){.total = slab_1d(&memory, DTYPE_F64, 1), .x = a.g});
    measure("add 134 M", OP_COPY, &(struct copy_args){.y = a.p, .x = a.g, .accumulate = true});
}

static void bench_half_norms(void)
{
    struct tensor w = set(half_vector(C), 0), x = set(halves(2 * N, C), 0);
    struct norm_args n = {.kind = NORM_LAYER,
                          .eps = 1e-5f,
                          .y = halves(2 * N, C),
                          .r = halves(2 * N, C),
                          .mean = vector(2 * N),
                          .rstd = vector(2 * N),
                          .x = x,
                          .a = set(halves(2 * N, C), 0),
                          .bias = w,
                          .w = w,
                          .b = w};
    measure("bf16: residual + LayerNorm 65536 x 768", OP_NORM, &n);
    struct norm_bwd_args b = {.kind = NORM_LAYER,
                              .dr = set(halves(2 * N, C), 0),
                              .dy = x,
                              .r = n.r,
                              .mean = n.mean,
                              .rstd = n.rstd,
                              .w = w,
                              .dw = vector(C),
                              .db = vector(C),
                              .da = halves(2 * N, C),
                              .dbias = vector(C)};
    measure("its backward", OP_NORM_BWD, &b);
    struct tensor id = set(slab_1d(&memory, DTYPE_I32, 2 * N), V);
    struct embed_args f = {.y = x, .id = id, .tok = set(halves(V, C), 0)};
    measure("bf16: embedding 65536 x 768", OP_EMBED, &f);
    struct embed_bwd_args g = {.dy = x, .id = id, .dtok = set(floats(V, C), 0)};
    measure("its backward", OP_EMBED_BWD, &g);
    n.drop = b.drop = (struct dropout){.p = 0.1f, .seed = 1};
    measure("bf16: residual + LayerNorm, dropout", OP_NORM, &n);
    measure("its backward", OP_NORM_BWD, &b);
    f.drop = n.drop;
    measure("bf16: embedding, dropout", OP_EMBED, &f);
}

static void bench_half_blocks(void)
{
    struct tensor x = set(halves(2 * N, 2 * F), 0), y = set(halves(2 * N, F), 0);
    measure("bf16: SwiGLU 65536 x 2048", OP_GLU, &(struct glu_args){.y = y, .x = x});
    measure("its backward", OP_GLU_BWD, &(struct glu_bwd_args){.dx = x, .dy = y, .x = x});
    struct rope_args r = {.x = tensor_heads(x, 32),
                          .cos = set(floats(2048, 64), 0),
                          .sin = set(floats(2048, 64), 0),
                          .position = set(slab_1d(&memory, DTYPE_I32, 2 * N), 2048),
                          .rotary = 128};
    measure("bf16: RoPE 65536 x 32 x 128", OP_ROPE, &r);
}

static void bench_half_loss(void)
{
    const int64_t rows = 2 * LOSS_ROWS;
    struct tensor logits = set(halves(rows, V), 0), sum = vector(rows), max = vector(rows);
    struct tensor label = set(slab_1d(&memory, DTYPE_I32, rows), V), target = vector(rows);
    measure("bf16: cross-entropy, stats 8192 x 50304", OP_XENT_STATS,
            &(struct xent_stats_args){
                .logits = logits, .label = label, .max = max, .sum = sum, .target = target});
    measure("bf16: loss and gradient", OP_XENT_LOSS,
            &(struct xent_loss_args){.logits = logits,
                                     .label = label,
                                     .max = max,
                                     .sum = sum,
                                     .target = target,
                                     .mask = set(vector(rows), 0),
                                     .loss = vector(rows),
                                     .total = slab_1d(&memory, DTYPE_F64, 1),
                                     .scale = 1,
                                     .grad = true});
}

int main(void)
{
    struct err e;
    static void (*const parts[])(void) = {bench_norms,      bench_wide_norms,  bench_embed,
                                          bench_blocks,     bench_loss,        bench_optimizer,
                                          bench_half_norms, bench_half_blocks, bench_half_loss};
    or_exit(dev_cuda_open(&dev, 0, &e), &e);
    slab_init(&workspace, "workspace", PLACE_DEVICE);
    slab_bytes(&workspace, (size_t)256 << 20);
    or_exit(slab_bind(&workspace, &dev, &e), &e);
    slab_init(&memory, "memory", PLACE_DEVICE);
    slab_bytes(&memory, (size_t)5 << 30);
    or_exit(slab_bind(&memory, &dev, &e), &e);
    or_exit(ops_cuda_open(&ops, &dev, &workspace, &(struct ops_config){.real = DTYPE_F32}, &e), &e);
    printf("%s\n", dev.desc.name);
    struct tensor from = set(vector(256 << 20), 0), to = vector(256 << 20);
    measure("copy 1 GiB", OP_COPY, &(struct copy_args){.y = to, .x = from});
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        slab_reset(&memory, 0);
        parts[i]();
    }
    ops_close(&ops);
    slab_release(&memory, &dev);
    slab_release(&workspace, &dev);
    dev_close(&dev);
    return 0;
}

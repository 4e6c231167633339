/* SPDX-License-Identifier: Apache-2.0 */

/*
 * TFLOP/s of causal attention in bf16, forward and backward: cuDNN deterministic, cuDNN with atomic
 * adds, our own kernels: those for the device, and those of every device; and of our own in fp32
 * and TF32. Half of the products of a square count, the backward as 2.5 forwards. Medians of
 * events; packed rows of q, k and v. One GPU, no arguments.
 */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/mem.h"
#include "base/core/rng.h"
#include "train/ops/cuda/flash.h"
#include "train/ops/cuda/flash_f32.h"
#include "train/ops/cuda/sdpa.h"
#include "train/tensor/cuda/dev_cuda.h"

enum { ROUNDS = 12, PATTERN = 1 << 20 };

static struct dev dev;
static struct sdpa *cudnn;
static struct slab memory;

struct form {
    int64_t batch, tokens, heads, groups, dim;
};

struct bench {
    struct form f;
    enum dtype type;
    struct sdpa_plan *plan; /* or NULL: ours */
    enum flash_kernels kernels;
    enum f32_products products; /* in F32 */
    struct sdpa_tensors t;
    struct attention_bwd_args args;
    void *workspace;
};

static void or_exit(int code, const struct err *e)
{
    if (code) {
        fprintf(stderr, "bench_attention: %s\n", e->msg);
        exit(code);
    }
}

static void *numbers(enum dtype type, int64_t count)
{
    const size_t each = dtype_size(type);
    float *x = mem_new(PATTERN, sizeof(float));
    uint16_t *bits = mem_new(PATTERN, 2);
    char *p = slab_bytes(&memory, (size_t)count * each);
    rng_normal(1, RNG_TEST, 3, 0, PATTERN, x);
    for (int64_t i = 0; i < PATTERN; i++) {
        uint32_t u;
        memcpy(&u, &x[i], sizeof(u));
        bits[i] = (uint16_t)(u >> 16);
    }
    for (int64_t i = 0; i < count; i += PATTERN)
        dev.fn->copy(&dev, STREAM_COMPUTE, p + (size_t)i * each,
                     type == DTYPE_F32 ? (void *)x : bits,
                     (size_t)(count - i < PATTERN ? count - i : PATTERN) * each);
    dev.fn->sync(&dev, STREAM_COMPUTE);
    free(x);
    free(bits);
    return p;
}

/* `count` heads from the first-th number of each row on. */
static struct tensor heads(const struct bench *b, const void *p, int64_t first, int64_t count,
                           int64_t stride)
{
    struct tensor t = tensor_nd((char *)p + (size_t)first * dtype_size(b->type), b->type, 3,
                                (const int64_t[]){b->f.batch * b->f.tokens, count, b->f.dim});
    t.stride = stride;
    return t;
}

/* first, first + step, ... */
static struct tensor series(int64_t count, int64_t first, int64_t step)
{
    struct tensor t = slab_1d(&memory, DTYPE_I32, count);
    int32_t *x = mem_new((size_t)count, sizeof(*x));
    for (int64_t i = 0; i < count; i++)
        x[i] = (int32_t)(first + i * step);
    dev.fn->copy(&dev, STREAM_COMPUTE, t.data, x, (size_t)count * sizeof(*x));
    dev.fn->sync(&dev, STREAM_COMPUTE);
    free(x);
    return t;
}

/* b->f and b->type are given. */
static void make(struct bench *b)
{
    const struct form f = b->f;
    const int64_t n = f.batch * f.tokens, q = f.heads * f.dim, k = f.groups * f.dim,
                  row = q + 2 * k;
    const size_t each = dtype_size(b->type);
    slab_reset(&memory, 0);
    char *qkv = numbers(b->type, n * row), *dqkv = slab_bytes(&memory, (size_t)(n * row) * each);
    b->t = (struct sdpa_tensors){.q = qkv,
                                 .k = qkv + (size_t)q * each,
                                 .v = qkv + (size_t)(q + k) * each,
                                 .o = slab_bytes(&memory, (size_t)(n * q) * each),
                                 .lse = slab_bytes(&memory, (size_t)(n * f.heads) * 4),
                                 .dout = numbers(b->type, n * q),
                                 .dq = dqkv,
                                 .dk = dqkv + (size_t)q * each,
                                 .dv = dqkv + (size_t)(q + k) * each};
    b->args = (struct attention_bwd_args){.fwd = {.o = heads(b, b->t.o, 0, f.heads, q),
                                                  .lse = tensor_2d(b->t.lse, DTYPE_F32, f.heads, n),
                                                  .q = heads(b, qkv, 0, f.heads, row),
                                                  .k = heads(b, qkv, q, f.groups, row),
                                                  .v = heads(b, qkv, q + k, f.groups, row),
                                                  .q_start = series(f.batch + 1, 0, f.tokens),
                                                  .k_start = series(f.batch, 0, f.tokens),
                                                  .k_len = series(f.batch, f.tokens, 0),
                                                  .max_len = f.tokens,
                                                  .scale = 1 / sqrtf((float)f.dim)},
                                          .dout = heads(b, b->t.dout, 0, f.heads, q),
                                          .dq = heads(b, dqkv, 0, f.heads, row),
                                          .dk = heads(b, dqkv, q, f.groups, row),
                                          .dv = heads(b, dqkv, q + k, f.groups, row)};
}

static void issue(struct bench *b, bool backward)
{
    if (b->plan && backward)
        sdpa_backward(cudnn, b->plan, &b->t, b->workspace);
    else if (b->plan)
        sdpa_forward(cudnn, b->plan, &b->t, b->workspace);
    else if (b->type == DTYPE_F32 && backward)
        flash_f32_attention_bwd(&dev, &b->args, b->products, b->workspace);
    else if (b->type == DTYPE_F32)
        flash_f32_attention(&dev, &b->args.fwd, b->products);
    else if (backward)
        flash_attention_bwd(&dev, &b->args, b->kernels, b->workspace);
    else
        flash_attention(&dev, &b->args.fwd, b->kernels);
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double rate(struct bench *b, bool backward)
{
    double ms[ROUNDS], flops = 2.0 * (double)(b->f.batch * b->f.heads * b->f.dim) *
                               (double)b->f.tokens * (double)b->f.tokens * (backward ? 2.5 : 1);
    struct err e;
    for (int i = -3; i < ROUNDS; i++) {
        dev.fn->record(&dev, STREAM_COMPUTE, 0);
        issue(b, backward);
        dev.fn->record(&dev, STREAM_COMPUTE, 1);
        double t = dev_cuda_elapsed(&dev, 0, 1);
        if (i >= 0)
            ms[i] = t;
    }
    or_exit(dev_fault(&dev, &e), &e);
    qsort(ms, ROUNDS, sizeof(ms[0]), by_size);
    return flops / ms[ROUNDS / 2] * 1e-9;
}

/* deterministic: 1 and 0 for cuDNN's two backwards, -1 for our own kernels. */
static void measure(struct form f, int deterministic, enum flash_kernels kernels)
{
    struct bench b = {.f = f, .type = DTYPE_BF16, .kernels = kernels};
    struct err e;
    make(&b);
    int64_t q = f.heads * f.dim, row = q + 2 * f.groups * f.dim;
    struct sdpa_shape shape = {.batch = f.batch,
                               .tokens = f.tokens,
                               .heads = f.heads,
                               .groups = f.groups,
                               .dim = f.dim,
                               .stride = {row, row, row, q, q, row, row, row},
                               .type = DTYPE_BF16,
                               .scale = b.args.fwd.scale,
                               .causal = true,
                               .deterministic = deterministic == 1,
                               .backward = true};
    if (deterministic >= 0)
        or_exit(sdpa_prepare(cudnn, &shape, &b.plan, &e), &e);
    b.workspace = slab_bytes(&memory, b.plan ? sdpa_workspace(b.plan) : flash_bwd_scratch(&b.args));
    double forward = rate(&b, false);
    printf("%8.0f /%4.0f", forward, rate(&b, true));
    fflush(stdout);
    if (b.plan)
        sdpa_plan_free(cudnn, b.plan);
}

/* Our own kernels in F32. */
static void measure_f32(struct form f, enum f32_products products)
{
    struct bench b = {.f = f, .type = DTYPE_F32, .products = products};
    make(&b);
    b.workspace = slab_bytes(&memory, flash_f32_bwd_scratch(&b.args));
    double forward = rate(&b, false);
    printf("%8.1f /%5.1f", forward, rate(&b, true));
    fflush(stdout);
}

int main(void)
{
    static const struct form forms[] = {
        {16, 1024, 12, 12, 64}, {8, 2048, 16, 16, 64},  {4, 4096, 32, 8, 64},
        {1, 16384, 16, 16, 64}, {16, 1024, 12, 2, 128}, {4, 4096, 32, 8, 128},
        {1, 16384, 16, 4, 128},
    };
    struct err e;
    or_exit(dev_cuda_open(&dev, 0, &e), &e);
    or_exit(sdpa_open(&cudnn, &dev, NULL, NULL, &e), &e);
    slab_init(&memory, "memory", PLACE_DEVICE);
    slab_bytes(&memory, (size_t)32 << 30);
    or_exit(slab_bind(&memory, &dev, &e), &e);
    printf("%s, cuDNN %s; TFLOP/s forward / backward\n%-34s%14s%14s%14s%14s%15s%15s\n",
           dev.desc.name, sdpa_version(cudnn), "sequences, tokens, heads, of", "deterministic",
           "atomic adds", "ours", "portable", "fp32", "TF32");
    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
        const struct form f = forms[i];
        printf("%3lld x %-6lld %3lld on %-3lld of %-11lld", (long long)f.batch, (long long)f.tokens,
               (long long)f.heads, (long long)f.groups, (long long)f.dim);
        measure(f, 1, FLASH_FASTEST);
        measure(f, 0, FLASH_FASTEST);
        measure(f, -1, FLASH_FASTEST);
        measure(f, -1, FLASH_PORTABLE);
        measure_f32(f, F32_EXACT);
        measure_f32(f, F32_TF32);
        printf("\n");
    }
    slab_release(&memory, &dev);
    sdpa_close(cudnn);
    dev_close(&dev);
    return 0;
}

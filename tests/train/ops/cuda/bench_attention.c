/* SPDX-License-Identifier: Apache-2.0 */

/*
 * TFLOP/s of causal attention in bf16, forward and backward: cuDNN deterministic, cuDNN with atomic
 * adds, our own kernels: those for the device, the same with dropout, those of every device, plain
 * loops up to 4096 tokens; then in F32 with products in TF32 and in fp32; -: not of its forms, or
 * more memory than 16 GiB. Products of queries with the keys that they see count, the backward
 * as 2.5 forwards. In brackets the GiB of workspace. Medians of events; packed rows of q, k and v.
 * One GPU; arguments: forms as sequences,tokens,heads,groups,dim[,window[,cap]] instead of its own.
 */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/mem.h"
#include "base/core/rng.h"
#include "train/ops/cuda/flash.h"
#include "train/ops/cuda/flash_f32.h"
#include "train/ops/cuda/kernels.h"
#include "train/ops/cuda/sdpa.h"
#include "train/tensor/cuda/dev_cuda.h"

enum { ROUNDS = 12, PATTERN = 1 << 20 };
static const size_t most_bytes = (size_t)16 << 30;

static struct dev dev;
static struct sdpa *cudnn;
static struct slab memory;

struct form {
    int64_t batch, tokens, heads, groups, dim, window, cap;
};

enum who { CUDNN, CUDNN_ATOMIC, OWN, OWN_DROP, OWN_PORTABLE, LOOPS, OWN_TF32, OWN_FP32, WHO_COUNT };

struct bench {
    struct form f;
    enum dtype type;
    struct sdpa_plan *plan; /* or NULL: ours */
    enum who who;
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
                                                  .even = true,
                                                  .window = f.window,
                                                  .cap = (float)f.cap,
                                                  .scale = 1 / sqrtf((float)f.dim)},
                                          .dout = heads(b, b->t.dout, 0, f.heads, q),
                                          .dq = heads(b, dqkv, 0, f.heads, row),
                                          .dk = heads(b, dqkv, q, f.groups, row),
                                          .dv = heads(b, dqkv, q + k, f.groups, row)};
}

static enum f32_products products_of(enum who who)
{
    return who == OWN_TF32 ? F32_TF32 : F32_EXACT;
}

static void issue(struct bench *b, bool backward)
{
    static struct ops loops = {.dev = &dev};
    enum flash_kernels which = b->who <= OWN_DROP ? FLASH_FASTEST : FLASH_PORTABLE;
    if (b->plan && backward)
        sdpa_backward(cudnn, b->plan, &b->t, b->workspace);
    else if (b->plan)
        sdpa_forward(cudnn, b->plan, &b->t, b->workspace);
    else if (b->type == DTYPE_F32 && backward)
        flash_f32_attention_bwd(&dev, &b->args, products_of(b->who), b->workspace);
    else if (b->type == DTYPE_F32)
        flash_f32_attention(&dev, &b->args.fwd, products_of(b->who));
    else if (b->who == LOOPS && backward)
        cuda_attention_bwd(&loops, &b->args, b->workspace);
    else if (b->who == LOOPS)
        cuda_attention(&loops, &b->args.fwd, NULL);
    else if (backward)
        flash_attention_bwd(&dev, &b->args, which, b->workspace);
    else
        flash_attention(&dev, &b->args.fwd, which);
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* Pairs of a query and a key that it sees, as half a square of tokens, or the band of a window. */
static double pairs(struct form f)
{
    double t = (double)f.tokens, w = f.window && f.window < f.tokens ? (double)f.window : t;
    return w * t - w * w / 2;
}

static double rate(struct bench *b, bool backward)
{
    double ms[ROUNDS], flops = 4.0 * (double)(b->f.batch * b->f.heads * b->f.dim) * pairs(b->f) *
                               (backward ? 2.5 : 1);
    struct err e;
    int rounds = b->who == LOOPS ? 2 : ROUNDS;
    for (int i = b->who == LOOPS ? -1 : -3; i < rounds; i++) {
        dev.fn->record(&dev, STREAM_COMPUTE, 0);
        issue(b, backward);
        dev.fn->record(&dev, STREAM_COMPUTE, 1);
        double t = dev_cuda_elapsed(&dev, 0, 1);
        if (i >= 0)
            ms[i] = t;
    }
    or_exit(dev_fault(&dev, &e), &e);
    qsort(ms, (size_t)rounds, sizeof(ms[0]), by_size);
    return flops / ms[rounds / 2] * 1e-9;
}

static void measure(struct form f, enum who who)
{
    struct bench b = {.f = f, .type = who >= OWN_TF32 ? DTYPE_F32 : DTYPE_BF16, .who = who};
    struct err e;
    make(&b);
    if (who == OWN_DROP)
        b.args.fwd.drop = (struct dropout){.p = 0.1f, .seed = 1, .sub = 2};
    int64_t q = f.heads * f.dim, row = q + 2 * f.groups * f.dim;
    struct sdpa_shape shape = {.batch = f.batch,
                               .tokens = f.tokens,
                               .heads = f.heads,
                               .groups = f.groups,
                               .dim = f.dim,
                               .stride = {row, row, row, q, q, row, row, row},
                               .type = DTYPE_BF16,
                               .scale = b.args.fwd.scale,
                               .cap = (float)f.cap,
                               .window = f.window,
                               .causal = true,
                               .deterministic = who == CUDNN,
                               .backward = true};
    bool taken = who == LOOPS ? f.tokens <= 4096 : flash_takes_bwd(&b.args);
    if (b.type == DTYPE_F32)
        taken = flash_f32_takes_bwd(&dev.desc, &b.args, products_of(who));
    else if (who <= CUDNN_ATOMIC)
        taken = !sdpa_prepare(cudnn, &shape, &b.plan, &e);
    size_t bytes = b.plan                ? sdpa_workspace(b.plan)
                   : b.type == DTYPE_F32 ? flash_f32_bwd_scratch(&b.args)
                                         : flash_bwd_scratch(&b.args);
    if (taken && bytes <= most_bytes) {
        b.workspace = slab_bytes(&memory, bytes);
        double forward = rate(&b, false);
        printf(who == LOOPS ? "%6.1f /%4.1f [%4.1f]" : "%6.0f /%4.0f [%4.1f]", forward,
               rate(&b, true), (double)bytes / (1 << 30));
    } else {
        printf("%18s", "-");
    }
    fflush(stdout);
    if (b.plan)
        sdpa_plan_free(cudnn, b.plan);
}

static void row_of(struct form f)
{
    printf("%2lld x %-6lld %2lld on %-2lld of %-4lld%5lld%4lld", (long long)f.batch,
           (long long)f.tokens, (long long)f.heads, (long long)f.groups, (long long)f.dim,
           (long long)f.window, (long long)f.cap);
    for (int who = 0; who < WHO_COUNT; who++)
        measure(f, (enum who)who);
    printf("\n");
}

static struct form form_of(const char *text)
{
    long long v[7] = {0};
    int n = sscanf(text, "%lld,%lld,%lld,%lld,%lld,%lld,%lld", &v[0], &v[1], &v[2], &v[3], &v[4],
                   &v[5], &v[6]);
    if (n < 5) {
        fprintf(stderr, "bench_attention: %s: expected five to seven numbers\n", text);
        exit(2);
    }
    return (struct form){v[0], v[1], v[2], v[3], v[4], v[5], v[6]};
}

int main(int argc, char **argv)
{
    static const struct form forms[] = {
        {64, 1024, 12, 12, 64},      {16, 2048, 12, 12, 64},         {16, 1024, 12, 12, 64},
        {8, 2048, 16, 16, 64},       {4, 4096, 32, 8, 64},           {1, 16384, 16, 16, 64},
        {16, 1024, 12, 2, 128},      {4, 4096, 32, 8, 128},          {1, 16384, 16, 4, 128},
        {1, 32768, 32, 8, 64},       {4, 4096, 4, 1, 256},           {4, 4096, 4, 1, 256, 512},
        {2, 4096, 32, 32, 96, 2047}, {2, 8192, 32, 8, 128, 4096},    {1, 32768, 16, 16, 64, 1024},
        {2, 4096, 8, 4, 256, 0, 50}, {2, 4096, 8, 4, 256, 2048, 50},
    };
    struct err e;
    or_exit(dev_cuda_open(&dev, 0, &e), &e);
    or_exit(sdpa_open(&cudnn, &dev, NULL, NULL, &e), &e);
    slab_init(&memory, "memory", PLACE_DEVICE);
    slab_bytes(&memory, (size_t)32 << 30);
    or_exit(slab_bind(&memory, &dev, &e), &e);
    printf("%s, cuDNN %s; TFLOP/s forward / backward\n%-33s%18s%18s%18s%18s%18s%18s%18s%18s\n",
           dev.desc.name, sdpa_version(cudnn), "rows, heads, window, cap", "deterministic",
           "atomic adds", "ours", "dropout", "portable", "loops", "TF32", "fp32");
    for (int i = 1; i < argc; i++)
        row_of(form_of(argv[i]));
    for (size_t i = 0; argc < 2 && i < sizeof(forms) / sizeof(forms[0]); i++)
        row_of(forms[i]);
    slab_release(&memory, &dev);
    sdpa_close(cudnn);
    dev_close(&dev);
    return 0;
}

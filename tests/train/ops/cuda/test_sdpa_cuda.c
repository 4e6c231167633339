/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Attention through cuDNN against the plain twin in double, on the same rounded inputs: packed rows
 * with poisoned outputs, every element written, nothing outside of the rows. Errors are
 * ||have - ref|| / ||ref||. Without a GPU or without cuDNN the cases are skipped; that cuDNN takes
 * the graphs is also seen without a GPU, where its libraries are.
 */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/mem.h"
#include "tests/t.h"
#include "tests/train/ops/cuda/narrow.h"
#include "tests/train/ops/world.h"
#include "train/tensor/cuda/library.h"
#include "train/ops/cuda/sdpa.h"
#include "train/tensor/cuda/dev_cuda.h"

enum { WORKSPACE = 16 << 20, RERUNS = 5, POISON = 0xffff };

static const double bound = 5e-3, bound_f16 = 1e-3, bound_lse = 1e-4;

static struct world w; /* in double */
static struct dev gpu;
static struct sdpa *s;

/* ---- a call -----------------------------------------------------------------------------------
 */

/* A matrix on the host in bits and in double, and on the device. */
struct side {
    int64_t rows, cols, stride; /* of the device's; the double has no gaps */
    uint16_t *bits;
    struct tensor real;
    char *there;
};

static struct side side(int64_t rows, int64_t heads, int64_t dim, int64_t stride, double scale,
                        enum dtype type)
{
    struct side t = {rows,
                     heads * dim,
                     stride,
                     mem_new((size_t)(rows * stride), 2),
                     world_3d(&w, scale, rows, heads, dim, 0),
                     NULL};
    struct err e;
    void *p;
    for (int64_t i = 0; i < rows * stride; i++)
        t.bits[i] = POISON;
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < t.cols && scale > 0; j++) {
            uint16_t u = narrow_bits(type, world_get(t.real, i * t.cols + j));
            t.bits[i * stride + j] = u;
            world_set(t.real, i * t.cols + j, narrow_value(type, u));
        }
    T_OK(gpu.fn->alloc(&gpu, PLACE_DEVICE, (size_t)(rows * stride) * 2, &p, &e), &e);
    t.there = p;
    gpu.fn->copy(&gpu, STREAM_COMPUTE, p, t.bits, (size_t)(rows * stride) * 2);
    return t;
}

static void side_free(struct side *t)
{
    gpu.fn->release(&gpu, PLACE_DEVICE, t->there);
    free(t->bits);
}

static void fetch(struct side *t)
{
    struct err e;
    gpu.fn->copy(&gpu, STREAM_COMPUTE, t->bits, t->there, (size_t)(t->rows * t->stride) * 2);
    gpu.fn->sync(&gpu, STREAM_COMPUTE);
    T_OK(dev_fault(&gpu, &e), &e);
}

/* Columns first .. first + cols of `t` against a reference without gaps; a number counts as at
 * least 1e-3, since a window of one key leaves gradients of zero. */
static void near(const char *what, const struct side *t, int64_t first, struct tensor ref,
                 enum dtype type)
{
    double square = 0, off = 0;
    int64_t cols = ref.size[1] * ref.size[2];
    for (int64_t i = 0; i < t->rows; i++)
        for (int64_t j = 0; j < cols; j++) {
            double r = world_get(ref, i * cols + j);
            double x = narrow_value(type, t->bits[i * t->stride + first + j]);
            square += r * r;
            off += (x - r) * (x - r);
        }
    double least = (double)(t->rows * cols) * 1e-6;
    double error = sqrt(off / (square > least ? square : least));
    printf("# %s: %.2e\n", what, error);
    if (!(error < (type == DTYPE_BF16 ? bound : bound_f16)))
        t_fail(__FILE__, __LINE__, "%s: relative error %.3g", what, error);
}

static void only_written(const char *what, const struct side *t)
{
    for (int64_t i = 0; i < t->rows; i++)
        for (int64_t j = t->cols; j < t->stride; j++)
            if (t->bits[i * t->stride + j] != POISON)
                t_fail(__FILE__, __LINE__, "%s: row %lld was written behind its end", what,
                       (long long)i);
}

struct form {
    int64_t batch, tokens, heads, groups, dim;
    enum dtype type;
    bool causal, deterministic;
    double scale; /* of the inputs */
    int64_t window;
    double cap;
};

struct all {
    struct form f;
    struct side qkv, o, dout, dqkv; /* packed rows, then gaps of 8 */
    struct sdpa_plan *plan;
    void *lse, *workspace;
    struct attention_bwd_args ref;
};

static struct tensor part(struct side *t, int64_t first, int64_t heads, int64_t dim)
{
    struct tensor x = t->real;
    x.data = (double *)x.data + first;
    x.size[1] = heads;
    x.size[2] = dim;
    return x;
}

static void *fresh(size_t bytes)
{
    struct err e;
    void *p;
    unsigned char *poison = mem_new(bytes + 1, 1);
    T_OK(gpu.fn->alloc(&gpu, PLACE_DEVICE, bytes, &p, &e), &e);
    memset(poison, 0xff, bytes);
    gpu.fn->copy(&gpu, STREAM_COMPUTE, p, poison, bytes);
    gpu.fn->sync(&gpu, STREAM_COMPUTE);
    free(poison);
    return p;
}

/* The plain twin on the same numbers. */
static void reference(struct all *a)
{
    const struct form f = a->f;
    int64_t n = f.batch * f.tokens, q = f.heads * f.dim, k = f.groups * f.dim;
    int64_t count = f.batch;
    int32_t *start = mem_new((size_t)count + 1, 4), *key = mem_new((size_t)count, 4),
            *length = mem_new((size_t)count, 4);
    for (int64_t i = 0; i < count; i++) {
        start[i] = key[i] = (int32_t)(i * f.tokens);
        length[i] = (int32_t)f.tokens;
    }
    start[count] = (int32_t)n;
    a->ref = (struct attention_bwd_args){.fwd = {.o = world_3d(&w, 1, n, f.heads, f.dim, 0),
                                                 .lse = world_2d(&w, 1, f.heads, n, 0),
                                                 .q = part(&a->qkv, 0, f.heads, f.dim),
                                                 .k = part(&a->qkv, q, f.groups, f.dim),
                                                 .v = part(&a->qkv, q + k, f.groups, f.dim),
                                                 .q_start = world_ints(&w, count + 1, start),
                                                 .k_start = world_ints(&w, count, key),
                                                 .k_len = world_ints(&w, count, length),
                                                 .max_len = f.tokens,
                                                 .window = f.window,
                                                 .cap = (float)f.cap,
                                                 .scale = 1 / sqrtf((float)f.dim)},
                                         .dout = a->dout.real,
                                         .dq = world_3d(&w, 1, n, f.heads, f.dim, 0),
                                         .dk = world_3d(&w, 1, n, f.groups, f.dim, 0),
                                         .dv = world_3d(&w, 1, n, f.groups, f.dim, 0)};
    op_attention(&w.ops, &a->ref.fwd);
    op_attention_bwd(&w.ops, &a->ref);
    free(start);
    free(key);
    free(length);
}

static void make(struct all *a, struct form f)
{
    int64_t n = f.batch * f.tokens, q = f.heads * f.dim, k = f.groups * f.dim, row = q + 2 * k;
    struct err e;
    world_clear(&w, (uint64_t)f.tokens);
    *a = (struct all){.f = f};
    a->qkv = side(n, f.heads + 2 * f.groups, f.dim, row + 8, f.scale, f.type);
    a->dout = side(n, f.heads, f.dim, q + 8, 1, f.type);
    a->o = side(n, f.heads, f.dim, q + 8, 0, f.type);
    a->dqkv = side(n, f.heads + 2 * f.groups, f.dim, row + 8, 0, f.type);
    struct sdpa_shape shape = {
        .batch = f.batch,
        .tokens = f.tokens,
        .heads = f.heads,
        .groups = f.groups,
        .dim = f.dim,
        .stride = {row + 8, row + 8, row + 8, q + 8, q + 8, row + 8, row + 8, row + 8},
        .type = f.type,
        .scale = 1 / sqrtf((float)f.dim),
        .cap = (float)f.cap,
        .window = f.window,
        .causal = f.causal,
        .deterministic = f.deterministic,
        .backward = true};
    T_OK(sdpa_prepare(s, &shape, &a->plan, &e), &e);
    a->lse = fresh((size_t)(n * f.heads) * sizeof(float));
    a->workspace = fresh(sdpa_workspace(a->plan));
}

static void run(struct all *a)
{
    int64_t q = a->f.heads * a->f.dim * 2, k = a->f.groups * a->f.dim * 2; /* bytes */
    struct sdpa_tensors t = {.q = a->qkv.there,
                             .k = a->qkv.there + q,
                             .v = a->qkv.there + q + k,
                             .o = a->o.there,
                             .lse = a->lse,
                             .dout = a->dout.there,
                             .dq = a->dqkv.there,
                             .dk = a->dqkv.there + q,
                             .dv = a->dqkv.there + q + k};
    sdpa_forward(s, a->plan, &t, a->workspace);
    sdpa_backward(s, a->plan, &t, a->workspace);
    fetch(&a->o);
    fetch(&a->dqkv);
}

static void unmake(struct all *a)
{
    side_free(&a->qkv);
    side_free(&a->o);
    side_free(&a->dout);
    side_free(&a->dqkv);
    sdpa_plan_free(s, a->plan);
    gpu.fn->release(&gpu, PLACE_DEVICE, a->lse);
    gpu.fn->release(&gpu, PLACE_DEVICE, a->workspace);
}

/* cuDNN's is [batch, heads, tokens], the op's [heads, batch * tokens]. */
static void near_lse(const struct all *a)
{
    const struct form f = a->f;
    size_t count = (size_t)(f.batch * f.tokens * f.heads);
    float *x = mem_new(count, sizeof(float));
    double worst = 0;
    gpu.fn->copy(&gpu, STREAM_COMPUTE, x, a->lse, count * sizeof(float));
    gpu.fn->sync(&gpu, STREAM_COMPUTE);
    for (int64_t b = 0; b < f.batch; b++)
        for (int64_t h = 0; h < f.heads; h++)
            for (int64_t t = 0; t < f.tokens; t++) {
                double r = world_get(a->ref.fwd.lse, (h * f.batch + b) * f.tokens + t);
                double off = fabs((double)x[(b * f.heads + h) * f.tokens + t] - r);
                worst = off > worst || isnan(off) ? off : worst;
            }
    free(x);
    printf("# lse: %.2e\n", worst);
    if (!(worst < bound_lse))
        t_fail(__FILE__, __LINE__, "lse is off by %.3g", worst);
}

static void open_all(void)
{
    struct err e;
    if (dev_cuda_open(&gpu, 0, &e))
        t_skip("%s", e.msg);
    if (sdpa_open(&s, &gpu, NULL, NULL, &e))
        t_skip("%s", e.msg);
    world_open(&w, DTYPE_F64, "ref", 1, WORKSPACE);
}

static void close_all(void)
{
    world_close(&w);
    sdpa_close(s);
    dev_close(&gpu);
}

static void check(struct form f)
{
    struct all a;
    int64_t q = f.heads * f.dim, k = f.groups * f.dim;
    open_all();
    make(&a, f);
    run(&a);
    reference(&a);
    near("o", &a.o, 0, a.ref.fwd.o, f.type);
    near_lse(&a);
    near("dq", &a.dqkv, 0, a.ref.dq, f.type);
    near("dk", &a.dqkv, q, a.ref.dk, f.type);
    near("dv", &a.dqkv, q + k, a.ref.dv, f.type);
    only_written("o", &a.o);
    only_written("dqkv", &a.dqkv);
    unmake(&a);
    close_all();
}

/* ---- cases ------------------------------------------------------------------------------------
 */

#define FORM(name, ...)                                                                            \
    static void name(void)                                                                         \
    {                                                                                              \
        check((struct form){__VA_ARGS__});                                                         \
    }

FORM(heads_of_64, 2, 512, 4, 4, 64, DTYPE_BF16, true, true, 1)
FORM(with_atomic_adds, 2, 512, 4, 4, 64, DTYPE_BF16, true, false, 1)
FORM(peaked, 1, 512, 4, 4, 64, DTYPE_BF16, true, true, 2)
FORM(odd_length, 2, 333, 3, 3, 64, DTYPE_BF16, true, true, 1)
FORM(grouped_64, 2, 400, 8, 2, 64, DTYPE_BF16, true, true, 1)
FORM(grouped_128, 1, 512, 6, 2, 128, DTYPE_BF16, true, true, 1)
FORM(grouped_atomic_adds, 1, 512, 6, 2, 128, DTYPE_BF16, true, false, 1)
FORM(heads_of_96, 1, 256, 2, 2, 96, DTYPE_BF16, true, true, 1)
FORM(heads_of_256, 1, 256, 2, 1, 256, DTYPE_BF16, true, true, 1)
FORM(half, 2, 512, 4, 4, 64, DTYPE_F16, true, true, 1)
FORM(half_grouped_128, 1, 384, 4, 2, 128, DTYPE_F16, true, true, 1)
FORM(window_64, 2, 512, 4, 4, 64, DTYPE_BF16, true, true, 1, 100)
FORM(window_odd, 2, 333, 6, 2, 96, DTYPE_BF16, true, true, 1, 77)
FORM(window_128, 1, 777, 4, 2, 128, DTYPE_BF16, true, true, 1, 256)
FORM(window_192, 1, 300, 4, 2, 192, DTYPE_BF16, true, true, 1, 129)
FORM(window_256, 2, 640, 4, 1, 256, DTYPE_BF16, true, true, 1, 200)
FORM(window_of_one, 1, 256, 4, 2, 64, DTYPE_BF16, true, true, 1, 1)
FORM(window_of_all, 1, 256, 4, 2, 64, DTYPE_BF16, true, true, 1, 1000)
FORM(window_atomic_adds, 2, 640, 4, 1, 256, DTYPE_BF16, true, false, 1, 200)
FORM(window_half, 2, 500, 4, 2, 64, DTYPE_F16, true, true, 1, 64)
FORM(cap_64, 2, 512, 4, 4, 64, DTYPE_BF16, true, true, 2, 0, 3)
FORM(cap_256, 1, 333, 4, 2, 256, DTYPE_BF16, true, true, 2, 0, 3)
FORM(cap_window_128, 1, 640, 4, 2, 128, DTYPE_BF16, true, true, 2, 100, 3)
FORM(cap_window_256, 1, 640, 4, 2, 256, DTYPE_BF16, true, true, 2, 100, 3)
FORM(cap_atomic_adds, 1, 640, 4, 2, 256, DTYPE_BF16, true, false, 2, 100, 3)
FORM(cap_half, 2, 400, 4, 2, 64, DTYPE_F16, true, true, 2, 90, 3)

/* The deterministic backward: equal bytes from equal inputs, whatever lies in the workspace. */
static void runs_alike(struct form f)
{
    struct all a;
    open_all();
    make(&a, f);
    run(&a);
    size_t bytes = (size_t)(a.dqkv.rows * a.dqkv.stride) * 2;
    uint16_t *first = mem_new(bytes, 1);
    memcpy(first, a.dqkv.bits, bytes);
    for (int i = 0; i < RERUNS; i++) {
        gpu.fn->zero(&gpu, STREAM_COMPUTE, a.workspace, sdpa_workspace(a.plan));
        run(&a);
        T_CHECK(memcmp(first, a.dqkv.bits, bytes) == 0);
    }
    free(first);
    unmake(&a);
    close_all();
}

static void same_bytes(void)
{
    runs_alike((struct form){4, 1024, 12, 12, 64, DTYPE_BF16, true, true, 1});
}

static void same_bytes_window(void)
{
    runs_alike((struct form){2, 2048, 4, 1, 256, DTYPE_BF16, true, true, 1, 512});
}

static void same_bytes_cap(void)
{
    runs_alike((struct form){2, 2048, 8, 4, 256, DTYPE_BF16, true, true, 1, 1024, 50});
}

/* cuDNN needs these to compile; any libcuda will do, that of the toolkit's stubs too. */
static void need_library(const char *const *names)
{
    struct library l;
    struct err e;
    if (library_open(&l, NULL, names, &e))
        t_skip("%s", e.msg);
    library_close(&l);
}

/* cuDNN compiles every form for an H100 that is only described to it. */
static void compiles_without_a_gpu(void)
{
    static const char h100[] =
        "{\"maxGridSize\":[2147483647,65535,65535],\"maxBlockSize\":[1024,1024,64],"
        "\"regsPerBlock\":65536,\"multiProcessorCount\":132,\"warpSize\":32,"
        "\"maxSharedMemoryPerBlock\":49152,\"maxSharedMemoryPerBlockOptin\":232448,"
        "\"reservedSharedMemoryPerBlock\":1024,\"maxRegistersPerSM\":65536,\"maxCtasPerSM\":32,"
        "\"maxThreadsPerBlock\":1024,\"maxThreadsPerSM\":2048,\"pciDeviceId\":0,\"isTccDriver\":0,"
        "\"supportCoopLaunch\":1,\"totalGlobalMem\":85000000000,\"smClockRateKHz\":1980000,"
        "\"memClockRateKHz\":2619000,\"l2CacheSize\":52428800,\"cudaDeviceId\":0,"
        "\"deviceVer\":900,\"driverVer\":13000,\"deviceName\":\"NVIDIA H100 80GB HBM3\"}";
    struct sdpa *library;
    struct sdpa_plan *plan;
    struct err e;
    need_library((const char *const[]){"libcuda.so.1", NULL});
    need_library((const char *const[]){"libnvrtc.so.13", "libnvrtc.so.12", NULL});
    if (sdpa_open(&library, NULL, NULL, h100, &e))
        t_skip("%s", e.msg);
    for (int i = 0; i < 8; i++) {
        int64_t heads = i & 1 ? 32 : 12, groups = i & 1 ? 8 : 12, dim = i & 4 ? 256 : 64;
        int64_t q = heads * dim, row = q + 2 * groups * dim;
        struct sdpa_shape shape = {.batch = 4,
                                   .tokens = 1024,
                                   .heads = heads,
                                   .groups = groups,
                                   .dim = dim,
                                   .stride = {row, row, row, q, q, row, row, row},
                                   .type = DTYPE_BF16,
                                   .scale = 0.125f,
                                   .cap = i & 4 && i & 1 ? 50 : 0,
                                   .window = i & 4 ? 512 : 0,
                                   .causal = true,
                                   .deterministic = i & 2,
                                   .backward = true};
        int code = sdpa_prepare(library, &shape, &plan, &e);
        T_OK(code, &e);
        sdpa_plan_free(library, plan);
    }
    sdpa_close(library);
}

T_MAIN(T_CASE(window_64), T_CASE(window_odd), T_CASE(window_128), T_CASE(window_192),
       T_CASE(window_256), T_CASE(window_of_one), T_CASE(window_of_all), T_CASE(window_atomic_adds),
       T_CASE(window_half), T_CASE(cap_64), T_CASE(cap_256), T_CASE(cap_window_128),
       T_CASE(cap_window_256), T_CASE(cap_atomic_adds), T_CASE(cap_half), T_CASE(heads_of_64),
       T_CASE(with_atomic_adds), T_CASE(peaked), T_CASE(odd_length), T_CASE(grouped_64),
       T_CASE(grouped_128), T_CASE(grouped_atomic_adds), T_CASE(heads_of_96), T_CASE(heads_of_256),
       T_CASE(half), T_CASE(half_grouped_128), T_CASE(same_bytes), T_CASE(same_bytes_window),
       T_CASE(same_bytes_cap), T_CASE(compiles_without_a_gpu))

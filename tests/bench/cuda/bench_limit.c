/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The limit of training steps on one GPU: bench_limit [--hold SECONDS] [--library-path DIRS]
 * [--fast] [--whole] [--narrow | --gradients] [MODEL...]. First the ceilings (a product of 8192
 * cubed in bf16 and a copy of 2 GiB, both held), then for each model its skeleton, whole and by
 * parts, replayed from CUDA graphs and held. --fast: attention's backward with atomic adds, as in
 * any case with a window or where its deterministic form would take more than 16 GiB.
 * --whole: without the parts.
 * --narrow: gradients and moments in bf16, no master weights. --gradients: only gradients in bf16.
 * Medians of the replays.
 */

#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/bench/cuda/skeleton.h"
#include "train/tensor/cuda/dev_cuda.h"

enum { SIDE = 8192, READINGS = 4096, LT_WORKSPACE = 32 << 20 };

static const struct limit_model models[] = {
    {"gpt2-124m", 12, 768, 12, 12, 64, 3072, 50304, true, 1024, 64, 131072},
    {"gpt2-350m", 24, 1024, 16, 16, 64, 4096, 50304, true, 1024, 32, 131072},
    {"gpt2-1558m", 48, 1600, 25, 25, 64, 6400, 50304, true, 1024, 16, 131072},
    {"qwen2.5-0.5b", 24, 896, 14, 2, 64, 4864, 151936, false, 1024, 32, 131072},
    {"qwen2.5-1.5b", 28, 1536, 12, 2, 128, 8960, 151936, false, 1024, 32, 131072},
    {"qwen2.5-7b", 28, 3584, 28, 4, 128, 18944, 152064, false, 1024, 4, 131072},
    {"llama-3.2-1b", 16, 2048, 32, 8, 64, 8192, 128256, false, 4096, 4, 131072},
    {"llama-3.2-1b-32k", 16, 2048, 32, 8, 64, 8192, 128256, false, 32768, 1, 131072},
    {"mistral-7b-8-layers", 8, 4096, 32, 8, 128, 14336, 32000, false, 4096, 4, 131072},
    {"gemma-3-1b", 26, 1152, 4, 1, 256, 6912, 262144, false, 4096, 4, 131072, 512, 6},
    {"phi-3-mini", 32, 3072, 32, 32, 96, 8192, 32064, false, 4096, 2, 131072, 2047},
    {"gpt-0.125b", 12, 768, 12, 12, 64, 3072, 2048, true, 2048, 1, 524288},
    {"gpt-0.125b-16", 12, 768, 12, 12, 64, 3072, 2048, true, 2048, 16, 524288},
};

struct job {
    struct bench_gpu gpu;
    struct skeleton s;
    struct {
        const struct lt_plan *plan;
        void *a, *b, *y;
    } cube;
    int parts;   /* that issue_parts issues */
    double hold; /* seconds */
    double held; /* TFLOP/s of the product of SIDE cubed */
    bool fast, whole, narrow, gradients;
};

static void or_exit(int code, const struct err *e)
{
    if (code) {
        fprintf(stderr, "bench_limit: %s\n", e->msg);
        exit(code);
    }
}

static void cuda(cudaError_t code, const char *what)
{
    if (code) {
        fprintf(stderr, "bench_limit: %s: %s\n", what, cudaGetErrorString(code));
        exit(ERR_FAULT);
    }
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

struct reading {
    double ms, low, high; /* median, and the 10th and 90th of 100 */
};

/* What `issue` does, as a graph. It is done once before: what a first call makes is not captured.
 */
static cudaGraphExec_t capture(struct job *j, void (*issue)(struct job *))
{
    struct dev *d = &j->gpu.dev;
    cudaStream_t stream = dev_cuda_stream(d, STREAM_COMPUTE);
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    struct err e;
    issue(j);
    d->fn->sync(d, STREAM_COMPUTE);
    or_exit(dev_fault(d, &e), &e);
    cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "capture");
    issue(j);
    cuda(cudaStreamEndCapture(stream, &graph), "capture");
    or_exit(dev_fault(d, &e), &e);
    cuda(cudaGraphInstantiate(&exec, graph, 0), "graph");
    cuda(cudaGraphDestroy(graph), "graph");
    return exec;
}

/* `first` so many times, then `last` once if it is not NULL. */
struct round {
    cudaGraphExec_t first, last;
    int times;
};

static double play(struct job *j, const struct round *r)
{
    struct dev *d = &j->gpu.dev;
    cudaStream_t stream = dev_cuda_stream(d, STREAM_COMPUTE);
    d->fn->record(d, STREAM_COMPUTE, 0);
    for (int i = 0; i < r->times; i++)
        cuda(cudaGraphLaunch(r->first, stream), "replay");
    if (r->last)
        cuda(cudaGraphLaunch(r->last, stream), "replay");
    d->fn->record(d, STREAM_COMPUTE, 1);
    return dev_cuda_elapsed(d, 0, 1);
}

/* Plays the round for a fifth of the time unseen, then for all of it. */
static struct reading hold(struct job *j, const struct round *r)
{
    double ms[READINGS], warm = 0, sum = 0;
    struct err e;
    int n = 0;
    while (warm < j->hold * 200)
        warm += play(j, r);
    while (n < READINGS && sum < j->hold * 1e3)
        sum += ms[n++] = play(j, r);
    or_exit(dev_fault(&j->gpu.dev, &e), &e);
    qsort(ms, (size_t)n, sizeof(ms[0]), by_size);
    return (struct reading){ms[n / 2], ms[n / 10], ms[n - 1 - n / 10]};
}

static struct reading hold_one(struct job *j, void (*issue)(struct job *), int times)
{
    struct round r = {capture(j, issue), NULL, times};
    struct reading t = hold(j, &r);
    cudaGraphExecDestroy(r.first);
    return (struct reading){t.ms / times, t.low / times, t.high / times};
}

/* ---- ceilings -----------------------------------------------------------------------------------
 */

static void issue_cube(struct job *j)
{
    lt_run(j->gpu.lt, j->cube.plan, j->cube.y, j->cube.a, j->cube.b, NULL, NULL,
           j->gpu.workspace.base);
}

static void issue_copy(struct job *j)
{
    int64_t n = (int64_t)512 << 20;
    op_copy(&j->gpu.ops, &(struct copy_args){.y = tensor_1d(j->cube.y, DTYPE_F32, n),
                                             .x = tensor_1d(j->cube.a, DTYPE_F32, n)});
}

static void ceilings(struct job *j)
{
    struct lt_shape shape;
    struct err e;
    memset(&shape, 0, sizeof(shape));
    shape.m = shape.n = shape.k = shape.lda = shape.ldb = shape.ldy = SIDE;
    shape.in = shape.out = DTYPE_BF16;
    shape.tb = true;
    shape.alignment = 256;
    or_exit(lt_prepare(j->gpu.lt, &shape, 0, &j->cube.plan, &e), &e);
    slab_reset(&j->gpu.memory, 0);
    j->cube.a = skeleton_numbers(&j->gpu, (int64_t)1 << 30, 1);
    j->cube.b = (char *)j->cube.a + (size_t)SIDE * SIDE * 2;
    j->cube.y = slab_bytes(&j->gpu.memory, (size_t)2 << 30);
    struct reading t = hold_one(j, issue_cube, 10);
    j->held = 2e-9 * SIDE * SIDE * SIDE / t.ms;
    printf("product of 8192 cubed, bf16, held: %.0f TFLOP/s (%.0f to %.0f)\n", j->held,
           2e-9 * SIDE * SIDE * SIDE / t.high, 2e-9 * SIDE * SIDE * SIDE / t.low);
    t = hold_one(j, issue_copy, 10);
    printf("copy of 2 GiB, read and write: %.2f TB/s\n\n", 4.0 * (1 << 30) * 1e-9 / t.ms);
    fflush(stdout);
}

/* ---- models -------------------------------------------------------------------------------------
 */

static void issue_parts(struct job *j)
{
    skeleton_micro_batch(&j->s, j->parts);
}

static void issue_optimizer(struct job *j)
{
    skeleton_optimizer(&j->s);
}

static struct reading hold_part(struct job *j, int parts)
{
    j->parts = parts;
    return hold_one(j, parts == PART_OPTIMIZER ? issue_optimizer : issue_parts, 1);
}

/* A step: the micro-batches of step_tokens, and the optimizer. */
static struct reading hold_step(struct job *j)
{
    const struct limit_model *m = &j->s.m;
    j->parts = PART_PRODUCTS | PART_ATTENTION | PART_BYTES;
    struct round r = {capture(j, issue_parts), capture(j, issue_optimizer),
                      (int)(m->step_tokens / (m->tokens * m->micro_batch))};
    struct reading t = hold(j, &r);
    cudaGraphExecDestroy(r.first);
    cudaGraphExecDestroy(r.last);
    return t;
}

static void measure(struct job *j, const struct limit_model *m, bool gelu_apart)
{
    static const int parts[] = {PART_PRODUCTS, PART_ATTENTION, PART_BYTES, PART_OPTIMIZER};
    double n = (double)(m->tokens * m->micro_batch);
    double products = 6 * (double)limit_parameters(m) * n;
    struct reading part[4] = {{0}};
    struct err e;
    const struct skeleton_mode mode = {gelu_apart, !j->fast, j->narrow, j->gradients};
    or_exit(skeleton_init(&j->s, &j->gpu, m, mode, &e), &e);
    for (int i = 0; i < 4 && !j->whole; i++)
        part[i] = hold_part(j, parts[i]);
    struct reading t = hold_step(j);
    double tokens = (double)m->step_tokens / t.ms * 1e3;
    printf(
        "%-19s%s %6lld x %-3lld%9.2f (%3.0f)%9.2f%9.2f%9.2f%10.2f (%.2f to %.2f)%10.0f%6.0f %%\n",
        m->name, m->gpt ? gelu_apart ? " b" : " a" : "  ", (long long)m->tokens,
        (long long)m->micro_batch, part[0].ms, products / part[0].ms * 1e-9, part[1].ms, part[2].ms,
        part[3].ms, t.ms, t.low, t.high, tokens, 100 * tokens * limit_flops(m) * 1e-12 / j->held);
    fflush(stdout);
    skeleton_free(&j->s);
}

static void open_gpu(struct job *j, const char *library_path)
{
    struct bench_gpu *g = &j->gpu;
    struct err e;
    or_exit(dev_cuda_open(&g->dev, 0, &e), &e);
    slab_init(&g->workspace, "workspace", PLACE_DEVICE);
    slab_bytes(&g->workspace, LT_WORKSPACE + (1 << 20));
    or_exit(slab_bind(&g->workspace, &g->dev, &e), &e);
    slab_init(&g->memory, "memory", PLACE_DEVICE);
    slab_bytes(&g->memory, (size_t)(0.92 * (double)g->dev.fn->memory_free(&g->dev)));
    or_exit(slab_bind(&g->memory, &g->dev, &e), &e);
    or_exit(
        ops_cuda_open(&g->ops, &g->dev, &g->workspace, &(struct ops_config){.real = DTYPE_F32}, &e),
        &e);
    or_exit(lt_open(&g->lt, &g->dev, library_path, LT_WORKSPACE, &e), &e);
    if (sdpa_open(&g->sdpa, &g->dev, library_path, NULL, &e))
        printf("without attention: %s\n", e.msg);
    printf("%s, cuBLASLt %s, cuDNN %s, backward of attention %s%s\n", g->dev.desc.name,
           lt_version(g->lt), g->sdpa ? sdpa_version(g->sdpa) : "absent",
           j->fast ? "with atomic adds" : "deterministic",
           j->narrow      ? ", gradients and moments in bf16"
           : j->gradients ? ", gradients in bf16"
                          : "");
}

static void close_gpu(struct bench_gpu *g)
{
    free(g->pattern);
    sdpa_close(g->sdpa);
    lt_close(g->lt);
    ops_close(&g->ops);
    slab_release(&g->memory, &g->dev);
    slab_release(&g->workspace, &g->dev);
    dev_close(&g->dev);
}

static bool named(const struct limit_model *m, int argc, char **argv)
{
    bool any = false;
    for (int i = 1; i < argc; i++) {
        if (argv[i][0] == '-') {
            i += strcmp(argv[i], "--hold") == 0 || strcmp(argv[i], "--library-path") == 0;
            continue;
        }
        any = true;
        if (strcmp(argv[i], m->name) == 0)
            return true;
    }
    return !any;
}

int main(int argc, char **argv)
{
    struct job j = {.hold = 2};
    const char *library_path = NULL;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--fast") == 0)
            j.fast = true;
        else if (strcmp(argv[i], "--whole") == 0)
            j.whole = true;
        else if (strcmp(argv[i], "--narrow") == 0)
            j.narrow = true;
        else if (strcmp(argv[i], "--gradients") == 0)
            j.gradients = true;
        else if (strcmp(argv[i], "--hold") == 0 && i + 1 < argc)
            j.hold = atof(argv[++i]);
        else if (strcmp(argv[i], "--library-path") == 0 && i + 1 < argc)
            library_path = argv[++i];
    }
    open_gpu(&j, library_path);
    ceilings(&j);
    printf(
        "a: the gradient of GELU in the product, b: apart. ms of a micro-batch (TFLOP/s), of the "
        "optimizer, of a step\n%-21s %12s%15s%9s%9s%9s%10s%29s%8s\n",
        "model", "batch", "products", "atten.", "bytes", "optim.", "step", "tok/s", "held");
    for (size_t i = 0; i < sizeof(models) / sizeof(models[0]); i++) {
        for (int apart = 0; apart <= (models[i].gpt ? 1 : 0); apart++)
            if (named(&models[i], argc, argv))
                measure(&j, &models[i], apart);
    }
    close_gpu(&j.gpu);
    return 0;
}

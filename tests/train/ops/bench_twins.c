/* SPDX-License-Identifier: Apache-2.0 */

/*
 * How fast the ops are, at the sizes of the models: bench_twins [threads [level [name]]]. Two
 * measures run in turn with each op and are taken at their best like it: a product of OpenBLAS,
 * with as many threads and of the same size if the op is one (else of 1024 cubed), and a copy of 64
 * MiB by all threads. Printed are the shares of the one's rate and of the other's bandwidth, and
 * how many times faster than the plain twin the op is where that one has an end.
 */

#include <cblas.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/core/mem.h"
#include "tests/t.h"
#include "tests/train/ops/twins.h"

enum { SIDE = 1024, COPY = 16 << 20, WORKSPACE = 256 << 20 };
static const double enough = 0.4, plain_flops = 3e8; /* seconds for an op; flops of a plain twin */

static struct world w; /* the plain table, and all tensors */
static struct dev dev;
static struct ops ops;
static float *left, *right, *result;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* The op's own product, on numbers of our own: the op's are in use. */
static void blas_like(const struct call *c)
{
    int m = SIDE, n = SIDE, k = SIDE;
    bool ta = false, tb = true;
    if (c->op == OP_MATMUL) {
        const struct matmul_args *a = &c->u.matmul;
        m = (int)a->y.size[0];
        n = (int)a->y.size[1];
        k = (int)a->a.size[a->ta ? 0 : 1];
        ta = a->ta;
        tb = a->tb;
    }
    cblas_sgemm(CblasRowMajor, ta ? CblasTrans : CblasNoTrans, tb ? CblasTrans : CblasNoTrans, m, n,
                k, 1, left, ta ? m : k, right, tb ? k : n, c->op == OP_MATMUL && ta ? 1 : 0, result,
                n);
}

static double blas_flops(const struct call *c)
{
    if (c->op != OP_MATMUL)
        return 2.0 * SIDE * SIDE * SIDE;
    const struct matmul_args *a = &c->u.matmul;
    return 2.0 * (double)tensor_count(a->y) * (double)a->a.size[a->ta ? 0 : 1];
}

static void copy_once(void)
{
    op_copy(&ops, &(struct copy_args){.y = tensor_1d(result, DTYPE_F32, COPY),
                                      .x = tensor_1d(left, DTYPE_F32, COPY)});
}

static void best_of(double *best, double begin)
{
    double t = now() - begin;
    *best = t < *best ? t : *best;
}

static void measure(const struct twin *t, int which)
{
    const int64_t *d = t->bench[which].d;
    struct call c = {0};
    char sizes[64] = "";
    for (int i = 0; i < TWIN_SIZES && t->most[i]; i++)
        snprintf(sizes + strlen(sizes), sizeof(sizes) - strlen(sizes), " %lld", (long long)d[i]);
    world_clear(&w, 1);
    t->make(&w, &c, d, t->bench[which].bits);
    struct op_cost cost = op_cost(c.op, &c.u);
    double op = 1e9, blas = 1e9, copy = 1e9, plain = 1e9;
    call_run(&ops, &c);
    for (double end = now() + enough, begin; (begin = now()) < end;) {
        call_run(&ops, &c);
        best_of(&op, begin);
        begin = now();
        blas_like(&c);
        best_of(&blas, begin);
        begin = now();
        copy_once();
        best_of(&copy, begin);
    }
    printf("%-14s%-24s%9.0f us %7.1f GF/s %5.2f %7.1f GB/s %5.2f", t->name, sizes, op * 1e6,
           cost.flops / op * 1e-9, cost.flops / op / (blas_flops(&c) / blas),
           cost.bytes / op * 1e-9, cost.bytes / op / (8.0 * COPY / copy));
    if (cost.flops < plain_flops) {
        double begin = now();
        call_run(&w.ops, &c);
        best_of(&plain, begin);
        printf(" %7.1f", plain / op);
    }
    printf("\n");
}

int main(int argc, char **argv)
{
    int threads = argc > 1 ? atoi(argv[1]) : 1;
    const char *level = argc > 2 && strcmp(argv[2], "best") != 0 ? argv[2] : NULL;
    size_t floats = (size_t)64 << 20;
    struct err e = {0};
    world_open(&w, DTYPE_F32, "ref", 1, WORKSPACE);
    if (dev_host_open(&dev, threads, &e) ||
        ops_cpu_init(&ops, &dev, &w.workspace, DTYPE_F32, level, &e)) {
        fprintf(stderr, "%s\n", e.msg);
        return e.code;
    }
    left = mem_new(floats, sizeof(float));
    right = mem_new(floats, sizeof(float));
    result = mem_new(floats, sizeof(float));
    openblas_set_num_threads(dev.desc.threads);
    printf("%d threads, %s; OpenBLAS computes for %s\n", dev.desc.threads,
           ops.entry[OP_MATMUL].backend, openblas_get_corename());
    printf("%-14s%-24s%12s %12s %5s %12s %5s %7s\n", "op", " sizes", "time", "rate", "blas",
           "memory", "copy", "plain");
    for (int k = 0; k < twin_count; k++)
        for (int i = 0; i < TWIN_BENCHES && twins[k].bench[i].d[0]; i++)
            if (argc < 4 || strstr(twins[k].name, argv[3]))
                measure(&twins[k], i);
    free(left);
    free(right);
    free(result);
    dev_close(&dev);
    world_close(&w);
    return 0;
}

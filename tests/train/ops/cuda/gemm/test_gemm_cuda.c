/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Matrix products of the table against sums in double: fp32, TF32, and 16 bits. And which of the
 * library's algorithms does them: timed ones are kept, given ones are taken, what is not taken is
 * told. Without a GPU every case is skipped.
 */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/mem.h"
#include "base/core/rng.h"
#include "tests/t.h"
#include "tests/train/ops/cuda/narrow.h"
#include "train/ops/cuda/ops_cuda.h"
#include "train/tensor/cuda/dev_cuda.h"

enum { M = 192, N = 256, K = 512, WORKSPACE = 64 << 20, MEMORY = 16 << 20 };

static struct dev gpu;
static struct ops ops;
static struct slab workspace, memory;
static double a[M * K], b[N * K]; /* as they are rounded */

static void open_all(const struct ops_config *c)
{
    struct err e;
    if (dev_cuda_open(&gpu, 0, &e))
        t_skip("%s", e.msg);
    slab_init(&workspace, "workspace", PLACE_DEVICE);
    slab_bytes(&workspace, WORKSPACE);
    T_OK(slab_bind(&workspace, &gpu, &e), &e);
    slab_init(&memory, "memory", PLACE_DEVICE);
    slab_bytes(&memory, MEMORY);
    T_OK(slab_bind(&memory, &gpu, &e), &e);
    T_OK(ops_cuda_open(&ops, &gpu, &workspace, c, &e), &e);
}

static void close_all(void)
{
    ops_close(&ops);
    slab_release(&memory, &gpu);
    slab_release(&workspace, &gpu);
    dev_close(&gpu);
}

/* Numbers between -1 and 1, whose rounded values are kept. */
static struct tensor drawn(enum dtype type, int64_t rows, int64_t cols, uint64_t seed, double *keep)
{
    struct tensor t = slab_2d(&memory, type, rows, cols);
    char *bytes = mem_new((size_t)(rows * cols), dtype_size(type));
    for (int64_t i = 0; i < rows * cols; i++) {
        struct rng4 r = rng_block(seed, RNG_TEST, 0, (uint64_t)i / 4);
        double x = (double)r.v[i % 4] / 0x1p31 - 1;
        if (type == DTYPE_F32) {
            ((float *)(void *)bytes)[i] = (float)x;
            keep[i] = (double)(float)x;
        } else {
            uint16_t u = narrow_bits(type, x);
            memcpy(bytes + 2 * i, &u, 2);
            keep[i] = narrow_value(type, u);
        }
    }
    gpu.fn->copy(&gpu, STREAM_COMPUTE, t.data, bytes, tensor_bytes(t));
    gpu.fn->sync(&gpu, STREAM_COMPUTE);
    free(bytes);
    return t;
}

static struct matmul_args product(void)
{
    slab_reset(&memory, 0);
    return (struct matmul_args){.a = drawn(ops.real, M, K, 1, a),
                                .b = drawn(ops.real, N, K, 2, b),
                                .y = slab_2d(&memory, ops.real, M, N),
                                .tb = true};
}

static void *fetch(struct tensor t)
{
    struct err e;
    void *p = mem_new(1, tensor_bytes(t));
    gpu.fn->copy(&gpu, STREAM_COMPUTE, p, t.data, tensor_bytes(t));
    gpu.fn->sync(&gpu, STREAM_COMPUTE);
    T_OK(dev_fault(&gpu, &e), &e);
    return p;
}

/* Root mean square of the differences by that of the sums. */
static double error_of(struct tensor y)
{
    void *have = fetch(y);
    double off = 0, square = 0;
    for (int64_t i = 0; i < M; i++)
        for (int64_t j = 0; j < N; j++) {
            double sum = 0, x;
            for (int64_t k = 0; k < K; k++)
                sum += a[i * K + k] * b[j * K + k];
            x = y.dtype == DTYPE_F32 ? (double)((const float *)have)[i * N + j]
                                     : narrow_value(y.dtype, ((const uint16_t *)have)[i * N + j]);
            off += (x - sum) * (x - sum);
            square += sum * sum;
        }
    free(have);
    return sqrt(off / square);
}

static double error_with(const struct ops_config *c)
{
    open_all(c);
    struct matmul_args m = product();
    op_fill(&ops, &(struct fill_args){.y = m.y, .value = NAN});
    op_matmul(&ops, &m);
    double e = error_of(m.y);
    printf("# %s, products by %s: relative error %.2e\n", dtype_name(c->real),
           ops.entry[OP_MATMUL].backend, e);
    close_all();
    return e;
}

static void fp32_is_exact(void)
{
    T_CHECK(error_with(&(struct ops_config){.real = DTYPE_F32}) < 1e-6);
}

/* 10 bits behind the point, which are cut or rounded: no better, and no worse. */
static void tf32_has_its_digits(void)
{
    double e = error_with(&(struct ops_config){.real = DTYPE_F32, .tf32 = true});
    T_CHECK(e > 5e-5 && e < 1e-3);
}

static void tf32_leaves_16_bits_alone(void)
{
    T_CHECK(error_with(&(struct ops_config){.real = DTYPE_BF16, .tf32 = true}) < 3e-3);
    T_CHECK(error_with(&(struct ops_config){.real = DTYPE_F16, .tf32 = true}) < 4e-4);
}

/* ---- algorithms -------------------------------------------------------------------------------
 */

/* Prepares a product as planning does, and computes it. */
static void *run(const struct ops_config *c, struct ops_choice *ret)
{
    struct err e;
    open_all(c);
    struct matmul_args m = product();
    T_OK(ops.entry[OP_MATMUL].prepare(&ops, &m, &e), &e);
    m = product(); /* timing has overwritten it */
    op_matmul(&ops, &m);
    T_CHECK(error_of(m.y) < 3e-3);
    void *y = fetch(m.y);
    T_CHECK(ops.choice(&ops, 0, ret));
    T_CHECK(!ops.choice(&ops, 1, &(struct ops_choice){0}));
    close_all();
    return y;
}

static void the_first_choice_is_the_default(void)
{
    struct ops_choice first, again;
    void *x = run(&(struct ops_config){.real = DTYPE_BF16}, &first);
    void *y = run(&(struct ops_config){.real = DTYPE_BF16}, &again);
    T_EQ(first.origin, OPS_FIRST);
    T_STR(first.how, again.how);
    T_MEM(x, y, M * N * 2);
    free(x);
    free(y);
}

static void what_is_timed_can_be_given(void)
{
    struct ops_choice timed, given;
    void *x = run(&(struct ops_config){.real = DTYPE_BF16, .tune = true}, &timed);
    T_EQ(timed.origin, OPS_TIMED);
    T_CHECK(timed.us > 0 && timed.us <= timed.first_us);
    printf("# %s: %.2f us, the library's first choice %.2f us\n", timed.what, timed.us,
           timed.first_us);
    void *y = run(
        &(struct ops_config){.real = DTYPE_BF16, .tune = true, .choices = &timed, .nchoices = 1},
        &given);
    T_EQ(given.origin, OPS_GIVEN);
    T_STR(given.how, timed.how);
    T_MEM(x, y, M * N * 2);
    free(x);
    free(y);
}

static void what_the_library_lacks_is_told(void)
{
    struct ops_choice first, other, ret;
    free(run(&(struct ops_config){.real = DTYPE_BF16}, &first));
    other = first;
    other.how[0] = '9'; /* another version of the library */
    free(run(&(struct ops_config){.real = DTYPE_BF16, .choices = &other, .nchoices = 1}, &ret));
    T_EQ(ret.origin, OPS_REFUSED);
    T_STR(ret.how, first.how);
    other = first;
    strchr(other.how, '_')[1] = '\0';
    strcat(other.how, "fffff_0_0_0_0_0_0_0"); /* an algorithm of no number that it has */
    free(run(&(struct ops_config){.real = DTYPE_BF16, .choices = &other, .nchoices = 1}, &ret));
    T_EQ(ret.origin, OPS_REFUSED);
}

T_MAIN(T_CASE(fp32_is_exact), T_CASE(tf32_has_its_digits), T_CASE(tf32_leaves_16_bits_alone),
       T_CASE(the_first_choice_is_the_default), T_CASE(what_is_timed_can_be_given),
       T_CASE(what_the_library_lacks_is_told))

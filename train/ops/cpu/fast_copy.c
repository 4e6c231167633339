/* SPDX-License-Identifier: Apache-2.0 */
#include "train/ops/cpu/fast.h"

/* What lies without gaps is cut anywhere, the rest between rows. */
struct job {
    struct tensor y, x;
    int64_t rows, width; /* of the cut: elements are rows of 1 where nothing has gaps */
    bool gaps;
    double value;
    void (*line)(const struct job *j, char *y, const char *x, int64_t n);
};

static char *at(struct tensor t, const struct job *j, int64_t i)
{
    return (char *)t.data + (size_t)(j->gaps ? i * t.stride : i) * dtype_size(t.dtype);
}

static void line_task(void *arg, int task, int thread)
{
    const struct job *j = arg;
    struct range r = grain_range(j->rows, j->width, task);
    (void)thread;
    if (!j->gaps)
        j->line(j, at(j->y, j, r.begin), at(j->x, j, r.begin), r.end - r.begin);
    for (int64_t i = r.begin; i < r.end && j->gaps; i++)
        j->line(j, at(j->y, j, i), at(j->x, j, i), j->width);
}

static void run_lines(struct ops *o, struct job *j)
{
    int64_t n = tensor_count(j->y);
    j->gaps = n && !(tensor_contiguous(j->y) && tensor_contiguous(j->x));
    j->rows = j->gaps ? j->y.size[0] : n;
    j->width = j->gaps ? n / j->rows : 1;
    pool_run(o->dev->pool, grain_tasks(j->rows, j->width), line_task, j);
}

static void fill_line(const struct job *j, char *y, const char *x, int64_t n)
{
    (void)x;
    if (j->y.dtype == DTYPE_F32) {
        float *p = (float *)(void *)y, value = (float)j->value;
        for (int64_t i = 0; i < n; i++)
            p[i] = value;
    } else if (j->y.dtype == DTYPE_F64) {
        double *p = (double *)(void *)y;
        for (int64_t i = 0; i < n; i++)
            p[i] = j->value;
    } else {
        int32_t *p = (int32_t *)(void *)y, value = (int32_t)j->value;
        for (int64_t i = 0; i < n; i++)
            p[i] = value;
    }
}

static void copy_line(const struct job *j, char *y, const char *x, int64_t n)
{
    memcpy(y, x, (size_t)n * dtype_size(j->y.dtype));
}

static void add_line(const struct job *j, char *y, const char *x, int64_t n)
{
    float *p = (float *)(void *)y;
    const float *q = (const float *)(const void *)x;
    int64_t i = 0;
    (void)j;
    for (; i + VL <= n; i += VL)
        v_store(p + i, v_load(p + i) + v_load(q + i));
    if (i < n)
        v_store_n(p + i, n - i, v_load_n(p + i, n - i) + v_load_n(q + i, n - i));
}

void FAST(fill)(struct ops *o, const void *args, void *scratch)
{
    const struct fill_args *a = args;
    struct job j = {.y = a->y, .x = a->y, .value = a->value, .line = fill_line};
    (void)scratch;
    run_lines(o, &j);
}

void FAST(copy)(struct ops *o, const void *args, void *scratch)
{
    const struct copy_args *a = args;
    struct job j = {.y = a->y, .x = a->x, .line = a->accumulate ? add_line : copy_line};
    (void)scratch;
    run_lines(o, &j);
}

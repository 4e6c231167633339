/* SPDX-License-Identifier: Apache-2.0 */
#include "train/comm/reduce.h"

#include <math.h>
#include <string.h>

#include "train/tensor/box.h"

enum { BLOCK = 512 };

static void join_f32(float *sum, const float *x, int64_t n, enum reduce r)
{
    for (int64_t i = 0; i < n; i++)
        sum[i] = r == REDUCE_SUM ? sum[i] + x[i] : x[i] > sum[i] || isnan(x[i]) ? x[i] : sum[i];
}

static void join_f64(double *sum, const double *x, int64_t n, enum reduce r)
{
    for (int64_t i = 0; i < n; i++)
        sum[i] = r == REDUCE_SUM ? sum[i] + x[i] : x[i] > sum[i] || isnan(x[i]) ? x[i] : sum[i];
}

static void join_i32(int64_t *sum, const int32_t *x, int64_t n, enum reduce r)
{
    for (int64_t i = 0; i < n; i++)
        sum[i] = r == REDUCE_SUM ? sum[i] + x[i] : x[i] > sum[i] ? x[i] : sum[i];
}

static void block_f64(double *to, const void *const *from, int n, int64_t at, int64_t count,
                      enum reduce r)
{
    double sum[BLOCK];
    memcpy(sum, (const double *)from[0] + at, (size_t)count * sizeof(*sum));
    for (int k = 1; k < n; k++)
        join_f64(sum, (const double *)from[k] + at, count, r);
    memcpy(to + at, sum, (size_t)count * sizeof(*sum));
}

static void block_i32(int32_t *to, const void *const *from, int n, int64_t at, int64_t count,
                      enum reduce r)
{
    int64_t sum[BLOCK];
    for (int64_t i = 0; i < count; i++)
        sum[i] = ((const int32_t *)from[0])[at + i];
    for (int k = 1; k < n; k++)
        join_i32(sum, (const int32_t *)from[k] + at, count, r);
    for (int64_t i = 0; i < count; i++)
        to[at + i] = (int32_t)sum[i];
}

/* F32 and what is narrower. */
static void block_f32(char *to, const void *const *from, int n, int64_t at, int64_t count,
                      enum dtype d, enum reduce r)
{
    float sum[BLOCK], x[BLOCK];
    size_t begin = (size_t)at * dtype_size(d);
    box_cast(sum, DTYPE_F32, (const char *)from[0] + begin, d, count);
    for (int k = 1; k < n; k++) {
        box_cast(x, DTYPE_F32, (const char *)from[k] + begin, d, count);
        join_f32(sum, x, count, r);
    }
    box_cast(to + begin, d, sum, DTYPE_F32, count);
}

void comm_reduce(void *to, const void *const *from, int n, int64_t count, enum dtype d,
                 enum reduce r)
{
    for (int64_t at = 0; at < count; at += BLOCK) {
        int64_t some = count - at < BLOCK ? count - at : BLOCK;
        if (d == DTYPE_F64)
            block_f64(to, from, n, at, some, r);
        else if (d == DTYPE_I32)
            block_i32(to, from, n, at, some, r);
        else
            block_f32(to, from, n, at, some, d, r);
    }
}

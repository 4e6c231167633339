/* SPDX-License-Identifier: Apache-2.0 */
#include "train/comm/reduce.h"

#include <math.h>
#include <string.h>

#include "tests/t.h"
#include "train/tensor/box.h"

enum { N = 1500, RANKS = 3 }; /* more than one block, and part of another */

/* Sums whose value depends on the order: 1e8 + 1 - 1e8 is 0 in fp32 and 1 in another order. */
static void adds_in_rank_order(void)
{
    float a[N], b[N], c[N], to[N];
    for (int i = 0; i < N; i++) {
        a[i] = 1e8f;
        b[i] = 1 + (float)i / N;
        c[i] = -1e8f;
    }
    comm_reduce(to, (const void *[]){a, b, c}, RANKS, N, DTYPE_F32, REDUCE_SUM);
    for (int i = 0; i < N; i++)
        T_CHECK(to[i] == a[i] + b[i] + c[i] && to[i] != a[i] + c[i] + b[i]);
    comm_reduce(b, (const void *[]){a, c, b}, RANKS, N, DTYPE_F32, REDUCE_SUM); /* in place */
    T_CHECK(b[0] == 1 && b[N - 1] == 1 + (float)(N - 1) / N);
}

/* 256 + 1 + 1 in bf16 is 256 when each sum is rounded, and 258 when the last is. */
static void narrow_types_are_rounded_once(void)
{
    for (int narrow = 0; narrow < 2; narrow++) {
        enum dtype d = narrow ? DTYPE_F16 : DTYPE_BF16;
        float big = narrow ? 2048 : 256, sum[N], x[2][N];
        uint16_t from[2][N], to[N];
        for (int i = 0; i < N; i++) {
            x[0][i] = big;
            x[1][i] = 1;
        }
        for (int k = 0; k < 2; k++)
            box_cast(from[k], d, x[k], DTYPE_F32, N);
        comm_reduce(to, (const void *[]){from[0], from[1], from[1]}, RANKS, N, d, REDUCE_SUM);
        box_cast(sum, DTYPE_F32, to, d, N);
        for (int i = 0; i < N; i++)
            T_CHECK(sum[i] == big + 2);
    }
}

static void doubles_and_integers(void)
{
    double a[N], b[N];
    int32_t i[N], j[N];
    for (int k = 0; k < N; k++) {
        a[k] = 0x1p53;
        b[k] = 1 + k;
        i[k] = k == 1 ? INT32_MAX : k;
        j[k] = -2 * k;
    }
    comm_reduce(a, (const void *[]){a, b}, 2, N, DTYPE_F64, REDUCE_SUM);
    T_CHECK(a[0] == 0x1p53 && a[1] == 0x1p53 + 2);
    comm_reduce(i, (const void *[]){i, j}, 2, N, DTYPE_I32, REDUCE_MAX);
    T_EQ(i[1], INT32_MAX);
    T_EQ(i[2], 2);
    /* beyond 32 bits on the way, not in the end */
    i[0] = 2000000000;
    j[0] = -2100000000;
    comm_reduce(j, (const void *[]){i, i, j}, RANKS, 1, DTYPE_I32, REDUCE_SUM);
    T_EQ(j[0], 1900000000);
}

static void a_nan_is_the_maximum(void)
{
    float a[3] = {1, NAN, 3}, b[3] = {NAN, 2, -1}, to[3];
    double x[2] = {NAN, 1}, y[2] = {1, 2}, z[2];
    comm_reduce(to, (const void *[]){a, b}, 2, 3, DTYPE_F32, REDUCE_MAX);
    T_CHECK(isnan(to[0]) && isnan(to[1]) && to[2] == 3);
    comm_reduce(z, (const void *[]){x, y}, 2, 2, DTYPE_F64, REDUCE_MAX);
    T_CHECK(isnan(z[0]) && z[1] == 2);
}

T_MAIN(T_CASE(adds_in_rank_order), T_CASE(narrow_types_are_rounded_once),
       T_CASE(doubles_and_integers), T_CASE(a_nan_is_the_maximum))

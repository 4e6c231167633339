/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_OPS_CPU_VEC_GEMM_H
#define TRAIN_OPS_CPU_VEC_GEMM_H

/*
 * The inner kernel of all products: c[rows, cols] = (c +) a b for a tile that fits the registers,
 * at most TILE_M x TILE_N. Every element is the sum over k in order, by fused multiply-adds,
 * whatever the tile it is in, so a row alone and the same row in a block have the same bits.
 *
 * a: element (i, p) at a[i * row + p * col]. b: row p at b + p * ldb; readable up to the next whole
 * vector behind `cols`.
 */

#include "train/ops/cpu/vec.h"

/* A panel of a's rows is one vector wide at most, for it is packed a vector at a time. */
#if WEFT_VEC == 512
enum { TILE_M = 14 };
#elif WEFT_VEC == 256
enum { TILE_M = 6 };
#else
enum { TILE_M = 4 };
#endif
enum { TILE_V = 2, TILE_N = TILE_V * VL };

struct tile {
    int64_t k;
    const float *a;
    int64_t row, col;
    const float *b;
    int64_t ldb;
    float *c;
    int64_t ldc;
    int64_t rows, cols;
    bool add;
};

static inline __attribute__((always_inline)) void tile_store(float *c, int64_t n, vf v, bool add)
{
    if (n >= VL)
        v_store(c, add ? v_load(c) + v : v);
    else
        v_store_n(c, n, add ? v_load_n(c, n) + v : v);
}

/* m and v are constants wherever this is inlined, so that the sums stay in registers. */
static inline __attribute__((always_inline)) void tile_of(const struct tile *t, const int m,
                                                          const int v)
{
    vf sum[TILE_M][TILE_V];
    const float *a = t->a, *b = t->b;
    const int64_t row = t->row, col = t->col, ldb = t->ldb;
#pragma GCC unroll 16
    for (int i = 0; i < m; i++)
#pragma GCC unroll 2
        for (int j = 0; j < v; j++)
            sum[i][j] = v_zero();
#pragma GCC unroll 16
    for (int i = 0; i < m; i++)
        __builtin_prefetch(t->c + i * t->ldc, 1);
    for (int64_t p = t->k; p > 0; p--, a += col, b += ldb) {
        vf right[TILE_V];
        __builtin_prefetch(a + 64 * col);
        __builtin_prefetch(b + 32 * ldb);
        __builtin_prefetch(b + 32 * ldb + VL);
#pragma GCC unroll 2
        for (int j = 0; j < v; j++)
            right[j] = v_load(b + j * VL);
#pragma GCC unroll 16
        for (int i = 0; i < m; i++) {
            vf left = v_set1(a[i * row]);
#pragma GCC unroll 2
            for (int j = 0; j < v; j++)
                sum[i][j] = v_fma(left, right[j], sum[i][j]);
        }
    }
#pragma GCC unroll 16
    for (int i = 0; i < m; i++)
#pragma GCC unroll 2
        for (int j = 0; j < v; j++)
            tile_store(t->c + i * t->ldc + j * VL, t->cols - j * VL, sum[i][j], t->add);
}

#define TILE_KERNEL(m)                                                                             \
    static void tile_##m(const struct tile *t)                                                     \
    {                                                                                              \
        if (t->cols > VL)                                                                          \
            tile_of(t, m, 2);                                                                      \
        else                                                                                       \
            tile_of(t, m, 1);                                                                      \
    }
TILE_KERNEL(1)
TILE_KERNEL(2)
TILE_KERNEL(3)
TILE_KERNEL(4)
#if WEFT_VEC >= 256
TILE_KERNEL(5)
TILE_KERNEL(6)
#endif
#if WEFT_VEC == 512
TILE_KERNEL(7)
TILE_KERNEL(8)
TILE_KERNEL(9)
TILE_KERNEL(10)
TILE_KERNEL(11)
TILE_KERNEL(12)
TILE_KERNEL(13)
TILE_KERNEL(14)
#endif

static void (*const tile_kernels[TILE_M])(const struct tile *t) = {
    tile_1, tile_2, tile_3, tile_4,
#if WEFT_VEC >= 256
    tile_5, tile_6,
#endif
#if WEFT_VEC == 512
    tile_7, tile_8, tile_9, tile_10, tile_11, tile_12, tile_13, tile_14,
#endif
};

static inline void tile_run(const struct tile *t)
{
    tile_kernels[t->rows - 1](t);
}

/*
 * Packing for the kernel. "along": what becomes a column was a row of n numbers in memory and is
 * turned about, VL at a time; "across": rows stay rows. Columns that are not there become zeros.
 * A step below VL makes the stores overlap, each mended by the next, and only the last is cut.
 */
static inline __attribute__((always_inline)) void strip_along(const float *from, int64_t stride,
                                                              int64_t n, int64_t cols,
                                                              const int64_t step, float *ret)
{
    for (int64_t p = 0; p < n; p += VL) {
        vf r[VL];
        int64_t have = n - p < VL ? n - p : VL;
        for (int i = 0; i < VL; i++)
            r[i] = i >= cols    ? v_zero()
                   : have == VL ? v_load(from + i * stride + p)
                                : v_load_n(from + i * stride + p, have);
        v_transpose(r);
        for (int64_t i = 0; i < have; i++)
            if (step >= VL || p + i + 1 < n)
                v_store(ret + (p + i) * step, r[i]);
            else
                v_store_n(ret + (p + i) * step, step, r[i]);
    }
}

/* Rows of [k][TILE_M], from columns of a [k][m]. */
static inline void strip_across(const float *a, int64_t stride, int64_t k, int64_t rows, float *ret)
{
    for (int64_t p = 0; p < k; p++)
        v_store_n(ret + p * TILE_M, rows, v_load_n(a + p * stride, rows));
}

/* A panel of b, [k][TILE_N], from columns of a [k][n] ... */
static inline void panel_across(const float *b, int64_t ldb, int64_t k, int64_t cols, float *ret)
{
    for (int64_t p = 0; p < k; p++, b += ldb, ret += TILE_N)
        for (int64_t j = 0; j < TILE_N; j += VL)
            v_store(ret + j, cols - j >= VL ? v_load(b + j)
                             : cols - j > 0 ? v_load_n(b + j, cols - j)
                                            : v_zero());
}

/* ... or from rows of a [n][k]. */
static inline void panel_along(const float *b, int64_t ldb, int64_t k, int64_t cols, float *ret)
{
    for (int64_t j = 0; j < TILE_N; j += VL)
        strip_along(b + (j < cols ? j * ldb : 0), ldb, k, cols - j, TILE_N, ret + j);
}

#endif

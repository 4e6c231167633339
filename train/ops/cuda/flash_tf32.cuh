/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_OPS_CUDA_FLASH_TF32_CUH
#define TRAIN_OPS_CUDA_FLASH_TF32_CUH

/*
 * The tensor cores' products of 16 x 8 x 8 numbers in TF32. Of a product a thread holds the numbers
 * that tensor_core.cuh says; of the left operand rows lane / 4 and that + 8, columns lane % 4 and
 * that + 4. Where a product is the next one's left operand, its columns 2 t and 2 t + 1 take the
 * places t and t + 4 of a sum of 8, and the right operand's rows are read in that order.
 */

#include "train/ops/cuda/flash_f32.cuh"

/* To the nearest, ties away from zero. */
static __device__ inline uint32_t to_tf32(float x)
{
    uint32_t v;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(v) : "f"(x));
    return v;
}

static __device__ inline void multiply_tf32(float (&c)[4], const uint32_t (&a)[4], uint32_t b0,
                                            uint32_t b1)
{
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
                 "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

static __device__ inline void round_four(uint32_t (&r)[4])
{
#pragma unroll
    for (int e = 0; e < 4; e++)
        r[e] = to_tf32(__uint_as_float(r[e]));
}

/* Rounds what this thread has copied by load_rows<D, ROWS, THREADS>, once that is there. */
template <int D, int ROWS, int THREADS> static __device__ void round_rows(float *tile)
{
#pragma unroll 4
    for (int t = (int)threadIdx.x; t < ROWS * (D / 4); t += THREADS) {
        float4 *p = (float4 *)(tile + t / (D / 4) * f32_stride<D>() + t % (D / 4) * 4);
        float4 x = *p;
        *p = make_float4(__uint_as_float(to_tf32(x.x)), __uint_as_float(to_tf32(x.y)),
                         __uint_as_float(to_tf32(x.z)), __uint_as_float(to_tf32(x.w)));
    }
}

/* The left operand: 16 rows from `row` on, 8 columns from `column` on. */
template <int STRIDE>
static __device__ void load_left_f32(uint32_t (&r)[4], const float *tile, int row, int column)
{
    const int lane = (int)threadIdx.x % 32;
    load_matrices(r, tile + (row + lane % 16) * STRIDE + column + lane / 16 * 4);
}

/* Right operands of two products, the tile's rows being their columns (row .. row + 15). */
template <int STRIDE>
static __device__ void load_right_rows_f32(uint32_t (&r)[4], const float *tile, int row, int column)
{
    const int lane = (int)threadIdx.x % 32;
    load_matrices(r, tile + (row + lane % 8 + lane / 16 * 8) * STRIDE + column + lane / 8 % 2 * 4);
}

/*
 * sums[m][n] += 16 M rows of `left` from `row` on, by 8 N rows of `right`, of D numbers each.
 * ROUND: those of `right` are not rounded yet.
 */
template <int D, bool ROUND, int M, int N>
static __device__ void product_rows_f32(float (&sums)[M][N][4], const float *left, int row,
                                        const float *right)
{
#pragma unroll 4
    for (int column = 0; column < D; column += 8) {
        uint32_t a[M][4], b[4];
#pragma unroll
        for (int m = 0; m < M; m++)
            load_left_f32<f32_stride<D>()>(a[m], left, row + 16 * m, column);
#pragma unroll
        for (int n = 0; n < N; n += 2) {
            load_right_rows_f32<f32_stride<D>()>(b, right, 8 * n, column);
            if (ROUND)
                round_four(b);
#pragma unroll
            for (int m = 0; m < M; m++) {
                multiply_tf32(sums[m][n], a[m], b[0], b[1]);
                multiply_tf32(sums[m][n + 1], a[m], b[2], b[3]);
            }
        }
    }
}

/* sums[m][n] += left operands by 8 rows of `right` from `row` on, columns 8 n .. 8 n + 7 of it. */
template <bool ROUND, int STRIDE, int M, int N>
static __device__ void product_columns_f32(float (&sums)[M][N][4], const uint32_t (&a)[M][4],
                                           const float *right, int row)
{
    const int lane = (int)threadIdx.x % 32;
    const float *p = right + (row + lane % 4 * 2) * STRIDE + lane / 4;
#pragma unroll
    for (int n = 0; n < N; n++) {
        uint32_t b0 = __float_as_uint(p[8 * n]), b1 = __float_as_uint(p[STRIDE + 8 * n]);
        if (ROUND) {
            b0 = to_tf32(p[8 * n]);
            b1 = to_tf32(p[STRIDE + 8 * n]);
        }
#pragma unroll
        for (int m = 0; m < M; m++)
            multiply_tf32(sums[m][n], a[m], b0, b1);
    }
}

/* A product as the left operand of the next. */
static __device__ inline void as_left(uint32_t (&a)[4], const float (&c)[4])
{
    a[0] = to_tf32(c[0]);
    a[1] = to_tf32(c[2]);
    a[2] = to_tf32(c[1]);
    a[3] = to_tf32(c[3]);
}

/* sums += x by `right`: x is 16 M x 8 K as products leave it. */
template <bool ROUND, int STRIDE, int M, int K, int N>
static __device__ void product_after_f32(float (&sums)[M][N][4], const float (&x)[M][K][4],
                                         const float *right)
{
#pragma unroll
    for (int k = 0; k < K; k++) {
        uint32_t a[M][4];
#pragma unroll
        for (int m = 0; m < M; m++)
            as_left(a[m], x[m][k]);
        product_columns_f32<ROUND, STRIDE>(sums, a, right, 8 * k);
    }
}

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_OPS_CUDA_FLASH_F32_TILE_CUH
#define TRAIN_OPS_CUDA_FLASH_F32_TILE_CUH

/*
 * Products of tiles in fp32 by ordinary multiplications. The threads of a block have a part of the
 * result each: a warp's lanes are 4 x 8, and TR x TC are those of all warps. A thread has rows
 * row + TR i, and columns column + TC k, or where columns are read 16 bytes at a time, columns
 * 4 (column + TC k) .. + 3. Lanes that read the same 16 bytes are neighbours, or next but one:
 * half a warp is then served at once.
 */

#include "train/ops/cuda/flash_f32.cuh"

enum { LANE_ROWS = 4, LANE_COLUMNS = 8 };

static __device__ inline int lane_row()
{
    const int lane = (int)threadIdx.x % 32;
    return lane % 2 + lane / 16 * 2;
}

static __device__ inline int lane_column()
{
    return (int)threadIdx.x % 32 / 2 % 8;
}

/* Over the lanes that share rows. */
static __device__ inline float columns_sum(float v)
{
    for (int k = 2; k < 16; k *= 2)
        v += __shfl_xor_sync(~0u, v, k);
    return v;
}

static __device__ inline float columns_max(float v)
{
    for (int k = 2; k < 16; k *= 2)
        v = fmaxf(v, __shfl_xor_sync(~0u, v, k));
    return v;
}

/* x += a b^T: rows of a and of b, K numbers each. a and b are at this thread's first rows. */
template <int K, int STRIDE, int TR, int TC, int RM, int RN>
static __device__ void add_rows_by_rows(float (&x)[RM][RN], const float *a, const float *b)
{
#pragma unroll 2
    for (int n = 0; n < K; n += 4) {
        float4 y[RN];
#pragma unroll
        for (int k = 0; k < RN; k++)
            y[k] = *(const float4 *)(b + k * TC * STRIDE + n);
#pragma unroll
        for (int i = 0; i < RM; i++) {
            float4 v = *(const float4 *)(a + i * TR * STRIDE + n);
#pragma unroll
            for (int k = 0; k < RN; k++) {
                x[i][k] = fmaf(v.x, y[k].x, x[i][k]);
                x[i][k] = fmaf(v.y, y[k].y, x[i][k]);
                x[i][k] = fmaf(v.z, y[k].z, x[i][k]);
                x[i][k] = fmaf(v.w, y[k].w, x[i][k]);
            }
        }
    }
}

/* x[i][4 k ..] += v times four columns of b. */
template <int TC, int RN>
static __device__ void add_scaled_row(float (&x)[RN], float v, const float4 (&y)[RN / 4])
{
#pragma unroll
    for (int k = 0; k < RN / 4; k++) {
        x[4 * k] = fmaf(v, y[k].x, x[4 * k]);
        x[4 * k + 1] = fmaf(v, y[k].y, x[4 * k + 1]);
        x[4 * k + 2] = fmaf(v, y[k].z, x[4 * k + 2]);
        x[4 * k + 3] = fmaf(v, y[k].w, x[4 * k + 3]);
    }
}

template <int TC, int N> static __device__ void load_columns(float4 (&y)[N], const float *b)
{
#pragma unroll
    for (int k = 0; k < N; k++)
        y[k] = *(const float4 *)(b + 4 * TC * k);
}

static __device__ inline float element_of(const float4 &v, int e)
{
    return e == 0 ? v.x : e == 1 ? v.y : e == 2 ? v.z : v.w;
}

/* x += a b: rows of a, of K numbers, by the K rows of b. a is at this thread's first row, b at its
 * first column. */
template <int K, int A_STRIDE, int B_STRIDE, int TR, int TC, int RM, int RN>
static __device__ void add_rows_by_columns(float (&x)[RM][RN], const float *a, const float *b)
{
#pragma unroll 2
    for (int n = 0; n < K; n += 4) {
        float4 v[RM];
#pragma unroll
        for (int i = 0; i < RM; i++)
            v[i] = *(const float4 *)(a + i * TR * A_STRIDE + n);
#pragma unroll
        for (int e = 0; e < 4; e++) {
            float4 y[RN / 4];
            load_columns<TC>(y, b + (n + e) * B_STRIDE);
#pragma unroll
            for (int i = 0; i < RM; i++)
                add_scaled_row<TC>(x[i], element_of(v[i], e), y);
        }
    }
}

/* x += a^T b: columns of a by those of b, over K rows; a and b are at this thread's first columns,
 * and rows of x are 4 (row + TR i) .. + 3. */
template <int K, int A_STRIDE, int B_STRIDE, int TR, int TC, int RM, int RN>
static __device__ void add_columns_by_columns(float (&x)[RM][RN], const float *a, const float *b)
{
#pragma unroll 4
    for (int n = 0; n < K; n++) {
        float4 v[RM / 4], y[RN / 4];
        load_columns<TR>(v, a + n * A_STRIDE);
        load_columns<TC>(y, b + n * B_STRIDE);
#pragma unroll
        for (int i = 0; i < RM; i++)
            add_scaled_row<TC>(x[i], element_of(v[i / 4], i % 4), y);
    }
}

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_OPS_CUDA_TENSOR_CORE_CUH
#define TRAIN_OPS_CUDA_TENSOR_CORE_CUH

/*
 * Tiles of 64 rows in shared memory and the tensor cores' products of 16 x 8 x 16 on them. Of a
 * product's 16 x 8 numbers a thread holds four: rows lane / 4 and lane / 4 + 8, columns lane % 4 *
 * 2 and the one after it.
 */

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "train/ops/cuda/device.cuh"

enum { TILE = 64, TILE_THREADS = 128, WARP_ROWS = 16 };

/*
 * Rows of a tile need not lie in their order. For dropout, whose elements share random bits by
 * eight (drop_random), keys lie such that a thread's numbers of a product are those of whole
 * blocks, or of whole words of them:
 *     KEYS_ACROSS  keys are the columns: a thread has, of each 32, those of block lane % 4, key w
 *                  of it and w + 4 in score[w]
 *     KEYS_DOWN    keys are the rows: of its warp's 16 a thread has keys w and w + 4 of a block,
 *                  w = lane / 4 % 4
 */
enum rows_order { IN_ORDER, KEYS_ACROSS, KEYS_DOWN };

/*
 * The row at a place of the tile. It is a permutation of the place's bits, so the row of a sum of
 * places without common bits is the sum of their rows.
 */
template <rows_order ORDER> static __host__ __device__ constexpr int row_at(int place)
{
    const unsigned x = (unsigned)place;
    return (int)(ORDER == KEYS_ACROSS ? (x & ~31u) | (x & 6) << 2 | (x >> 3 & 3) | (x & 1) << 2
                 : ORDER == KEYS_DOWN ? (x & ~15u) | (x & 4) << 1 | (x & 3) | (x >> 1 & 4)
                                      : x);
}

/* 2^x, 0 for what is below the normal numbers. */
static __device__ inline float power_of_two(float x)
{
    float ret;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(ret) : "f"(x));
    return ret;
}

/* Numbers between the rows of a tile: one piece of 16 bytes more than D, against bank conflicts. */
template <int D> static __host__ __device__ constexpr int tile_stride()
{
    return D + 8;
}

template <int D> static __host__ __device__ constexpr int tile_numbers()
{
    return TILE * tile_stride<D>();
}

static __device__ inline uint32_t shared_address(const void *p)
{
    return (uint32_t)__cvta_generic_to_shared(p);
}

static __device__ inline void copy_commit()
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}

template <int LEFT> static __device__ void copy_wait()
{
    asm volatile("cp.async.wait_group %0;" ::"n"(LEFT) : "memory");
}

/*
 * Begins to copy rows of `dim` numbers into a tile; those from `rows` on, and columns from `dim`
 * on, become zeros.
 */
template <class T, int D>
static __device__ void tile_load(T *tile, const T *from, int64_t stride, int rows, int dim)
{
    const int pieces = D / 8;
    for (int t = (int)threadIdx.x; t < TILE * pieces; t += TILE_THREADS) {
        int row = t / pieces, column = t % pieces * 8;
        bool there = row < rows && column < dim;
        const T *p = there ? from + row * stride + column : from;
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(
                         shared_address(tile + row * tile_stride<D>() + column)),
                     "l"(p), "r"(there ? 16 : 0)
                     : "memory");
    }
}

/* Four matrices of 8 x 8, each from the rows whose addresses 8 lanes give. */
static __device__ inline void load_matrices(uint32_t (&r)[4], const void *p)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(shared_address(p))
                 : "memory");
}

static __device__ inline void load_turned(uint32_t (&r)[4], const void *p)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(shared_address(p))
                 : "memory");
}

/* The left operand: 16 rows from `row` on, 16 columns from `column` on. */
template <class T, int D>
static __device__ void load_left(uint32_t (&r)[4], const T *tile, int row, int column)
{
    const int lane = (int)threadIdx.x % 32;
    load_matrices(r, tile + (row + lane % 16) * tile_stride<D>() + column + lane / 16 * 8);
}

/* Right operands of two products, the tile's rows being their columns (row .. row + 15). */
template <class T, int D>
static __device__ void load_right_rows(uint32_t (&r)[4], const T *tile, int row, int column)
{
    const int lane = (int)threadIdx.x % 32;
    load_matrices(r, tile + (row + lane % 8 + lane / 16 * 8) * tile_stride<D>() + column +
                         lane / 8 % 2 * 8);
}

/* The same, the tile's columns being theirs (column .. column + 15). */
template <class T, int D>
static __device__ void load_right_columns(uint32_t (&r)[4], const T *tile, int row, int column)
{
    const int lane = (int)threadIdx.x % 32;
    load_turned(r, tile + (row + lane % 8 + lane / 8 % 2 * 8) * tile_stride<D>() + column +
                       lane / 16 * 8);
}

static __device__ inline void multiply(float (&c)[4], const uint32_t (&a)[4], uint32_t b0,
                                       uint32_t b1, __nv_bfloat16)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
                 "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

static __device__ inline void multiply(float (&c)[4], const uint32_t (&a)[4], uint32_t b0,
                                       uint32_t b1, __half)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
                 "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

static __device__ inline uint32_t pack(float a, float b, __nv_bfloat16)
{
    __nv_bfloat162 v = __floats2bfloat162_rn(a, b);
    return *(uint32_t *)&v;
}

static __device__ inline uint32_t pack(float a, float b, __half)
{
    __half2 v = __floats2half2_rn(a, b);
    return *(uint32_t *)&v;
}

static __device__ inline float widen(__nv_bfloat16 x)
{
    return __bfloat162float(x);
}

static __device__ inline float widen(__half x)
{
    return __half2float(x);
}

/* sums[8] (16 x 64) += rows of `left` from `row` on, by the 64 rows of `right`. */
template <class T, int D>
static __device__ void product_rows(float (&sums)[8][4], const T *left, int row, const T *right)
{
#pragma unroll
    for (int column = 0; column < D; column += 16) {
        uint32_t a[4], b[4];
        load_left<T, D>(a, left, row, column);
#pragma unroll
        for (int n = 0; n < 4; n++) {
            load_right_rows<T, D>(b, right, n * 16, column);
            multiply(sums[2 * n], a, b[0], b[1], T());
            multiply(sums[2 * n + 1], a, b[2], b[3], T());
        }
    }
}

/* sums[D / 8] (16 x D) += x (16 x 64, as a product leaves it) by `right`, 64 x D. */
template <class T, int D>
static __device__ void product_columns(float (&sums)[D / 8][4], const float (&x)[8][4],
                                       const T *right)
{
#pragma unroll
    for (int k = 0; k < 4; k++) {
        uint32_t a[4] = {pack(x[2 * k][0], x[2 * k][1], T()), pack(x[2 * k][2], x[2 * k][3], T()),
                         pack(x[2 * k + 1][0], x[2 * k + 1][1], T()),
                         pack(x[2 * k + 1][2], x[2 * k + 1][3], T())};
#pragma unroll
        for (int n = 0; n < D / 16; n++) {
            uint32_t b[4];
            load_right_columns<T, D>(b, right, k * 16, n * 16);
            multiply(sums[2 * n], a, b[0], b[1], T());
            multiply(sums[2 * n + 1], a, b[2], b[3], T());
        }
    }
}

#endif

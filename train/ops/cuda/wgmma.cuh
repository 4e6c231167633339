/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_OPS_CUDA_WGMMA_CUH
#define TRAIN_OPS_CUDA_WGMMA_CUH

/*
 * Products of a warp group (128 threads) on tiles in shared memory: wgmma of compute capability
 * 9.0, which needs code for sm_90a. They run asynchronously: products_begin, any number of
 * products, products_commit; products_wait<N> waits for all but the last N committed groups.
 *
 * A tile of R rows and D columns of 16 bits is stored as D / 64 panels of R rows of 128 bytes, in
 * which the 16-byte piece c of row r is at place c ^ r % 8 (the 128-byte swizzle). Tiles begin at
 * multiples of 1024 bytes. Of a product's 64 x N numbers a thread has those of tensor_core.cuh's
 * 16 x 8 products: rows warp * 16 + lane / 4 and 8 below, columns n * 8 + lane % 4 * 2 and the
 * next.
 *
 * Sources: PTX ISA, sections "wgmma.mma_async" and "Matrix descriptor".
 */

#include "train/ops/cuda/tensor_core.cuh"

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

enum { PANEL = 64, PANEL_ROW = 128 /* bytes */, WARP_GROUP = 128 };

/*
 * Describes a panel to wgmma: groups of 8 rows are 1024 bytes apart. `panels` is the distance in
 * bytes between panels where the columns of the tile are those of the product (N > 64), else 0.
 */
static __device__ inline uint64_t panel_at(const void *p, uint32_t panels)
{
    return (uint64_t)(shared_address(p) >> 4 & 0x3fff) | (uint64_t)(panels >> 4) << 16 |
           (uint64_t)(1024 >> 4) << 32 | (uint64_t)1 << 62;
}

static __device__ inline void products_begin()
{
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

static __device__ inline void products_commit()
{
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

template <int LEFT> static __device__ inline void products_wait()
{
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(LEFT) : "memory");
}

/* After a wait: x is not read before this. */
template <int N> static __device__ inline void settle(float (&x)[N][4])
{
#pragma unroll
    for (int n = 0; n < N; n++)
        asm volatile("" : "+f"(x[n][0]), "+f"(x[n][1]), "+f"(x[n][2]), "+f"(x[n][3])::"memory");
}

/* Makes what this thread copied into shared memory visible to wgmma. */
static __device__ inline void copies_visible()
{
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

#define SUMS_1(x, n) "+f"(x[n][0]), "+f"(x[n][1]), "+f"(x[n][2]), "+f"(x[n][3])
#define SUMS_4(x, n) SUMS_1(x, n), SUMS_1(x, n + 1), SUMS_1(x, n + 2), SUMS_1(x, n + 3)
#define SUMS_8(x) SUMS_4(x, 0), SUMS_4(x, 4)
#define SUMS_16(x) SUMS_8(x), SUMS_4(x, 8), SUMS_4(x, 12)
#define NAMES_32                                                                                   \
    "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,"   \
    "%25,%26,%27,%28,%29,%30,%31"
#define NAMES_64                                                                                   \
    NAMES_32 ",%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,%48,%49,%50,%51,"   \
             "%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63"

/*
 * x (64 x N) = or += 16 columns of A by those of B. In tile_product both are rows in shared memory;
 * in held_product A is in registers and B's rows are 16 of its tile, its columns the product's.
 */
#define TILE_PRODUCT(N, NAMES, SUMS, TYPE, T, A, B, ADD)                                           \
    static __device__ inline void tile_product(float(&x)[N / 8][4], uint64_t a, uint64_t b,        \
                                               bool add, T)                                        \
    {                                                                                              \
        asm volatile("{.reg .pred p; setp.ne.b32 p, " ADD ", 0;"                                   \
                     "wgmma.mma_async.sync.aligned.m64n" #N "k16.f32." TYPE "." TYPE " {" NAMES    \
                     "}, " A ", " B ", p, 1, 1, 0, 0;}"                                            \
                     : SUMS(x)                                                                     \
                     : "l"(a), "l"(b), "r"((int)add)                                               \
                     : "memory");                                                                  \
    }
#define HELD_PRODUCT(N, NAMES, SUMS, TYPE, T, A, B)                                                \
    static __device__ inline void held_product(float(&x)[N / 8][4], const uint32_t(&a)[4],         \
                                               uint64_t b, T)                                      \
    {                                                                                              \
        asm volatile("wgmma.mma_async.sync.aligned.m64n" #N "k16.f32." TYPE "." TYPE " {" NAMES    \
                     "}, {" A "}, " B ", 1, 1, 1, 1;"                                              \
                     : SUMS(x)                                                                     \
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b)                          \
                     : "memory");                                                                  \
    }

TILE_PRODUCT(64, NAMES_32, SUMS_8, "bf16", __nv_bfloat16, "%32", "%33", "%34")
TILE_PRODUCT(64, NAMES_32, SUMS_8, "f16", __half, "%32", "%33", "%34")
TILE_PRODUCT(128, NAMES_64, SUMS_16, "bf16", __nv_bfloat16, "%64", "%65", "%66")
TILE_PRODUCT(128, NAMES_64, SUMS_16, "f16", __half, "%64", "%65", "%66")
HELD_PRODUCT(64, NAMES_32, SUMS_8, "bf16", __nv_bfloat16, "%32,%33,%34,%35", "%36")
HELD_PRODUCT(64, NAMES_32, SUMS_8, "f16", __half, "%32,%33,%34,%35", "%36")
HELD_PRODUCT(128, NAMES_64, SUMS_16, "bf16", __nv_bfloat16, "%64,%65,%66,%67", "%68")
HELD_PRODUCT(128, NAMES_64, SUMS_16, "f16", __half, "%64,%65,%66,%67", "%68")

#undef TILE_PRODUCT
#undef HELD_PRODUCT

/* x (64 x N) = rows `row` .. row + 63 of `left` (ROWS x D) by the N rows of `right` (N x D). */
template <class T, int D, int ROWS, int N>
static __device__ void tiles_product(float (&x)[N / 8][4], const T *left, int row, const T *right)
{
    const uint64_t a = panel_at(left + row * PANEL, 0), b = panel_at(right, 0);
#pragma unroll
    for (int c = 0; c < D; c += 16)
        tile_product(x, a + (uint64_t)(c / PANEL * ROWS * PANEL_ROW + c % PANEL * 2) / 16,
                     b + (uint64_t)(c / PANEL * N * PANEL_ROW + c % PANEL * 2) / 16, c > 0, T());
}

/* x (64 x D) += what `a` holds (64 x N) by `right` (N x D). */
template <class T, int D, int N>
static __device__ void held_by_tile(float (&x)[D / 8][4], const uint32_t (&a)[N / 16][4],
                                    const T *right)
{
    const uint64_t b = panel_at(right, N * PANEL_ROW);
#pragma unroll
    for (int k = 0; k < N / 16; k++)
        held_product(x, a[k], b + (uint64_t)(k * 16 * PANEL_ROW) / 16, T());
}

/* A product becomes the left operand of another. */
template <class T, int N>
static __device__ void narrow_sums(uint32_t (&to)[N / 16][4], const float (&x)[N / 8][4])
{
#pragma unroll
    for (int k = 0; k < N / 16; k++)
#pragma unroll
        for (int i = 0; i < 4; i++)
            to[k][i] = pack(x[2 * k + i / 2][i % 2 * 2], x[2 * k + i / 2][i % 2 * 2 + 1], T());
}

/* Begins to copy rows into a tile as tile_load does; all of a block's THREADS take part. */
template <class T, int D, int ROWS, int THREADS, rows_order ORDER = IN_ORDER>
static __device__ void panels_load(T *tile, const T *from, int64_t stride, int rows, int dim)
{
    const int pieces = D / 8, step = THREADS / pieces;
    const int piece = (int)threadIdx.x % pieces, first = (int)threadIdx.x / pieces;
    const bool within = piece * 8 < dim;
    const uint32_t to = shared_address(tile) + (uint32_t)(piece / 8 * ROWS * PANEL_ROW) +
                        (uint32_t)((piece % 8 ^ first % 8) * 16);
    const int own = row_at<ORDER>(first);
    const uint32_t offset = (uint32_t)own * (uint32_t)stride + (uint32_t)(piece * 8);
    static_assert(step % 8 == 0, "a thread's rows have one swizzle");
    static_assert((step & (step - 1)) == 0, "places are sums of bits of their own");
#pragma unroll
    for (int i = 0; i < (ROWS + step - 1) / step; i++) {
        const int place = first + i * step, more = row_at<ORDER>(i * step);
        bool there = within && own < rows - more;
        const T *p = from + (there ? offset + (uint32_t)more * (uint32_t)stride : 0);
        if (ROWS % step == 0 || place < ROWS)
            asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(
                             to + (uint32_t)(place * PANEL_ROW)),
                         "l"(p), "r"(there ? 16 : 0)
                         : "memory");
    }
}

#endif /* __CUDA_ARCH_FEAT_SM90_ALL */
#endif

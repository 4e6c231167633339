/* SPDX-License-Identifier: Apache-2.0 */
#include "train/ops/cuda/families/grouped.cuh"
#include "train/ops/cuda/tensor_core.cuh"

/*
 * Products of groups of rows on tensor cores: tiles of 128 x 128, 64 x 32 for each of the 8 warps,
 * 32 of the depth at a time, of which the next two are being copied meanwhile. An operand whose
 * depth is its columns lies in shared memory as 128 rows of 32; one whose depth is its rows, as 32
 * rows of 128, and is turned on its way into the registers.
 */

enum { SIDE = 128, STEP = 32, BLOCK = 256, STAGES = 3, HIGH = 64, ACROSS = 32 };

/* Numbers of an operand's tile. */
template <bool TURNED> static __host__ __device__ constexpr int operand_numbers()
{
    return TURNED ? STEP * tile_stride<SIDE>() : SIDE * tile_stride<STEP>();
}

/* One of the two; `p` is where the tile begins at depth 0, `side` what is there of the SIDE. */
template <class T> struct operand {
    const T *p;
    int64_t stride, side;
};

template <class T, int ROWS, int COLUMNS>
static __device__ void begin_copy(T *tile, const T *from, int64_t stride, int64_t rows,
                                  int64_t columns)
{
    const int pieces = COLUMNS / 8;
#pragma unroll
    for (int t = (int)threadIdx.x; t < ROWS * pieces; t += BLOCK) {
        const int row = t / pieces, column = t % pieces * 8;
        const bool there = row < rows && column < columns;
        const T *p = there ? from + row * stride + column : from;
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(
                         shared_address(tile + row * tile_stride<COLUMNS>() + column)),
                     "l"(p), "r"(there ? 16 : 0)
                     : "memory");
    }
}

template <bool TURNED, class T>
static __device__ void copy_operand(T *tile, const operand<T> &x, int64_t k, int64_t depth)
{
    if constexpr (TURNED)
        begin_copy<T, STEP, SIDE>(tile, x.p + k * x.stride, x.stride, depth - k, x.side);
    else
        begin_copy<T, SIDE, STEP>(tile, x.p + k, x.stride, x.side, depth - k);
}

/* 16 rows and 16 of the depth of the left operand. */
template <bool TURNED, class T>
static __device__ void read_left(uint32_t (&r)[4], const T *tile, int row, int k)
{
    const int lane = (int)threadIdx.x % 32;
    if constexpr (TURNED)
        load_turned(r, tile + (k + lane % 8 + lane / 16 * 8) * tile_stride<SIDE>() + row +
                           lane / 8 % 2 * 8);
    else
        load_left<T, STEP>(r, tile, row, k);
}

/* 16 columns of the right one. */
template <bool TURNED, class T>
static __device__ void read_right(uint32_t (&r)[4], const T *tile, int column, int k)
{
    if constexpr (TURNED)
        load_right_columns<T, SIDE>(r, tile, k, column);
    else
        load_right_rows<T, STEP>(r, tile, column, k);
}

typedef float warp_sums[HIGH / 16][ACROSS / 8][4];

template <bool LEFT, bool RIGHT, class T>
static __device__ void add_step(warp_sums &sum, const T *left, const T *right)
{
    const int warp = (int)threadIdx.x / 32;
    const int row = warp / (SIDE / ACROSS) * HIGH, column = warp % (SIDE / ACROSS) * ACROSS;
#pragma unroll
    for (int k = 0; k < STEP; k += 16) {
        uint32_t a[HIGH / 16][4], b[4];
#pragma unroll
        for (int m = 0; m < HIGH / 16; m++)
            read_left<LEFT>(a[m], left, row + m * 16, k);
#pragma unroll
        for (int n = 0; n < ACROSS / 16; n++) {
            read_right<RIGHT>(b, right, column + n * 16, k);
#pragma unroll
            for (int m = 0; m < HIGH / 16; m++) {
                multiply(sum[m][2 * n], a[m], b[0], b[1], T());
                multiply(sum[m][2 * n + 1], a[m], b[2], b[3], T());
            }
        }
    }
}

/* sum += left right over `depth`; LEFT, RIGHT: the operand's depth is its rows. */
template <bool LEFT, bool RIGHT, class T>
static __device__ void add_product(warp_sums &sum, T *memory, const operand<T> &left,
                                   const operand<T> &right, int64_t depth)
{
    const int both = operand_numbers<LEFT>() + operand_numbers<RIGHT>();
    const int64_t steps = (depth + STEP - 1) / STEP;
    auto begin = [&](int64_t s) {
        T *at = memory + (int)(s % STAGES) * both;
        if (s < steps) {
            copy_operand<LEFT>(at, left, s * STEP, depth);
            copy_operand<RIGHT>(at + operand_numbers<LEFT>(), right, s * STEP, depth);
        }
        copy_commit();
    };
    for (int s = 0; s + 1 < STAGES; s++)
        begin(s);
    for (int64_t s = 0; s < steps; s++) {
        const T *at = memory + (int)(s % STAGES) * both;
        copy_wait<STAGES - 2>();
        __syncthreads(); /* step s is there, and nobody reads s - 1 any more, which s + 2 replaces
                          */
        begin(s + STAGES - 1);
        add_step<LEFT, RIGHT>(sum, at, at + operand_numbers<LEFT>());
    }
    copy_wait<0>();
    __syncthreads();
}

/* Calls put(row, column, two numbers) for what this thread has of the tile. */
template <class F> static __device__ void each_pair(const warp_sums &sum, F put)
{
    const int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32;
    const int row = warp / (SIDE / ACROSS) * HIGH + lane / 4;
    const int column = warp % (SIDE / ACROSS) * ACROSS + lane % 4 * 2;
#pragma unroll
    for (int m = 0; m < HIGH / 16; m++)
#pragma unroll
        for (int half = 0; half < 2; half++)
#pragma unroll
            for (int n = 0; n < ACROSS / 8; n++)
                put(row + m * 16 + half * 8, column + n * 8, sum[m][n][2 * half],
                    sum[m][n][2 * half + 1]);
}

template <bool BACKWARD, class T>
static __global__ void __launch_bounds__(BLOCK, 2) grouped_tiles(const grouped_job<T> j)
{
    extern __shared__ __align__(16) unsigned char memory[];
    const int64_t depth = BACKWARD ? j.O : j.I, width = BACKWARD ? j.I : j.O;
    const int64_t c0 = (int64_t)blockIdx.y * SIDE;
    group_rows g;
    if (!group_tile(j.start, j.groups, blockIdx.x, SIDE, &g))
        return;
    const T *w = j.w + g.group % j.matrices * j.w_stride + (BACKWARD ? c0 : c0 * j.I);
    warp_sums sum = {{{0}}};
    add_product<false, BACKWARD>(sum, (T *)memory, operand<T>{j.x.row(g.first), j.x.stride, g.rows},
                                 operand<T>{w, j.I, width - c0}, depth);
    each_pair(sum, [&](int row, int column, float first, float second) {
        if (row < g.rows && c0 + column < width)
            *(uint32_t *)(j.y.row(g.first + row) + c0 + column) = pack(first, second, T());
    });
}

/* dw of matrix blockIdx.z: its groups in their order. */
template <class G, class T>
static __global__ void __launch_bounds__(BLOCK, 2) grouped_weights(const grouped_job<T> j)
{
    extern __shared__ __align__(16) unsigned char memory[];
    const int64_t o0 = (int64_t)blockIdx.x * SIDE, i0 = (int64_t)blockIdx.y * SIDE;
    warp_sums sum = {{{0}}};
    for (int g = (int)blockIdx.z; g < j.groups; g += j.matrices) {
        const int64_t first = j.start[g], rows = j.start[g + 1] - first;
        add_product<true, true>(sum, (T *)memory,
                                operand<T>{j.y.row(first) + o0, j.y.stride, j.O - o0},
                                operand<T>{j.x.row(first) + i0, j.x.stride, j.I - i0}, rows);
    }
    G *dw = (G *)j.dw + (int64_t)blockIdx.z * j.w_stride;
    each_pair(sum, [&](int row, int column, float first, float second) {
        if (o0 + row < j.O && i0 + column < j.I) {
            G *to = dw + (o0 + row) * j.I + i0 + column;
            to[0] = (G)((float)to[0] + first);
            to[1] = (G)((float)to[1] + second);
        }
    });
}

/* ---- entries ------------------------------------------------------------------------------------
 */

template <class T, class K>
static void launch(ops *o, K kernel, dim3 grid, int numbers, const grouped_job<T> &j)
{
    const int bytes = STAGES * numbers * (int)sizeof(T);
    cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
    kernel<<<grid, BLOCK, bytes, stream_of(o)>>>(j);
}

static bool takes(tensor rows, tensor other, tensor w)
{
    return rows.dtype != DTYPE_F32 && w.size[1] % 8 == 0 && w.size[2] % 8 == 0 && aligned(rows) &&
           aligned(other);
}

template <class T> static void issue_tiles(ops *o, const grouped_args *a)
{
    const grouped_job<T> j = grouped_job_of<T>(a);
    dim3 grid((unsigned)(a->y.size[0] / SIDE + j.groups), (unsigned)ceil_div(a->y.size[1], SIDE));
    if (a->backward)
        launch(o, grouped_tiles<true, T>, grid, operand_numbers<false>() + operand_numbers<true>(),
               j);
    else
        launch(o, grouped_tiles<false, T>, grid, 2 * operand_numbers<false>(), j);
}

bool grouped_mma(ops *o, const grouped_args *a)
{
    if (!takes(a->x, a->y, a->w) || !aligned(a->w))
        return false;
    if (a->x.dtype == DTYPE_BF16)
        issue_tiles<bf16>(o, a);
    else
        issue_tiles<f16>(o, a);
    return true;
}

template <class T, class G> static void issue_weights(ops *o, const grouped_bwd_args *a)
{
    const grouped_job<T> j = grouped_job_of<T>(a);
    dim3 grid((unsigned)ceil_div(j.O, SIDE), (unsigned)ceil_div(j.I, SIDE), (unsigned)j.matrices);
    launch(o, grouped_weights<G, T>, grid, 2 * operand_numbers<true>(), j);
}

bool grouped_mma_bwd(ops *o, const grouped_bwd_args *a)
{
    if (!takes(a->dy, a->x, a->dw))
        return false;
    by_grad_type(a->dw.dtype, [&](auto g) {
        if (a->dy.dtype == DTYPE_BF16)
            issue_weights<bf16, decltype(g)>(o, a);
        else
            issue_weights<f16, decltype(g)>(o, a);
    });
    return true;
}

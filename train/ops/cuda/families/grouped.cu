/* SPDX-License-Identifier: Apache-2.0 */
#include "train/ops/cuda/families/grouped.cuh"

/*
 * Products of groups of rows in any type, sums in fp32: tiles of 64 x 64, 4 x 4 numbers a thread.
 * Which group a block has it finds from `start`, so the host need not know.
 */

enum { TILE = 64, DEPTH = 16, THREADS = 256, EACH = 4, PAD = 4 };

struct tiles {
    float a[DEPTH][TILE + PAD], b[DEPTH][TILE + PAD];
};

/* sum += a^T b of a block's tiles. */
static __device__ void add_product(const tiles &t, float (&sum)[EACH][EACH])
{
    const int row = (int)threadIdx.x / (TILE / EACH) * EACH;
    const int column = (int)threadIdx.x % (TILE / EACH) * EACH;
#pragma unroll
    for (int k = 0; k < DEPTH; k++) {
        float a[EACH], b[EACH];
        load(a, &t.a[k][row]);
        load(b, &t.b[k][column]);
#pragma unroll
        for (int i = 0; i < EACH; i++)
#pragma unroll
            for (int c = 0; c < EACH; c++)
                sum[i][c] = fmaf(a[i], b[c], sum[i][c]);
    }
}

/* A tile of TILE rows, whose columns are the depth: to[column][row]. */
template <class T>
static __device__ void load_turned(float (&to)[DEPTH][TILE + PAD], const T *from, int64_t stride,
                                   int64_t rows, int64_t columns)
{
    for (int t = (int)threadIdx.x; t < TILE * DEPTH; t += THREADS) {
        const int row = t / DEPTH, column = t % DEPTH;
        to[column][row] = row < rows && column < columns ? (float)from[row * stride + column] : 0;
    }
}

/* A tile of DEPTH rows. */
template <class T>
static __device__ void load_rows(float (&to)[DEPTH][TILE + PAD], const T *from, int64_t stride,
                                 int64_t rows, int64_t columns)
{
    for (int t = (int)threadIdx.x; t < TILE * DEPTH; t += THREADS) {
        const int row = t / TILE, column = t % TILE;
        to[row][column] = row < rows && column < columns ? (float)from[row * stride + column] : 0;
    }
}

template <bool BACKWARD, class T>
static __global__ void __launch_bounds__(THREADS) grouped(const grouped_job<T> j)
{
    __shared__ __align__(16) tiles t;
    const int64_t depth = BACKWARD ? j.O : j.I, width = BACKWARD ? j.I : j.O;
    const int64_t c0 = (int64_t)blockIdx.y * TILE;
    group_rows g;
    if (!group_tile(j.start, j.groups, blockIdx.x, TILE, &g))
        return;
    const T *w = j.w + g.group % j.matrices * j.w_stride;
    float sum[EACH][EACH] = {{0}};
    for (int64_t k = 0; k < depth; k += DEPTH) {
        load_turned(t.a, j.x.row(g.first) + k, j.x.stride, g.rows, depth - k);
        if (BACKWARD)
            load_rows(t.b, w + k * j.I + c0, j.I, depth - k, width - c0);
        else
            load_turned(t.b, w + c0 * j.I + k, j.I, width - c0, depth - k);
        __syncthreads();
        add_product(t, sum);
        __syncthreads();
    }
    const int row = (int)threadIdx.x / (TILE / EACH) * EACH;
    const int column = (int)threadIdx.x % (TILE / EACH) * EACH;
    for (int i = 0; i < EACH && row + i < g.rows; i++)
        for (int c = 0; c < EACH && c0 + column + c < width; c++) {
            float v[1] = {sum[i][c]};
            store(j.y.row(g.first + row + i) + c0 + column + c, v);
        }
}

/* dw of matrix blockIdx.z: its groups in their order. */
template <class G, class T>
static __global__ void __launch_bounds__(THREADS) grouped_bwd(const grouped_job<T> j)
{
    __shared__ __align__(16) tiles t;
    const int64_t o0 = (int64_t)blockIdx.x * TILE, i0 = (int64_t)blockIdx.y * TILE;
    float sum[EACH][EACH] = {{0}};
    for (int g = (int)blockIdx.z; g < j.groups; g += j.matrices) {
        const int64_t end = j.start[g + 1];
        for (int64_t r = j.start[g]; r < end; r += DEPTH) {
            load_rows(t.a, j.y.row(r) + o0, j.y.stride, end - r, j.O - o0);
            load_rows(t.b, j.x.row(r) + i0, j.x.stride, end - r, j.I - i0);
            __syncthreads();
            add_product(t, sum);
            __syncthreads();
        }
    }
    G *dw = (G *)j.dw + (int64_t)blockIdx.z * j.w_stride;
    const int64_t row = o0 + (int)threadIdx.x / (TILE / EACH) * EACH;
    const int64_t column = i0 + (int)threadIdx.x % (TILE / EACH) * EACH;
    for (int i = 0; i < EACH && row + i < j.O; i++)
        for (int c = 0; c < EACH && column + c < j.I; c++) {
            G *to = dw + (row + i) * j.I + column + c;
            *to = (G)((float)*to + sum[i][c]);
        }
}

template <class T> static void issue_grouped(ops *o, const grouped_args *a)
{
    const grouped_job<T> j = grouped_job_of<T>(a);
    dim3 grid((unsigned)(a->y.size[0] / TILE + j.groups), (unsigned)ceil_div(a->y.size[1], TILE));
    if (a->backward)
        grouped<true><<<grid, THREADS, 0, stream_of(o)>>>(j);
    else
        grouped<false><<<grid, THREADS, 0, stream_of(o)>>>(j);
}

extern "C" void cuda_grouped(ops *o, const void *args, void *)
{
    const grouped_args *a = (const grouped_args *)args;
    if (tensor_count(a->y) && !grouped_mma(o, a))
        by_type(a->y.dtype, [&](auto t) { issue_grouped<decltype(t)>(o, a); });
    dev_cuda_check(o->dev, "launch");
}

template <class T, class G> static void issue_grouped_bwd(ops *o, const grouped_bwd_args *a)
{
    const grouped_job<T> j = grouped_job_of<T>(a);
    dim3 grid((unsigned)ceil_div(j.O, TILE), (unsigned)ceil_div(j.I, TILE), (unsigned)j.matrices);
    grouped_bwd<G><<<grid, THREADS, 0, stream_of(o)>>>(j);
}

extern "C" void cuda_grouped_bwd(ops *o, const void *args, void *)
{
    const grouped_bwd_args *a = (const grouped_bwd_args *)args;
    if (a->dy.size[0] && tensor_count(a->dw) && !grouped_mma_bwd(o, a))
        by_type(a->dy.dtype, [&](auto t) {
            by_grad_type(a->dw.dtype,
                         [&](auto g) { issue_grouped_bwd<decltype(t), decltype(g)>(o, a); });
        });
    dev_cuda_check(o->dev, "launch");
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "train/ops/cuda/flash_tf32.cuh"

/*
 * Forward in TF32: as flash.cu, a warp having 16 * m queries. Keys are copied while weights are
 * multiplied by values, values while queries are multiplied by keys.
 */

template <int D> struct forward_shape {
    static constexpr int warps = D > 128 ? 8 : 4;
    static constexpr int m = D > 128 ? 1 : 2;
    static constexpr int bn = D > 96 ? 32 : 64;
    static constexpr int blocks = D > 128 ? 1 : 2; /* of a multiprocessor */
    static constexpr int threads = 32 * warps, bm = 16 * m * warps;
    static constexpr int bytes = (bm + 2 * bn) * f32_stride<D>() * (int)sizeof(float);
};

/* Capped, and -INFINITY where a query, from number `mine` of its tile on, does not see a key. */
template <int M, int N>
static __device__ void shape_scores(const flash_job<float> &j, sight see, int mine, bool all,
                                    float (&score)[M][N][4])
{
    const int row = mine + (int)threadIdx.x % 32 / 4, column = (int)threadIdx.x % 4 * 2;
    if (j.cap > 0)
#pragma unroll
        for (int i = 0; i < M * N * 4; i++) {
            float &x = score[i / 4 / N][i / 4 % N][i % 4];
            x = j.cap * tanhf(x * (j.scale / j.cap));
        }
    if (!all)
#pragma unroll
        for (int i = 0; i < M * N * 4; i++)
            if (!see.sees(row + i / 4 / N * 16 + i % 4 / 2 * 8, column + i / 4 % N * 8 + i % 2))
                score[i / 4 / N][i / 4 % N][i % 4] = -INFINITY;
}

/* Of 16 rows: scores become weights against the rows' maxima so far; sum, this thread's part of the
 * rows' sums, and o are rescaled. */
template <int N, int ND>
static __device__ void soften_half_rows(float (&score)[N][4], float (&max)[2], float (&sum)[2],
                                        float (&o)[ND][4], float scale)
{
#pragma unroll
    for (int half = 0; half < 2; half++) {
        float top = max[half];
#pragma unroll
        for (int n = 0; n < N; n++)
            top = fmaxf(top, fmaxf(score[n][2 * half], score[n][2 * half + 1]));
        top = row_max(top);
        float base = top == -INFINITY ? 0 : top * scale, total = 0;
        float old = exp2_of(max[half] * scale - base);
#pragma unroll
        for (int n = 0; n < N; n++)
#pragma unroll
            for (int e = 2 * half; e < 2 * half + 2; e++) {
                score[n][e] = exp2_of(fmaf(score[n][e], scale, -base));
                total += score[n][e];
            }
        sum[half] = sum[half] * old + total;
        max[half] = top;
#pragma unroll
        for (int n = 0; n < ND; n++) {
            o[n][2 * half] *= old;
            o[n][2 * half + 1] *= old;
        }
    }
}

template <int N>
static __device__ void drop_half_rows(const flash_job<float> &j, const span &s, float (&p)[N][4],
                                      int64_t query, int64_t key, int head)
{
    const uint64_t kept = kept_weights<4 * N>(
        j, s, query, key, head, [](int e) { return make_int2(e % 4 / 2 * 8, e / 4 * 8 + e % 2); });
#pragma unroll
    for (int e = 0; e < 4 * N; e++)
        p[e / 4][e % 4] *= kept >> e & 1 ? j.drop.scale : 0;
}

/* Rows of o and lse: number `first` of a tile on that begins at row0 and has `rows` of them. */
struct written_rows {
    int64_t row0;
    int head, first, rows;
};

/* 16 rows. */
template <int ND>
static __device__ void write_queries(const flash_job<float> &j, const float (&o)[ND][4],
                                     const float (&max)[2], const float (&sum)[2], float scale,
                                     written_rows at)
{
    const int lane = (int)threadIdx.x % 32;
#pragma unroll
    for (int half = 0; half < 2; half++) {
        const int row = at.first + lane / 4 + half * 8;
        const float total = row_sum(sum[half]), factor = 1 / total;
        if (row >= at.rows)
            continue;
        float *p = j.o.at(at.row0 + row, at.head, j.dim) + lane % 4 * 2;
#pragma unroll
        for (int n = 0; n < ND; n++)
            if (8 * n + lane % 4 * 2 < j.dim)
                *(float2 *)(p + 8 * n) =
                    make_float2(o[n][2 * half] * factor, o[n][2 * half + 1] * factor);
        if (j.lse && lane % 4 == 0)
            j.lse[at.head * j.lse_stride + at.row0 + row] = max[half] * scale + logf(total);
    }
}

template <int D>
static __global__ void __launch_bounds__(forward_shape<D>::threads, forward_shape<D>::blocks)
    tf32_forward(const flash_job<float> j)
{
    typedef forward_shape<D> S;
    extern __shared__ __align__(16) float numbers[];
    float *q = numbers, *k = q + S::bm * f32_stride<D>(), *v = k + S::bn * f32_stride<D>();
    const int head = (int)blockIdx.y, group = head / (j.heads / j.groups);
    const int mine = (int)threadIdx.x / 32 * 16 * S::m;
    int64_t tile, t, end;
    span s;
    if (!tile_of(j, gridDim.x - 1 - blockIdx.x, S::bm, false, &s, &tile))
        return;
    const int64_t i0 = tile * S::bm;
    const int rows = (int)(s.count - i0 < S::bm ? s.count - i0 : S::bm);
    auto load = [&](float *to, const rows_of_heads<float> &from, int64_t number) {
        if (number < end) {
            int64_t left = s.k_len - number * S::bn;
            load_rows<D, S::bn, S::threads>(to, from.at(s.k_start + number * S::bn, group, j.dim),
                                            from.stride, (int)(left < S::bn ? left : S::bn), j.dim);
        }
        copy_commit();
    };
    key_tiles<S::bn>(s, i0, rows, &t, &end);
    load_rows<D, S::bm, S::threads>(q, j.q.at(s.q_start + i0, head, j.dim), j.q.stride, rows,
                                    j.dim);
    load(k, j.k, t);
    load(v, j.v, t);
    copy_wait<1>();
    round_rows<D, S::bm, S::threads>(q);
    const float scale = j.cap > 0 ? 1 : j.scale;
    float o[S::m][D / 8][4] = {{{0}}}, max[S::m][2], sum[S::m][2];
#pragma unroll
    for (int m = 0; m < S::m; m++)
        max[m][0] = max[m][1] = -INFINITY, sum[m][0] = sum[m][1] = 0;
    for (; t < end; t++) {
        float score[S::m][S::bn / 8][4] = {{{0}}};
        const sight see = sight_of(s, i0, t * S::bn);
        const bool none = see.none(mine, mine + 16 * S::m - 1, 0, S::bn - 1);
        copy_wait<1>(); /* all but the values */
        __syncthreads();
        if (!none)
            product_rows_f32<D, true>(score, q, mine, k);
        __syncthreads();
        load(k, j.k, t + 1);
        if (!none)
            shape_scores(j, see, mine, see.all(mine, mine + 16 * S::m - 1, 0, S::bn - 1), score);
#pragma unroll
        for (int m = 0; m < S::m && !none; m++) {
            soften_half_rows(score[m], max[m], sum[m], o[m], scale * log2_of_e);
            if (j.drop.on)
                drop_half_rows(j, s, score[m], i0 + mine + 16 * m + (int)threadIdx.x % 32 / 4,
                               t * S::bn + threadIdx.x % 4 * 2, head);
        }
        copy_wait<1>(); /* all but the next keys */
        __syncthreads();
        if (!none)
            product_after_f32<true, f32_stride<D>()>(o, score, v);
        __syncthreads();
        load(v, j.v, t + 1);
    }
#pragma unroll
    for (int m = 0; m < S::m; m++)
        write_queries(j, o[m], max[m], sum[m], scale, {s.q_start + i0, head, mine + 16 * m, rows});
}

template <int D> static void launch_tf32(dev *d, const flash_job<float> &j)
{
    typedef forward_shape<D> S;
    cudaFuncSetAttribute(tf32_forward<D>, cudaFuncAttributeMaxDynamicSharedMemorySize, S::bytes);
    tf32_forward<D><<<dim3(f32_tiles(j.n, j.sequences, S::bm), (unsigned)j.heads), S::threads,
                      S::bytes, compute_stream(d)>>>(j);
}

void flash_tf32(dev *d, const flash_job<float> &j)
{
    by_width(j.dim, [&](auto w) { launch_tf32<decltype(w)::value>(d, j); });
}

int flash_tf32_bytes(int dim)
{
    int bytes = 0;
    by_width(dim, [&](auto w) { bytes = forward_shape<decltype(w)::value>::bytes; });
    return bytes;
}

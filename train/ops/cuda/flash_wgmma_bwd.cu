/* SPDX-License-Identifier: Apache-2.0 */
#include "train/ops/cuda/flash_wgmma.cuh"

/*
 * Backward for compute capability 9.0, in the two kernels of flash_bwd.cu: a block has 64 rows
 * (queries for dq; keys for dk and dv) for each of its warp groups and goes through 64 of the other
 * side at a time, of which the next are being multiplied while these become ds.
 */

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

enum { STEP = 64, STAGES = 3 };

/* ---- dq ------------------------------------------------------------------------------------ */

template <class T, int D, int GROUPS> struct dq_block {
    enum { ROWS = 64 * GROUPS, THREADS = WARP_GROUP * GROUPS };
    const flash_job<T> &j;
    T *q, *dout, *k, *v;
    near_span s;
    int i0, begin, end, head, group, mine;

    __device__ T *keys(int t) const
    {
        return k + (t - begin) % STAGES * (STEP * D);
    }
    __device__ T *values(int t) const
    {
        return v + (t - begin) % 2 * (STEP * D);
    }
    __device__ void load(int t) const
    {
        if (t < end) {
            const int left = s.k_len - t * STEP;
            const int64_t row = s.k_start + t * STEP;
            panels_load<T, D, STEP, THREADS>(keys(t), j.k.at(row, group, j.dim), j.k.stride, left,
                                             j.dim);
            panels_load<T, D, STEP, THREADS>(values(t), j.v.at(row, group, j.dim), j.v.stride, left,
                                             j.dim);
        }
        copy_commit();
    }
};

/* Scores and dp (rows are queries) become ds in `score`; lse is of the base 2. */
template <class T, bool DROP, int D, int GROUPS>
static __device__ void slopes(const dq_block<T, D, GROUPS> &b, int t, float (&score)[8][4],
                              const float (&dp)[8][4], const float (&lse)[2],
                              const float (&delta)[2])
{
    const flash_job<T> &j = b.j;
    const int lane = (int)threadIdx.x % 32;
    const float scale = j.scale * LOG2E;
    const sight see = b.s.at(b.i0, t * STEP);
    const bool all = see.all(b.mine, b.mine + WARP_ROWS - 1, 0, STEP - 1);
#pragma unroll
    for (int n = 0; n < 8; n++)
#pragma unroll
        for (int half = 0; half < 2; half++) {
            int i = b.mine + lane / 4 + half * 8, k = n * 8 + lane % 4 * 2;
            float drop[2] = {1, 1};
            if (DROP)
                drop_pair(j, b.s.q_start + b.i0 + i, b.head, t * STEP + k, drop[0], drop[1]);
#pragma unroll
            for (int e = 0; e < 2; e++) {
                float &x = score[n][2 * half + e];
                float p = exp2f(fmaf(x, scale, -lse[half]));
                if (!all && !see.sees(i, k + e))
                    p = 0;
                x = p * (dp[n][2 * half + e] * drop[e] - delta[half]);
            }
        }
}

template <class T, int D, int GROUPS, bool DROP>
static __device__ void dq_rows(const dq_block<T, D, GROUPS> &b, float (&dq)[D / 8][4],
                               const float (&lse)[2], const float (&delta)[2])
{
    enum { ROWS = 64 * GROUPS };
    const int row = (int)threadIdx.x / WARP_GROUP * 64;
    float score[8][4], dp[8][4];
    uint32_t ds[4][4];
    auto begin_scores = [&](int t) {
        tiles_product<T, D, ROWS, STEP>(score, b.q, row, b.keys(t));
        tiles_product<T, D, ROWS, STEP>(dp, b.dout, row, b.values(t));
        products_commit();
    };
    products_begin();
    begin_scores(b.begin);
    products_wait<0>();
    settle(score);
    settle(dp);
    slopes<T, DROP>(b, b.begin, score, dp, lse, delta);
    narrow_sums<T, STEP>(ds, score);
    for (int t = b.begin; t + 1 < b.end; t++) {
        copies_done<0>();
        b.load(t + 2);
        settle(dq);
        products_begin();
        begin_scores(t + 1);
        held_by_tile<T, D, STEP>(dq, ds, b.keys(t));
        products_commit();
        products_wait<1>();
        settle(score);
        settle(dp);
        slopes<T, DROP>(b, t + 1, score, dp, lse, delta);
        products_wait<0>();
        settle(dq);
        narrow_sums<T, STEP>(ds, score);
    }
    settle(dq);
    products_begin();
    held_by_tile<T, D, STEP>(dq, ds, b.keys(b.end - 1));
    products_commit();
    products_wait<0>();
    settle(dq);
}

/* ---- dk and dv ----------------------------------------------------------------------------- */

/* 64 queries of a head: where a block is on its way through its heads and their queries. */
struct way {
    int head, query, stage;
};

template <class T, int D, int GROUPS> struct dkv_block {
    enum { ROWS = 64 * GROUPS, THREADS = WARP_GROUP * GROUPS };
    const flash_job<T> &j;
    T *k, *v, *q, *dout;
    float *lse, *delta; /* [STAGES][STEP] */
    near_span s;
    int k0, from, to, heads_end, mine; /* queries from .. to - 1 */

    __device__ void advance(way &w) const
    {
        w.stage = w.stage + 1 == STAGES ? 0 : w.stage + 1;
        w.query += STEP;
        if (w.query >= to) {
            w.query = from;
            w.head++;
        }
    }
    __device__ T *queries(way w) const
    {
        return q + w.stage * (STEP * D);
    }
    __device__ T *douts(way w) const
    {
        return dout + w.stage * (STEP * D);
    }
    __device__ static void load_number(float *to, const float *p, bool there)
    {
        asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(shared_address(to)),
                     "l"(p), "r"(there ? 4 : 0)
                     : "memory");
    }
    __device__ void load(way w) const
    {
        if (w.head < heads_end) {
            const int64_t row = s.q_start + w.query;
            const int left = s.count - w.query, i = (int)threadIdx.x;
            panels_load<T, D, STEP, THREADS>(queries(w), j.q.at(row, w.head, j.dim), j.q.stride,
                                             left, j.dim);
            panels_load<T, D, STEP, THREADS>(douts(w), j.dout.at(row, w.head, j.dim), j.dout.stride,
                                             left, j.dim);
            if (i < STEP) {
                int there = i < left ? row + i : row;
                load_number(lse + w.stage * STEP + i, j.lse + w.head * j.lse_stride + there,
                            i < left);
                load_number(delta + w.stage * STEP + i, j.delta + w.head * j.n + there, i < left);
            }
        }
        copy_commit();
    }
};

/* Bit 4 n + e: number e of score[n] is kept, where rows are keys. */
template <class T, int D, int GROUPS>
static __device__ uint32_t kept_turned(const dkv_block<T, D, GROUPS> &b, way w)
{
    const int lane = (int)threadIdx.x % 32;
    const int64_t query = b.s.q_start + w.query + lane % 4 * 2;
    const int64_t key = b.k0 + b.mine + lane / 4;
    uint32_t kept = 0;
#pragma unroll
    for (int n = 0; n < 8; n++)
#pragma unroll
        for (int e = 0; e < 4; e++)
            if (weight_drop(b.j, query + n * 8 + e % 2, w.head, key + e / 2 * 8) > 0)
                kept |= 1u << (4 * n + e);
    return kept;
}

/* Scores (rows are keys) become ds; dp becomes weights times dropout. */
template <class T, bool DROP, int D, int GROUPS>
static __device__ void slopes_turned(const dkv_block<T, D, GROUPS> &b, way w, uint32_t kept,
                                     float (&score)[8][4], float (&dp)[8][4])
{
    const flash_job<T> &j = b.j;
    const int lane = (int)threadIdx.x % 32, at = w.stage * STEP + lane % 4 * 2;
    const float scale = j.scale * LOG2E;
    const sight see = b.s.at(w.query, b.k0);
    const bool all = see.all(0, STEP - 1, b.mine, b.mine + WARP_ROWS - 1);
#pragma unroll
    for (int n = 0; n < 8; n++) {
        const float2 lse = *(const float2 *)(b.lse + at + n * 8);
        const float2 delta = *(const float2 *)(b.delta + at + n * 8);
#pragma unroll
        for (int e = 0; e < 4; e++) {
            float p = exp2f(fmaf(score[n][e], scale, -(e % 2 ? lse.y : lse.x) * LOG2E)), drop = 1;
            if (!all && !see.sees(n * 8 + lane % 4 * 2 + e % 2, b.mine + lane / 4 + e / 2 * 8))
                p = 0;
            if (DROP)
                drop = kept >> (4 * n + e) & 1 ? j.drop.scale : 0;
            score[n][e] = p * (dp[n][e] * drop - (e % 2 ? delta.y : delta.x));
            dp[n][e] = p * drop;
        }
    }
}

template <class T, int D, int GROUPS, bool DROP>
static __device__ void dkv_rows(const dkv_block<T, D, GROUPS> &b, way w, float (&dk)[D / 8][4],
                                float (&dv)[D / 8][4])
{
    enum { ROWS = 64 * GROUPS };
    const int row = (int)threadIdx.x / WARP_GROUP * 64;
    float score[8][4], dp[8][4];
    uint32_t weights[4][4], ds[4][4];
    way next = w;
    b.load(next);
    while (w.head < b.heads_end) {
        b.advance(next);
        copies_done<0>();
        b.load(next);
        products_begin();
        tiles_product<T, D, ROWS, STEP>(score, b.k, row, b.queries(w));
        tiles_product<T, D, ROWS, STEP>(dp, b.v, row, b.douts(w));
        products_commit();
        uint32_t kept = DROP ? kept_turned(b, w) : 0;
        products_wait<0>();
        settle(score);
        settle(dp);
        slopes_turned<T, DROP>(b, w, kept, score, dp);
        narrow_sums<T, STEP>(weights, dp);
        narrow_sums<T, STEP>(ds, score);
        settle(dk);
        settle(dv);
        products_begin();
        held_by_tile<T, D, STEP>(dv, weights, b.douts(w));
        held_by_tile<T, D, STEP>(dk, ds, b.queries(w));
        products_commit();
        products_wait<0>();
        settle(dk);
        settle(dv);
        w = next;
    }
}

#endif

template <class T, int D, int GROUPS, bool DROP>
static __global__ void __launch_bounds__(128 * GROUPS, 1)
    flash_dq(const flash_job<T> j, const tile_grid g)
{
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    enum { ROWS = 64 * GROUPS, THREADS = WARP_GROUP * GROUPS };
    extern __shared__ __align__(1024) unsigned char memory[];
    T *q = (T *)memory, *dout = q + ROWS * D, *k = dout + ROWS * D, *v = k + STAGES * STEP * D;
    const int head = (int)blockIdx.x % j.heads, lane = (int)threadIdx.x % 32;
    const int mine = (int)threadIdx.x / 32 * WARP_ROWS;
    int tile;
    near_span s;
    if (!block_tile(j, g, j.heads, ROWS, false, &s, &tile))
        return;
    const int i0 = tile * ROWS, rows = s.count - i0 < ROWS ? s.count - i0 : ROWS;
    const int64_t row0 = s.q_start + i0;
    const int begin = s.first(i0) / STEP, end = s.last(i0 + rows - 1) / STEP + 1;
    const dq_block<T, D, GROUPS> b = {
        j, q, dout, k, v, s, i0, begin, end, head, head / (j.heads / j.groups), mine};
    panels_load<T, D, ROWS, THREADS>(q, j.q.at(row0, head, j.dim), j.q.stride, rows, j.dim);
    panels_load<T, D, ROWS, THREADS>(dout, j.dout.at(row0, head, j.dim), j.dout.stride, rows,
                                     j.dim);
    b.load(begin);
    b.load(begin + 1);
    float dq[D / 8][4] = {{0}}, lse[2] = {0, 0}, delta[2] = {0, 0};
    for (int half = 0; half < 2; half++) {
        int row = mine + lane / 4 + half * 8;
        if (row < rows) {
            lse[half] = j.lse[head * j.lse_stride + row0 + row] * LOG2E;
            delta[half] = j.delta[head * j.n + row0 + row];
        }
    }
    copies_done<1>();
    dq_rows<T, D, GROUPS, DROP>(b, dq, lse, delta);
    const float factor[2] = {j.scale, j.scale};
    write_rows<T, D>(dq, factor, j.dq, row0, head, j.dim, mine, rows);
#endif
}

template <class T, int D, int GROUPS, bool DROP>
static __global__ void __launch_bounds__(128 * GROUPS, 1)
    flash_dkv(const flash_job<T> j, const tile_grid g)
{
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    enum { ROWS = 64 * GROUPS, THREADS = WARP_GROUP * GROUPS };
    extern __shared__ __align__(1024) unsigned char memory[];
    T *k = (T *)memory, *v = k + ROWS * D, *q = v + ROWS * D, *dout = q + STAGES * STEP * D;
    float *lse = (float *)(dout + STAGES * STEP * D), *delta = lse + STAGES * STEP;
    const int group = (int)blockIdx.x % j.groups, each = j.heads / j.groups;
    const int mine = (int)threadIdx.x / 32 * WARP_ROWS;
    int tile;
    near_span s;
    if (!block_tile(j, g, j.groups, ROWS, true, &s, &tile))
        return;
    const int k0 = tile * ROWS, rows = s.k_len - k0 < ROWS ? s.k_len - k0 : ROWS;
    const int64_t row0 = s.k_start + k0;
    /* queries from the first that sees key k0 to the last that sees the tile's last key */
    int from = k0 - (s.k_len - s.count), to = s.count;
    if (s.window && from + rows - 1 + s.window < to)
        to = from + rows - 1 + s.window;
    from = from > 0 ? from / STEP * STEP : 0;
    const dkv_block<T, D, GROUPS> b = {
        j, k, v, q, dout, lse, delta, s, k0, from, to, to > from ? (group + 1) * each : 0, mine};
    panels_load<T, D, ROWS, THREADS>(k, j.k.at(row0, group, j.dim), j.k.stride, rows, j.dim);
    panels_load<T, D, ROWS, THREADS>(v, j.v.at(row0, group, j.dim), j.v.stride, rows, j.dim);
    float dk[D / 8][4] = {{0}}, dv[D / 8][4] = {{0}};
    dkv_rows<T, D, GROUPS, DROP>(b, {group * each, from, 0}, dk, dv);
    copy_wait<0>();
    const float scale[2] = {j.scale, j.scale}, one[2] = {1, 1};
    write_rows<T, D>(dk, scale, j.dk, row0, group, j.dim, mine, rows);
    write_rows<T, D>(dv, one, j.dv, row0, group, j.dim, mine, rows);
#endif
}

/* ---- entries ------------------------------------------------------------------------------- */

template <class T, int D, int GROUPS, bool DROP>
static void issue_backward(dev *d, const flash_job<T> &j)
{
    cudaStream_t stream = (cudaStream_t)dev_cuda_stream(d, STREAM_COMPUTE);
    const int rows = 64 * GROUPS, threads = 128 * GROUPS;
    const int dq_bytes = (2 * rows + 5 * 64) * D * (int)sizeof(T);
    const int dkv_bytes = (2 * rows + 6 * 64) * D * (int)sizeof(T) + 6 * 64 * (int)sizeof(float);
    tile_grid g = grid_of(j.n, j.sequences, j.max_len, rows);
    auto dq = flash_dq<T, D, GROUPS, DROP>;
    auto dkv = flash_dkv<T, D, GROUPS, DROP>;
    cudaFuncSetAttribute(dq, cudaFuncAttributeMaxDynamicSharedMemorySize, dq_bytes);
    cudaFuncSetAttribute(dkv, cudaFuncAttributeMaxDynamicSharedMemorySize, dkv_bytes);
    dq<<<(unsigned)(g.tiles * j.heads), threads, dq_bytes, stream>>>(j, g);
    g = grid_of(j.keys, j.sequences, j.max_len, rows);
    dkv<<<(unsigned)(g.tiles * j.groups), threads, dkv_bytes, stream>>>(j, g);
}

template <class T> static void backward_of(dev *d, const flash_job<T> &j)
{
    if (j.dim <= 64 && j.drop.on)
        issue_backward<T, 64, 3, true>(d, j);
    else if (j.dim <= 64)
        issue_backward<T, 64, 3, false>(d, j);
    else if (j.drop.on)
        issue_backward<T, 128, 2, true>(d, j);
    else
        issue_backward<T, 128, 2, false>(d, j);
}

void flash_wgmma_bwd(dev *d, const flash_job<__nv_bfloat16> &j)
{
    backward_of(d, j);
}

void flash_wgmma_bwd(dev *d, const flash_job<__half> &j)
{
    backward_of(d, j);
}

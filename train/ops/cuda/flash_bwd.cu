/* SPDX-License-Identifier: Apache-2.0 */
#include "train/ops/cuda/flash.cuh"

/*
 * Backward. With p = exp(scale q k - lse), w = drop p, dp = drop (dout v), delta = the product of
 * dout and o of a query:
 *     dv += w dout, ds = scale p (dp - delta), dq += ds k, dk += ds q
 * and ds times the slope of the cap where scores are capped.
 * One kernel has 64 queries of a head and goes through their keys for dq; one has 64 keys of a key
 * head and goes through the queries of its heads for dk and dv. Both compute the scores again.
 */

static const float log2e = 1.44269504088896340736f;

/* LANES neighbouring threads have a row of a head, 8 numbers each. */
template <class T, int LANES>
static __global__ void __launch_bounds__(TILE_THREADS) flash_delta(const flash_job<T> j)
{
    const int at = (int)threadIdx.x % LANES * 8;
    int64_t i = (int64_t)blockIdx.x * (TILE_THREADS / LANES) + threadIdx.x / LANES;
    int64_t row = i / j.heads;
    int head = (int)(i % j.heads);
    float sum = 0;
    if (row < j.n && at < j.dim) {
        uint4 x = *(const uint4 *)(j.dout.at(row, head, j.dim) + at);
        uint4 y = *(const uint4 *)(j.o.at(row, head, j.dim) + at);
#pragma unroll
        for (int k = 0; k < 8; k++)
            sum += widen(((const T *)&x)[k]) * widen(((const T *)&y)[k]);
    }
    for (int k = LANES / 2; k; k /= 2)
        sum += __shfl_xor_sync(~0u, sum, k);
    if (row < j.n && at == 0)
        j.delta[head * j.n + row] = sum * j.delta_by;
}

/* ---- dq
 * ------------------------------------------------------------------------------------------- */

/*
 * Scores and dp become ds: rows are queries from `query` on, of which this warp has those from
 * number `mine` on, columns keys from `key` on. lse is of the base 2.
 */
template <class T>
static __device__ void slopes(const flash_job<T> &j, const span &s, float (&score)[8][4],
                              const float (&dp)[8][4], const float (&lse)[2],
                              const float (&delta)[2], int64_t query, int64_t key, int head,
                              int mine)
{
    const int lane = (int)threadIdx.x % 32;
    const float scale = (j.cap > 0 ? 1 : j.scale) * log2e;
    const sight see = sight_of(s, query, key);
    const bool all = see.all(mine, mine + WARP_ROWS - 1, 0, TILE - 1);
#pragma unroll
    for (int n = 0; n < 8; n++)
#pragma unroll
        for (int e = 0; e < 4; e++) {
            int i = mine + lane / 4 + e / 2 * 8, k = n * 8 + lane % 4 * 2 + e % 2;
            float p = exp2f(fmaf(score[n][e], scale, -lse[e / 2])), drop = 1;
            if (!all && !see.sees(i, k))
                p = 0;
            if (j.drop.on)
                drop = weight_drop(j, s.q_start + query + i, head, key + k);
            p *= j.cap > 0 ? cap_slope(j, score[n][e]) : 1;
            score[n][e] = p * (dp[n][e] * drop - delta[e / 2]);
        }
}

template <class T, int D>
static __global__ void __launch_bounds__(TILE_THREADS) flash_dq(const flash_job<T> j)
{
    extern __shared__ __align__(16) unsigned char memory[];
    T *q = (T *)memory, *dout = q + tile_numbers<D>(), *k = dout + tile_numbers<D>(),
      *v = k + tile_numbers<D>();
    const int head = (int)blockIdx.y, group = head / (j.heads / j.groups);
    const int lane = (int)threadIdx.x % 32, mine = (int)threadIdx.x / 32 * WARP_ROWS;
    int64_t tile;
    span s;
    if (!tile_of(j, blockIdx.x, TILE, false, &s, &tile))
        return;
    const int64_t i0 = tile * TILE, row0 = s.q_start + i0;
    const int rows = (int)(s.count - i0 < TILE ? s.count - i0 : TILE);
    tile_load<T, D>(q, j.q.at(row0, head, j.dim), j.q.stride, rows, j.dim);
    tile_load<T, D>(dout, j.dout.at(row0, head, j.dim), j.dout.stride, rows, j.dim);
    float dq[D / 8][4] = {{0}}, lse[2] = {0, 0}, delta[2] = {0, 0};
    for (int half = 0; half < 2; half++) {
        int row = mine + lane / 4 + half * 8;
        if (row < rows) {
            lse[half] = j.lse[head * j.lse_stride + row0 + row] * log2e;
            delta[half] = j.delta[head * j.n + row0 + row];
        }
    }
    const int64_t end = s.last(i0 + rows - 1) / TILE + 1;
    for (int64_t t = s.first(i0) / TILE; t < end; t++) {
        int left = (int)(s.k_len - t * TILE < TILE ? s.k_len - t * TILE : TILE);
        int64_t row = s.k_start + t * TILE;
        tile_load<T, D>(k, j.k.at(row, group, j.dim), j.k.stride, left, j.dim);
        tile_load<T, D>(v, j.v.at(row, group, j.dim), j.v.stride, left, j.dim);
        copy_commit();
        copy_wait<0>();
        __syncthreads();
        float score[8][4] = {{0}}, dp[8][4] = {{0}};
        product_rows<T, D>(score, q, mine, k);
        product_rows<T, D>(dp, dout, mine, v);
        if (j.cap > 0)
            cap_scores(j, score);
        slopes(j, s, score, dp, lse, delta, i0, t * TILE, head, mine);
        product_columns<T, D>(dq, score, k);
        __syncthreads();
    }
    const float factor[2] = {j.scale, j.scale};
    write_rows<T, D>(dq, factor, j.dq, row0, head, j.dim, mine, rows);
}

/* ---- dk and dv
 * -------------------------------------------------------------------------------------- */

/*
 * The same turned: rows are keys from `key` on, of which this warp has those from number `mine` on,
 * columns queries from `query` on. Scores become ds, dp becomes the weights.
 */
template <class T>
static __device__ void slopes_turned(const flash_job<T> &j, const span &s, float (&score)[8][4],
                                     float (&dp)[8][4], const float *lse, const float *delta,
                                     int64_t query, int64_t key, int head, int mine)
{
    const int lane = (int)threadIdx.x % 32;
    const float scale = (j.cap > 0 ? 1 : j.scale) * log2e;
    const sight see = sight_of(s, query, key);
    const bool all = see.all(0, TILE - 1, mine, mine + WARP_ROWS - 1);
#pragma unroll
    for (int n = 0; n < 8; n++)
#pragma unroll
        for (int e = 0; e < 4; e++) {
            int i = n * 8 + lane % 4 * 2 + e % 2, k = mine + lane / 4 + e / 2 * 8;
            float p = exp2f(fmaf(score[n][e], scale, -lse[i])), drop = 1;
            if (!all && !see.sees(i, k))
                p = 0;
            if (j.drop.on)
                drop = weight_drop(j, s.q_start + query + i, head, key + k);
            dp[n][e] = dp[n][e] * drop - delta[i];
            dp[n][e] *= j.cap > 0 ? cap_slope(j, score[n][e]) : 1;
            score[n][e] = p * dp[n][e];
            dp[n][e] = p * drop;
        }
}

template <class T, int D>
static __global__ void __launch_bounds__(TILE_THREADS) flash_dkv(const flash_job<T> j)
{
    extern __shared__ __align__(16) unsigned char memory[];
    __shared__ float lse[TILE], delta[TILE];
    T *k = (T *)memory, *v = k + tile_numbers<D>(), *q = v + tile_numbers<D>(),
      *dout = q + tile_numbers<D>();
    const int group = (int)blockIdx.y, each = j.heads / j.groups;
    const int mine = (int)threadIdx.x / 32 * WARP_ROWS;
    int64_t tile;
    span s;
    if (!tile_of(j, blockIdx.x, TILE, true, &s, &tile))
        return;
    const int64_t k0 = tile * TILE, row0 = s.k_start + k0;
    const int rows = (int)(s.k_len - k0 < TILE ? s.k_len - k0 : TILE);
    tile_load<T, D>(k, j.k.at(row0, group, j.dim), j.k.stride, rows, j.dim);
    tile_load<T, D>(v, j.v.at(row0, group, j.dim), j.v.stride, rows, j.dim);
    float dk[D / 8][4] = {{0}}, dv[D / 8][4] = {{0}};
    /* queries from the first that sees key k0 to the last that sees the tile's last key */
    int64_t from = k0 - (s.k_len - s.count), to = s.count;
    if (s.window > 0 && from + rows - 1 + s.window < to)
        to = from + rows - 1 + s.window;
    from = from > 0 ? from / TILE * TILE : 0;
    for (int head = group * each; head < (group + 1) * each; head++) {
        for (int64_t i0 = from; i0 < to; i0 += TILE) {
            int left = (int)(s.count - i0 < TILE ? s.count - i0 : TILE);
            int64_t row = s.q_start + i0;
            tile_load<T, D>(q, j.q.at(row, head, j.dim), j.q.stride, left, j.dim);
            tile_load<T, D>(dout, j.dout.at(row, head, j.dim), j.dout.stride, left, j.dim);
            copy_commit();
            for (int i = (int)threadIdx.x; i < TILE; i += TILE_THREADS) {
                lse[i] = i < left ? j.lse[head * j.lse_stride + row + i] * log2e : 0;
                delta[i] = i < left ? j.delta[head * j.n + row + i] : 0;
            }
            copy_wait<0>();
            __syncthreads();
            float score[8][4] = {{0}}, dp[8][4] = {{0}};
            product_rows<T, D>(score, k, mine, q);
            product_rows<T, D>(dp, v, mine, dout);
            if (j.cap > 0)
                cap_scores(j, score);
            slopes_turned(j, s, score, dp, lse, delta, i0, k0, head, mine);
            product_columns<T, D>(dv, dp, dout);
            product_columns<T, D>(dk, score, q);
            __syncthreads();
        }
    }
    const float scale[2] = {j.scale, j.scale}, one[2] = {1, 1};
    write_rows<T, D>(dk, scale, j.dk, row0, group, j.dim, mine, rows);
    write_rows<T, D>(dv, one, j.dv, row0, group, j.dim, mine, rows);
}

/* ---- entries
 * ---------------------------------------------------------------------------------------- */

template <class T, int D> static void portable(dev *d, const flash_job<T> &j)
{
    cudaStream_t stream = (cudaStream_t)dev_cuda_stream(d, STREAM_COMPUTE);
    const int bytes = 4 * tile_numbers<D>() * (int)sizeof(T);
    cudaFuncSetAttribute(flash_dq<T, D>, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
    cudaFuncSetAttribute(flash_dkv<T, D>, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
    flash_dq<T, D>
        <<<dim3(tiles_for(j.n, j.sequences), (unsigned)j.heads), TILE_THREADS, bytes, stream>>>(j);
    flash_dkv<T, D>
        <<<dim3(tiles_for(j.keys, j.sequences), (unsigned)j.groups), TILE_THREADS, bytes, stream>>>(
            j);
}

/* Rounded up, so that what lies behind it is aligned. */
static size_t delta_bytes(const attention_args *a)
{
    return ((size_t)(a->q.size[0] * a->q.size[1]) * sizeof(float) + 255) / 256 * 256;
}

static const int64_t most_kept = (int64_t)256 << 20;

/* Of flash_job's `kept`; 0: none. A bit for each weight, kept or not. */
static size_t kept_bytes(const attention_args *a)
{
    int64_t tiles = ceil_div(a->max_len, 128);
    int64_t bytes = a->k_len.size[0] * a->q.size[1] * tiles * tiles * (128 * 128 / 8);
    return a->drop.p > 0 && a->even && a->cap <= 0 && bytes <= most_kept ? (size_t)bytes : 0;
}

template <class T>
static void backward(dev *d, const attention_bwd_args *b, bool wgmma, void *scratch)
{
    flash_job<T> j = flash_job_of<T>(&b->fwd);
    cudaStream_t stream = (cudaStream_t)dev_cuda_stream(d, STREAM_COMPUTE);
    const int lanes = j.dim <= 64 ? 8 : 16;
    const unsigned blocks = (unsigned)ceil_div(j.n * j.heads * lanes, TILE_THREADS);
    j.dout = heads_of<T>(b->dout);
    j.dq = heads_of<T>(b->dq);
    j.dk = heads_of<T>(b->dk);
    j.dv = heads_of<T>(b->dv);
    j.delta = (float *)scratch;
    j.delta_by = wgmma && j.drop.on ? 1 / j.drop.scale : 1; /* see flash_wgmma_bwd.cu */
    if (wgmma && kept_bytes(&b->fwd))
        j.kept = (uint32_t *)((char *)scratch + delta_bytes(&b->fwd));
    if (j.keys)
        flash_zero<T><<<(unsigned)ceil_div(j.keys, ZERO_ROWS), TILE_THREADS, 0, stream>>>(j);
    if (!j.n)
        return;
    if (lanes == 8)
        flash_delta<T, 8><<<blocks, TILE_THREADS, 0, stream>>>(j);
    else
        flash_delta<T, 16><<<blocks, TILE_THREADS, 0, stream>>>(j);
    if (wgmma)
        flash_wgmma_bwd(d, j);
    else if (j.dim <= 64)
        portable<T, 64>(d, j);
    else
        portable<T, 128>(d, j);
}

extern "C" size_t flash_bwd_scratch(const attention_bwd_args *b)
{
    return delta_bytes(&b->fwd) + kept_bytes(&b->fwd);
}

extern "C" void flash_attention_bwd(dev *d, const attention_bwd_args *b, enum flash_kernels which,
                                    void *scratch)
{
    const bool wgmma = which == FLASH_FASTEST && flash_by_wgmma(&d->desc, &b->fwd);
    BUG_ON(!flash_takes_bwd(b), "attention of a form that flash_takes_bwd refuses");
    if (b->fwd.q.dtype == DTYPE_BF16)
        backward<__nv_bfloat16>(d, b, wgmma, scratch);
    else
        backward<__half>(d, b, wgmma, scratch);
    dev_cuda_check(d, "launch");
}

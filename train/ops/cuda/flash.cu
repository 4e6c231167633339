/* SPDX-License-Identifier: Apache-2.0 */
#include "train/ops/cuda/flash.cuh"

/*
 * Forward: a block has 64 queries of a head, 16 for each of its four warps, and goes through the
 * keys that any of them sees, 64 at a time, the next 64 being copied meanwhile.
 */

static const float log2e = 1.44269504088896340736f;

/* -INFINITY where a query, from number `mine` of its tile on, does not see a key. */
static __device__ void mask_scores(sight s, float (&score)[8][4], int mine)
{
    const int lane = (int)threadIdx.x % 32;
#pragma unroll
    for (int n = 0; n < 8; n++)
#pragma unroll
        for (int e = 0; e < 4; e++)
            if (!s.sees(mine + lane / 4 + e / 2 * 8, n * 8 + lane % 4 * 2 + e % 2))
                score[n][e] = -INFINITY;
}

template <class T>
static __device__ void drop_weights(const flash_job<T> &j, const span &s, float (&p)[8][4],
                                    int64_t query, int64_t key, int head)
{
    const int lane = (int)threadIdx.x % 32;
#pragma unroll
    for (int n = 0; n < 8; n++)
#pragma unroll
        for (int e = 0; e < 4; e++)
            p[n][e] *= weight_drop(j, s.q_start + query + lane / 4 + e / 2 * 8, head,
                                   key + n * 8 + lane % 4 * 2 + e % 2);
}

/* Scores of a tile become weights against the rows' maxima so far; *sum and o are rescaled. */
template <int D>
static __device__ void soften(float (&score)[8][4], float (&max)[2], float (&sum)[2],
                              float (&o)[D / 8][4], float scale)
{
#pragma unroll
    for (int half = 0; half < 2; half++) {
        float top = max[half];
#pragma unroll
        for (int n = 0; n < 8; n++)
            top = fmaxf(top, fmaxf(score[n][2 * half], score[n][2 * half + 1]));
        top = row_max(top);
        float base = top == -INFINITY ? 0 : top * scale, total = 0;
        float old = exp2f(max[half] * scale - base);
#pragma unroll
        for (int n = 0; n < 8; n++)
#pragma unroll
            for (int e = 2 * half; e < 2 * half + 2; e++) {
                score[n][e] = exp2f(fmaf(score[n][e], scale, -base));
                total += score[n][e];
            }
        sum[half] = sum[half] * old + row_sum(total);
        max[half] = top;
#pragma unroll
        for (int n = 0; n < D / 8; n++) {
            o[n][2 * half] *= old;
            o[n][2 * half + 1] *= old;
        }
    }
}

template <class T, int D>
static __global__ void __launch_bounds__(TILE_THREADS) flash_forward(const flash_job<T> j)
{
    extern __shared__ __align__(16) unsigned char memory[];
    T *q = (T *)memory, *k = q + tile_numbers<D>(), *v = k + 2 * tile_numbers<D>();
    const int head = (int)blockIdx.y, group = head / (j.heads / j.groups);
    const int lane = (int)threadIdx.x % 32, mine = (int)threadIdx.x / 32 * WARP_ROWS;
    int64_t tile;
    span s;
    if (!tile_of(j, blockIdx.x, TILE, false, &s, &tile))
        return;
    const int64_t i0 = tile * TILE;
    const int rows = (int)(s.count - i0 < TILE ? s.count - i0 : TILE);
    const int64_t begin = s.first(i0) / TILE, end = s.last(i0 + rows - 1) / TILE + 1;
    auto load_keys = [&](int64_t t, int stage) {
        int left = (int)(s.k_len - t * TILE < TILE ? s.k_len - t * TILE : TILE);
        int64_t row = s.k_start + t * TILE;
        tile_load<T, D>(k + stage * tile_numbers<D>(), j.k.at(row, group, j.dim), j.k.stride, left,
                        j.dim);
        tile_load<T, D>(v + stage * tile_numbers<D>(), j.v.at(row, group, j.dim), j.v.stride, left,
                        j.dim);
    };
    tile_load<T, D>(q, j.q.at(s.q_start + i0, head, j.dim), j.q.stride, rows, j.dim);
    load_keys(begin, 0);
    copy_commit();
    const float scale = j.cap > 0 ? 1 : j.scale;
    float o[D / 8][4] = {{0}}, max[2] = {-INFINITY, -INFINITY}, sum[2] = {0, 0};
    for (int64_t t = begin; t < end; t++) {
        const int stage = (int)((t - begin) % 2);
        if (t + 1 < end)
            load_keys(t + 1, stage ^ 1);
        copy_commit();
        copy_wait<1>();
        __syncthreads();
        float score[8][4] = {{0}};
        product_rows<T, D>(score, q, mine, k + stage * tile_numbers<D>());
        if (j.cap > 0)
            cap_scores(j, score);
        const sight see = sight_of(s, i0, t * TILE);
        if (!see.all(mine, mine + WARP_ROWS - 1, 0, TILE - 1))
            mask_scores(see, score, mine);
        soften<D>(score, max, sum, o, scale * log2e);
        if (j.drop.on)
            drop_weights(j, s, score, i0 + mine, t * TILE, head);
        product_columns<T, D>(o, score, v + stage * tile_numbers<D>());
        __syncthreads();
    }
    float factor[2] = {1 / sum[0], 1 / sum[1]};
    write_rows<T, D>(o, factor, j.o, s.q_start + i0, head, j.dim, mine, rows);
    for (int half = 0; half < 2 && j.lse && lane % 4 == 0; half++) {
        int row = mine + lane / 4 + half * 8;
        if (row < rows)
            j.lse[head * j.lse_stride + s.q_start + i0 + row] = max[half] * scale + logf(sum[half]);
    }
}

template <class T, int D> static void forward(dev *d, const attention_args *a)
{
    flash_job<T> j = flash_job_of<T>(a);
    const int bytes = 5 * tile_numbers<D>() * (int)sizeof(T);
    dim3 grid(tiles_for(j.n, j.sequences), (unsigned)j.heads);
    cudaFuncSetAttribute(flash_forward<T, D>, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
    flash_forward<T, D>
        <<<grid, TILE_THREADS, bytes, (cudaStream_t)dev_cuda_stream(d, STREAM_COMPUTE)>>>(j);
}

extern "C" void flash_attention(dev *d, const attention_args *a, enum flash_kernels which)
{
    bool narrow = a->q.size[2] <= 64, bf16 = a->q.dtype == DTYPE_BF16;
    BUG_ON(!flash_takes(a), "attention of a form that flash_takes refuses");
    if (!a->q.size[0])
        return;
    if (which == FLASH_FASTEST && flash_by_wgmma(&d->desc, a))
        flash_wgmma(d, a);
    else if (bf16 && narrow)
        forward<__nv_bfloat16, 64>(d, a);
    else if (bf16)
        forward<__nv_bfloat16, 128>(d, a);
    else if (narrow)
        forward<__half, 64>(d, a);
    else
        forward<__half, 128>(d, a);
    dev_cuda_check(d, "launch");
}

/* ---- what the kernels take
 * ----------------------------------------------------------------------- */

static bool takes(tensor t, enum dtype type)
{
    return t.dtype == type && (uintptr_t)t.data % 16 == 0 && t.stride % 8 == 0;
}

extern "C" bool flash_takes(const attention_args *a)
{
    enum dtype type = a->q.dtype;
    return (type == DTYPE_BF16 || type == DTYPE_F16) && a->q.size[2] <= 128 &&
           a->q.size[2] % 8 == 0 && takes(a->q, type) && takes(a->k, type) && takes(a->v, type) &&
           takes(a->o, type) && a->q.size[1] <= 65535;
}

extern "C" bool flash_takes_bwd(const attention_bwd_args *b)
{
    enum dtype type = b->fwd.q.dtype;
    return flash_takes(&b->fwd) && takes(b->dout, type) && takes(b->dq, type) &&
           takes(b->dk, type) && takes(b->dv, type);
}

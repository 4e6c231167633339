/* SPDX-License-Identifier: Apache-2.0 */
#include "train/ops/cuda/flash_wgmma.cuh"

/*
 * Forward for compute capability 9.0: a block has 64 queries of a head for each of its warp groups
 * and goes through the keys that any of them sees, KEYS at a time. Scores of the next keys and the
 * output of these are multiplied at once; the weights of the next are found meanwhile.
 */

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

template <int KEYS> struct soft_rows {
    float max[2], sum[2]; /* of this thread's own columns, sums of them alone */
};

template <int KEYS>
static __device__ void mask_scores(sight s, float (&score)[KEYS / 8][4], int mine)
{
    if (s.all(mine, mine + WARP_ROWS - 1, 0, KEYS - 1))
        return;
    const across_sight see(s, mine);
#pragma unroll
    for (int n = 0; n < KEYS / 8; n++)
#pragma unroll
        for (int e = 0; e < 4; e++)
            if (!see.sees(n, e / 2, e % 2))
                score[n][e] = -INFINITY;
}

/* Scores become weights against the rows' maxima so far; earlier sums are to be times factor. */
template <int KEYS>
static __device__ void wgmma_soften(float (&score)[KEYS / 8][4], soft_rows<KEYS> &r,
                                    float (&factor)[2], float scale)
{
#pragma unroll
    for (int half = 0; half < 2; half++) {
        float top = r.max[half];
#pragma unroll
        for (int n = 0; n < KEYS / 8; n++)
            top = fmaxf(top, fmaxf(score[n][2 * half], score[n][2 * half + 1]));
        top = row_max(top);
        float base = top == -INFINITY ? 0 : top * scale, total[2] = {0, 0};
        factor[half] = power_of_two(fmaf(r.max[half], scale, -base));
#pragma unroll
        for (int n = 0; n < KEYS / 8; n++)
#pragma unroll
            for (int e = 0; e < 2; e++) {
                float &x = score[n][2 * half + e];
                x = power_of_two(fmaf(x, scale, -base));
                total[e] += x;
            }
        r.sum[half] = fmaf(r.sum[half], factor[half], total[0] + total[1]);
        r.max[half] = top;
    }
}

/* What the threads of a block know of it. */
template <class T, int D, int KEYS, int GROUPS> struct forward_block {
    enum { ROWS = 64 * GROUPS, THREADS = WARP_GROUP * GROUPS };
    const flash_job<T> &j;
    T *q, *k, *v;
    near_span s;
    int i0, begin, end, head, group, rows, mine;

    __device__ void load(T *to, const rows_of_heads<T> &from, int t) const
    {
        panels_load<T, D, KEYS, THREADS, KEYS_ACROSS>(to,
                                                      from.at(s.k_start + t * KEYS, group, j.dim),
                                                      from.stride, s.k_len - t * KEYS, j.dim);
    }
    __device__ T *keys(int t) const
    {
        return k + (t - begin) % 2 * (KEYS * D);
    }
    __device__ T *values(int t) const
    {
        return v + (t - begin) % 2 * (KEYS * D);
    }
    __device__ void load_next(int t) const
    {
        if (t + 1 < end)
            load(values(t + 1), j.v, t + 1);
        if (t + 2 < end)
            load(keys(t + 2), j.k, t + 2);
        copy_commit();
    }
};

template <class T, int D, int KEYS, int GROUPS, bool DROP>
static __device__ void forward_rows(const forward_block<T, D, KEYS, GROUPS> &b,
                                    float (&o)[D / 8][4], soft_rows<KEYS> &r)
{
    enum { ROWS = 64 * GROUPS };
    const flash_job<T> &j = b.j;
    const float scale = j.scale * LOG2E;
    const int group_row = alike((int)threadIdx.x / WARP_GROUP * 64);
    float score[KEYS / 8][4], factor[2];
    uint32_t p[KEYS / 16][4];
    kept_across<KEYS> kept;
    if (DROP)
        kept.begin(j, b.s.q_start + b.i0 + b.mine, b.head);
    auto weights = [&](int t) {
        mask_scores<KEYS>(b.s.at(b.i0, t * KEYS), score, b.mine);
        wgmma_soften<KEYS>(score, r, factor, scale);
    };
    auto narrow = [&]() {
        narrow_sums<T, KEYS>(p, score);
        if (DROP)
            drop_narrow<KEYS>(p, kept);
    };
    products_begin();
    tiles_product<T, D, ROWS, KEYS>(score, b.q, group_row, b.keys(b.begin));
    products_commit();
    if (DROP)
        kept.draw(b.begin * KEYS);
    products_wait<0>();
    settle(score);
    weights(b.begin);
    narrow();
    for (int t = b.begin; t + 1 < b.end; t++) {
        copies_done<0>();
        b.load_next(t);
        settle(o);
        products_begin();
        tiles_product<T, D, ROWS, KEYS>(score, b.q, group_row, b.keys(t + 1));
        products_commit();
        held_by_tile<T, D, KEYS>(o, p, b.values(t));
        products_commit();
        if (DROP)
            kept.draw((t + 1) * KEYS);
        products_wait<1>();
        settle(score);
        weights(t + 1);
        products_wait<0>();
        settle(o);
#pragma unroll
        for (int n = 0; n < D / 8; n++)
#pragma unroll
            for (int e = 0; e < 4; e++)
                o[n][e] *= factor[e / 2];
        narrow();
    }
    copies_done<0>();
    settle(o);
    products_begin();
    held_by_tile<T, D, KEYS>(o, p, b.values(b.end - 1));
    products_commit();
    products_wait<0>();
    settle(o);
}

#endif

template <class T, int D, int KEYS, int GROUPS, int BLOCKS, bool DROP>
static __global__ void __launch_bounds__(128 * GROUPS, BLOCKS)
    flash_forward(const flash_job<T> j, const tile_grid g)
{
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    enum { ROWS = 64 * GROUPS, THREADS = WARP_GROUP * GROUPS };
    extern __shared__ __align__(1024) unsigned char memory[];
    T *q = (T *)memory, *k = q + ROWS * D, *v = k + 2 * KEYS * D;
    const int lane = (int)threadIdx.x % 32;
    block_part part;
    if (!block_tile(j, g, j.heads, ROWS, false, &part))
        return;
    const near_span s = part.s;
    const int head = part.head, tile = part.tile;
    const int i0 = tile * ROWS, rows = s.count - i0 < ROWS ? s.count - i0 : ROWS;
    const forward_block<T, D, KEYS, GROUPS> b = {j,
                                                 q,
                                                 k,
                                                 v,
                                                 s,
                                                 i0,
                                                 s.first(i0) / KEYS,
                                                 s.last(i0 + rows - 1) / KEYS + 1,
                                                 head,
                                                 head / (j.heads / j.groups),
                                                 rows,
                                                 (int)threadIdx.x / 32 * WARP_ROWS};
    panels_load<T, D, ROWS, THREADS>(q, j.q.at(s.q_start + i0, head, j.dim), j.q.stride, rows,
                                     j.dim);
    b.load(k, j.k, b.begin);
    copy_commit();
    b.load(v, j.v, b.begin);
    if (b.begin + 1 < b.end)
        b.load(b.keys(b.begin + 1), j.k, b.begin + 1);
    copy_commit();
    copies_done<1>();
    float o[D / 8][4] = {{0}};
    soft_rows<KEYS> r = {{-INFINITY, -INFINITY}, {0, 0}};
    forward_rows<T, D, KEYS, GROUPS, DROP>(b, o, r);
    const float sum[2] = {row_sum(r.sum[0]), row_sum(r.sum[1])}, by = DROP ? j.drop.scale : 1;
    const float factor[2] = {by / sum[0], by / sum[1]};
    write_rows<T, D>(o, factor, j.o, s.q_start + i0, head, j.dim, b.mine, rows);
    for (int half = 0; half < 2 && j.lse && lane % 4 == 0; half++) {
        int row = b.mine + lane / 4 + half * 8;
        if (row < rows)
            j.lse[head * j.lse_stride + s.q_start + i0 + row] =
                r.max[half] * j.scale + logf(sum[half]);
    }
#endif
}

template <class T, int D, int KEYS, int GROUPS, int BLOCKS, bool DROP>
static void issue_forward(dev *d, const attention_args *a)
{
    flash_job<T> j = flash_job_of<T>(a);
    const int rows = 64 * GROUPS, bytes = (rows + 4 * KEYS) * D * (int)sizeof(T);
    tile_grid g = grid_of(j.n, j.sequences, j.max_len, rows, j.dim);
    auto kernel = flash_forward<T, D, KEYS, GROUPS, BLOCKS, DROP>;
    cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
    kernel<<<g.tiles *(unsigned)j.heads, 128 * GROUPS, bytes,
             (cudaStream_t)dev_cuda_stream(d, STREAM_COMPUTE)>>>(j, g);
}

/*
 * Heads of 64: three blocks of one warp group fill a multiprocessor and do not wait for each other.
 */
template <class T, bool DROP> static void forward_of(dev *d, const attention_args *a)
{
    if (a->q.size[2] <= 64)
        issue_forward<T, 64, 128, 1, 3, DROP>(d, a);
    else
        issue_forward<T, 128, 128, 2, 1, DROP>(d, a);
}

extern "C" bool flash_by_wgmma(const dev_desc *d, const attention_args *a)
{
    return WEFT_SM90A && d->capability == 90 && a->cap <= 0;
}

void flash_wgmma(dev *d, const attention_args *a)
{
    const bool bf16 = a->q.dtype == DTYPE_BF16, drop = a->drop.p > 0;
    if (bf16 && drop)
        forward_of<__nv_bfloat16, true>(d, a);
    else if (bf16)
        forward_of<__nv_bfloat16, false>(d, a);
    else if (drop)
        forward_of<__half, true>(d, a);
    else
        forward_of<__half, false>(d, a);
}

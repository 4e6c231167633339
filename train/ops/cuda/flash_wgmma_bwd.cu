/* SPDX-License-Identifier: Apache-2.0 */
#include "train/ops/cuda/flash_wgmma.cuh"

/*
 * Backward for compute capability 9.0, in the two kernels of flash_bwd.cu: a block has 64 rows
 * (queries for dq; keys for dk and dv) for each of its warp groups and goes through 64 of the other
 * side at a time, of which the next are being multiplied while these become ds.
 */

/* What the kernel of dq keeps: all weights, those that it draws, those that the one of dk and dv
 * has drawn, which goes first. */
enum keeping { KEEPS_ALL, DRAWS, READS };

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

enum { STEP = 64, STAGES = 3 };

/*
 * Where the bits of 64 queries and 16 keys are in j.kept, from `query` and `key` of a sequence on:
 * 32 words, the word of kept_turned of lane l at l % 4 * 8 + l / 4. Tiles of a head are counted to
 * a multiple of 128 rows.
 */
template <class T>
static __device__ uint32_t *kept_at(const flash_job<T> &j, const near_span &s, int head, int query,
                                    int key)
{
    const unsigned tiles = ((unsigned)j.max_len + 127) / 128;
    const int64_t i = s.q_start / j.max_len * j.heads + head;
    return j.kept + ((i * (tiles * 2) + query / 64) * (tiles * 8) + key / 16) * 32;
}

/* As kept_across of 64 keys, read instead of drawn, two tiles ahead. */
struct kept_read {
    uint4 now[2], next[2];
    const uint32_t *from; /* this thread's words of key 0 */
    int shift, end;

    template <class T>
    __device__ void begin(const flash_job<T> &j, const near_span &s, int head, int query, int tile,
                          int end_tile)
    {
        const int lane = (int)threadIdx.x % 32, group = query / 16 % 4;
        from = kept_at(j, s, head, query, 0) + lane % 4 / 2 * 32 + lane / 8 * 8 + lane % 2 * 4;
        shift = group % 2 * 16 + group / 2 * 2 + lane / 4 % 2;
        end = end_tile;
        read(tile);
    }
    __device__ void read(int tile)
    {
        if (tile < end)
#pragma unroll
            for (int k = 0; k < 2; k++)
                next[k] = __ldg((const uint4 *)(from + (tile * 4 + k * 2) * 32));
    }
    /* Of tile `tile`, and the next begins to be read. */
    __device__ void turn(int tile)
    {
#pragma unroll
        for (int k = 0; k < 2; k++)
            now[k] = make_uint4(next[k].x >> shift, next[k].y >> shift, next[k].z >> shift,
                                next[k].w >> shift);
        read(tile + 1);
    }
    __device__ bool kept(int n, int half, int e) const
    {
        const uint4 &x = now[n / 4];
        const uint32_t word = n % 4 == 0 ? x.x : n % 4 == 1 ? x.y : n % 4 == 2 ? x.z : x.w;
        return word & 1u << (half * 8 + (e ? 0 : 4));
    }
};

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
            panels_load<T, D, STEP, THREADS, KEYS_ACROSS>(keys(t), j.k.at(row, group, j.dim),
                                                          j.k.stride, left, j.dim);
            panels_load<T, D, STEP, THREADS, KEYS_ACROSS>(values(t), j.v.at(row, group, j.dim),
                                                          j.v.stride, left, j.dim);
        }
        copy_commit();
    }
};

/* Scores and dp (rows are queries) become ds in `score`; lse is of the base 2. */
template <class T, bool DROP, int D, int GROUPS, class KEPT>
static __device__ void slopes(const dq_block<T, D, GROUPS> &b, int t, float (&score)[8][4],
                              const float (&dp)[8][4], const float (&lse)[2],
                              const float (&delta)[2], const KEPT &kept)
{
    const float scale = b.j.scale * LOG2E;
    const sight see = b.s.at(b.i0, t * STEP);
#pragma unroll
    for (int n = 0; n < 8; n++)
#pragma unroll
        for (int e = 0; e < 4; e++)
            score[n][e] = power_of_two(fmaf(score[n][e], scale, -lse[e / 2]));
    if (!see.all(b.mine, b.mine + WARP_ROWS - 1, 0, STEP - 1)) {
        const across_sight across(see, b.mine);
#pragma unroll
        for (int n = 0; n < 8; n++)
#pragma unroll
            for (int e = 0; e < 4; e++)
                if (!across.sees(n, e / 2, e % 2))
                    score[n][e] = 0;
    }
#pragma unroll
    for (int n = 0; n < 8; n++)
#pragma unroll
        for (int e = 0; e < 4; e++) {
            const bool keeps = !DROP || kept.kept(n, e / 2, e % 2);
            score[n][e] *= (keeps ? dp[n][e] : 0) - delta[e / 2];
        }
}

template <class T, int D, int GROUPS, keeping KEEPING>
static __device__ void dq_rows(const dq_block<T, D, GROUPS> &b, float (&dq)[D / 8][4],
                               const float (&lse)[2], const float (&delta)[2])
{
    enum { ROWS = 64 * GROUPS };
    const int row = alike((int)threadIdx.x / WARP_GROUP * 64);
    float score[8][4], dp[8][4];
    uint32_t ds[4][4];
    const bool DROP = KEEPING != KEEPS_ALL;
    std::conditional_t<KEEPING == READS, kept_read, kept_across<STEP>> kept;
    if constexpr (KEEPING == DRAWS)
        kept.begin(b.j, b.s.q_start + b.i0 + b.mine, b.head);
    else if constexpr (KEEPING == READS)
        kept.begin(b.j, b.s, b.head, b.i0 + b.mine, b.begin, b.end);
    auto turn = [&](int t) {
        if constexpr (KEEPING == DRAWS)
            kept.draw(t * STEP);
        else if constexpr (KEEPING == READS)
            kept.turn(t);
    };
    auto begin_scores = [&](int t) {
        tiles_product<T, D, ROWS, STEP>(score, b.q, row, b.keys(t));
        tiles_product<T, D, ROWS, STEP>(dp, b.dout, row, b.values(t));
        products_commit();
    };
    products_begin();
    begin_scores(b.begin);
    turn(b.begin);
    products_wait<0>();
    settle(score);
    settle(dp);
    slopes<T, DROP>(b, b.begin, score, dp, lse, delta, kept);
    narrow_sums<T, STEP>(ds, score);
    for (int t = b.begin; t + 1 < b.end; t++) {
        copies_done<0>();
        b.load(t + 2);
        settle(dq);
        products_begin();
        begin_scores(t + 1);
        held_by_tile<T, D, STEP>(dq, ds, b.keys(t));
        products_commit();
        turn(t + 1);
        products_wait<1>();
        settle(score);
        settle(dp);
        slopes<T, DROP>(b, t + 1, score, dp, lse, delta, kept);
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

/*
 * Which weights are kept of a thread's 2 keys and 16 queries: bit kept_bit(n, e) for number e of
 * score[n]. Of a block of 8 keys and a query 4 threads have a word each. Each of them draws the
 * blocks of a quarter of the queries, and they exchange the bits.
 */
static __device__ constexpr int kept_bit(int n, int e)
{
    return n % 4 * 8 + (e < 2 ? 4 : 0) + n / 4 * 2 + e % 2;
}

/* x where number e of score[n] is kept, else 0. */
static __device__ inline float where_kept(uint32_t kept, int n, int e, float x)
{
    uint32_t all; /* of the sign of byte n % 4 */
    const uint32_t moved = kept << (7 - kept_bit(0, e) - n / 4 * 2);
    asm("prmt.b32 %0, %1, %1, %2;" : "=r"(all) : "r"(moved), "r"(0x8888 + 0x1111 * (n % 4)));
    return __uint_as_float(__float_as_uint(x) & all);
}

template <class T, int D, int GROUPS>
static __device__ uint32_t kept_turned(const dkv_block<T, D, GROUPS> &b, way w, uint64_t seed)
{
    const flash_job<T> &j = b.j;
    const int lane = (int)threadIdx.x % 32, own = lane / 4 % 4;
    const uint64_t next = drop_row_block((uint64_t)j.all_heads, j.max_len); /* a query further */
    const uint64_t line = drop_line(j, b.s.q_start + w.query + own * 8 + lane % 4 * 2, w.head) +
                          (unsigned)((b.k0 + b.mine) / DROP_BLOCK + lane / 16);
    const uint32_t addend = drop_addend(j.drop), high = 0x80008000u;
    uint32_t word[4] = {0, 0, 0, 0}; /* in bits 12 + i and 28 + i block i's */
    uint4 r[4];
#pragma unroll
    for (int i = 0; i < 4; i++) /* queries own * 8 + 32 (i / 2) + i % 2 */
        r[i] = drop_counter(j.drop.sub, line + (unsigned)(i / 2 * 32 + i % 2) * next);
    drop_random(seed, r);
#pragma unroll
    for (int i = 0; i < 4; i++) {
        word[0] = word[0] >> 1 | (drop_kept(r[i].x, addend) & high);
        word[1] = word[1] >> 1 | (drop_kept(r[i].y, addend) & high);
        word[2] = word[2] >> 1 | (drop_kept(r[i].z, addend) & high);
        word[3] = word[3] >> 1 | (drop_kept(r[i].w, addend) & high);
    }
    /* byte v: for the thread with word v; in its upper half those of its first key */
    const uint32_t low = __byte_perm(__byte_perm(word[0], word[1], 0x51),
                                     __byte_perm(word[2], word[3], 0x51), 0x5410);
    const uint32_t up = __byte_perm(__byte_perm(word[0], word[1], 0x73),
                                    __byte_perm(word[2], word[3], 0x73), 0x5410);
    const uint32_t drawn = low | up >> 4, mine = (unsigned)own * 0x11 + 0x40;
    uint32_t from[4];
#pragma unroll
    for (int i = 0; i < 4; i++)
        from[i] = __shfl_sync(~0u, drawn, (lane & ~12) | i * 4);
    uint32_t kept = __byte_perm(__byte_perm(from[0], from[1], mine),
                                __byte_perm(from[2], from[3], mine), 0x5410);
    asm volatile("" : "+r"(kept)); /* before the products are waited for */
    if (j.kept)
        kept_at(j, b.s, w.head, w.query, b.k0 + b.mine)[lane % 4 * 8 + lane / 4] = kept;
    return kept;
}

/* Scores (rows are keys) become ds; dp becomes the weights that are kept. */
template <class T, bool DROP, int D, int GROUPS>
static __device__ void slopes_turned(const dkv_block<T, D, GROUPS> &b, way w, uint32_t kept,
                                     float (&score)[8][4], float (&dp)[8][4])
{
    const int at = w.stage * STEP + (int)threadIdx.x % 4 * 2;
    const float scale = b.j.scale * LOG2E;
    const sight see = b.s.at(w.query, b.k0);
#pragma unroll
    for (int n = 0; n < 8; n++) {
        const float2 lse = *(const float2 *)(b.lse + at + n * 8);
#pragma unroll
        for (int e = 0; e < 4; e++)
            score[n][e] = power_of_two(fmaf(score[n][e], scale, -(e % 2 ? lse.y : lse.x) * LOG2E));
    }
    if (!see.all(0, STEP - 1, b.mine, b.mine + WARP_ROWS - 1)) {
        const down_sight down(see, b.mine);
#pragma unroll
        for (int n = 0; n < 8; n++)
#pragma unroll
            for (int e = 0; e < 4; e++)
                if (!down.sees(n, e))
                    score[n][e] = 0;
    }
#pragma unroll
    for (int n = 0; n < 8; n++) {
        const float2 delta = *(const float2 *)(b.delta + at + n * 8);
#pragma unroll
        for (int e = 0; e < 4; e++) {
            const float p = score[n][e], slope = DROP ? where_kept(kept, n, e, dp[n][e]) : dp[n][e];
            score[n][e] = p * (slope - (e % 2 ? delta.y : delta.x));
            dp[n][e] = DROP ? where_kept(kept, n, e, p) : p;
        }
    }
}

template <class T, int D, int GROUPS, bool DROP>
static __device__ void dkv_rows(const dkv_block<T, D, GROUPS> &b, way w, float (&dk)[D / 8][4],
                                float (&dv)[D / 8][4])
{
    enum { ROWS = 64 * GROUPS };
    const int row = alike((int)threadIdx.x / WARP_GROUP * 64);
    float score[8][4], dp[8][4];
    uint32_t weights[4][4], ds[4][4];
    way next = w;
    const uint64_t seed = DROP ? (uint64_t)alike((int64_t)drop_seed(b.j.drop)) : 0;
    b.load(next);
    while (w.head < b.heads_end) {
        b.advance(next);
        copies_done<0>();
        b.load(next);
        products_begin();
        tiles_product<T, D, ROWS, STEP>(score, b.k, row, b.queries(w));
        tiles_product<T, D, ROWS, STEP>(dp, b.v, row, b.douts(w));
        products_commit();
        uint32_t kept = DROP ? kept_turned(b, w, seed) : 0;
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

template <class T, int D, int GROUPS, int BLOCKS, keeping KEEPING>
static __global__ void __launch_bounds__(128 * GROUPS, BLOCKS)
    flash_dq(const flash_job<T> j, const tile_grid g)
{
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    enum { ROWS = 64 * GROUPS, THREADS = WARP_GROUP * GROUPS };
    extern __shared__ __align__(1024) unsigned char memory[];
    T *q = (T *)memory, *dout = q + ROWS * D, *k = dout + ROWS * D, *v = k + STAGES * STEP * D;
    const int lane = (int)threadIdx.x % 32, mine = (int)threadIdx.x / 32 * WARP_ROWS;
    block_part part;
    if (!block_tile(j, g, j.heads, ROWS, false, &part))
        return;
    const near_span s = part.s;
    const int head = part.head, tile = part.tile;
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
    dq_rows<T, D, GROUPS, KEEPING>(b, dq, lse, delta);
    const float by = KEEPING != KEEPS_ALL ? j.scale * j.drop.scale : j.scale;
    const float factor[2] = {by, by};
    write_rows<T, D>(dq, factor, j.dq, row0, head, j.dim, mine, rows);
#endif
}

template <class T, int D, int GROUPS, int BLOCKS, bool DROP>
static __global__ void __launch_bounds__(128 * GROUPS, BLOCKS)
    flash_dkv(const flash_job<T> j, const tile_grid g)
{
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    enum { ROWS = 64 * GROUPS, THREADS = WARP_GROUP * GROUPS };
    extern __shared__ __align__(1024) unsigned char memory[];
    T *k = (T *)memory, *v = k + ROWS * D, *q = v + ROWS * D, *dout = q + STAGES * STEP * D;
    float *lse = (float *)(dout + STAGES * STEP * D), *delta = lse + STAGES * STEP;
    const int mine = (int)threadIdx.x / 32 * WARP_ROWS, each = j.heads / j.groups;
    block_part part;
    if (!block_tile(j, g, j.groups, ROWS, true, &part))
        return;
    const near_span s = part.s;
    const int group = part.head, tile = part.tile;
    const int k0 = tile * ROWS, rows = s.k_len - k0 < ROWS ? s.k_len - k0 : ROWS;
    const int64_t row0 = s.k_start + k0;
    /* queries from the first that sees key k0 to the last that sees the tile's last key */
    int from = k0 - (s.k_len - s.count), to = s.count;
    if (s.window && from + rows - 1 + s.window < to)
        to = from + rows - 1 + s.window;
    from = from > 0 ? from / STEP * STEP : 0;
    const dkv_block<T, D, GROUPS> b = {
        j, k, v, q, dout, lse, delta, s, k0, from, to, to > from ? (group + 1) * each : 0, mine};
    panels_load<T, D, ROWS, THREADS, KEYS_DOWN>(k, j.k.at(row0, group, j.dim), j.k.stride, rows,
                                                j.dim);
    panels_load<T, D, ROWS, THREADS, KEYS_DOWN>(v, j.v.at(row0, group, j.dim), j.v.stride, rows,
                                                j.dim);
    float dk[D / 8][4] = {{0}}, dv[D / 8][4] = {{0}};
    dkv_rows<T, D, GROUPS, DROP>(b, {group * each, from, 0}, dk, dv);
    copy_wait<0>();
    const float by = DROP ? j.drop.scale : 1;
    const float of_keys[2] = {j.scale * by, j.scale * by}, of_values[2] = {by, by};
    write_rows<T, D, KEYS_DOWN>(dk, of_keys, j.dk, row0, group, j.dim, mine, rows);
    write_rows<T, D, KEYS_DOWN>(dv, of_values, j.dv, row0, group, j.dim, mine, rows);
#endif
}

/* ---- entries ------------------------------------------------------------------------------- */

template <class T, int D, int GROUPS, int BLOCKS, keeping KEEPING>
static void issue_dq(dev *d, const flash_job<T> &j)
{
    const int rows = 64 * GROUPS, bytes = (2 * rows + 5 * 64) * D * (int)sizeof(T);
    tile_grid g = grid_of(j.n, j.sequences, j.max_len, rows, j.dim);
    auto dq = flash_dq<T, D, GROUPS, BLOCKS, KEEPING>;
    cudaFuncSetAttribute(dq, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
    dq<<<g.tiles *(unsigned)j.heads, 128 * GROUPS, bytes,
         (cudaStream_t)dev_cuda_stream(d, STREAM_COMPUTE)>>>(j, g);
}

template <class T, int D, int GROUPS, int BLOCKS, bool DROP>
static void issue_dkv(dev *d, const flash_job<T> &j)
{
    const int rows = 64 * GROUPS;
    const int bytes = (2 * rows + 6 * 64) * D * (int)sizeof(T) + 6 * 64 * (int)sizeof(float);
    tile_grid g = grid_of(j.keys, j.sequences, j.max_len, rows, j.dim);
    auto dkv = flash_dkv<T, D, GROUPS, BLOCKS, DROP>;
    cudaFuncSetAttribute(dkv, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
    dkv<<<g.tiles *(unsigned)j.groups, 128 * GROUPS, bytes,
          (cudaStream_t)dev_cuda_stream(d, STREAM_COMPUTE)>>>(j, g);
}

/* Blocks as in the forward. */
template <class T, keeping KEEPING> static void issue_backward(dev *d, const flash_job<T> &j)
{
    const bool drop = KEEPING != KEEPS_ALL;
    if (j.dim <= 64) {
        issue_dkv<T, 64, 1, 3, drop>(d, j);
        issue_dq<T, 64, 1, 3, KEEPING>(d, j);
    } else {
        issue_dkv<T, 128, 2, 1, drop>(d, j);
        issue_dq<T, 128, 2, 1, KEEPING>(d, j);
    }
}

template <class T> static void backward_of(dev *d, const flash_job<T> &j)
{
    if (!j.drop.on)
        issue_backward<T, KEEPS_ALL>(d, j);
    else if (j.kept)
        issue_backward<T, READS>(d, j);
    else
        issue_backward<T, DRAWS>(d, j);
}

void flash_wgmma_bwd(dev *d, const flash_job<__nv_bfloat16> &j)
{
    backward_of(d, j);
}

void flash_wgmma_bwd(dev *d, const flash_job<__half> &j)
{
    backward_of(d, j);
}

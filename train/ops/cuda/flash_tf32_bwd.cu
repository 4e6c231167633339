/* SPDX-License-Identifier: Apache-2.0 */
#include "train/ops/cuda/flash_tf32.cuh"

/*
 * Backward in TF32. A block has bn keys of a key head, 16 * m for each of four warps, and goes
 * through the queries of its heads, bm at a time: dk and dv stay in registers, dq is added to in
 * turn (flash_f32.h). Scores are computed turned, keys by queries, so weights and ds are the left
 * operands of dv and dk where they are; for dq, ds passes through shared memory. Heads above 128
 * have eight warps: two for the same keys, each with half of the columns of dk and dv.
 */

template <int D> struct backward_shape {
    static constexpr int halves = D > 128 ? 2 : 1;
    static constexpr int m = 1;
    static constexpr int bm = 32;
    static constexpr int blocks = D > 128 ? 1 : D > 64 ? 2 : 3; /* of a multiprocessor */
    static constexpr int bn = 64 * m, warps = 4 * halves, threads = 32 * warps;
    /* dq: 16 rows for each warp, and columns */
    static constexpr int dq_columns = D / (warps / (bm / 16));
    static constexpr int bytes =
        (2 * (bn + bm) * f32_stride<D>() + bm * f32_stride<bn>() + 2 * bm) * (int)sizeof(float);
};

/* Where the tiles of a block are. */
template <int D> struct backward_tiles {
    float *k, *v, *q, *dout, *ds, *lse, *delta;
    __device__ backward_tiles(float *p)
    {
        typedef backward_shape<D> S;
        k = p;
        v = k + S::bn * f32_stride<D>();
        q = v + S::bn * f32_stride<D>();
        dout = q + S::bm * f32_stride<D>();
        ds = dout + S::bm * f32_stride<D>();
        lse = ds + S::bm * f32_stride<S::bn>();
        delta = lse + S::bm;
    }
};

template <class S> static __device__ int first_key()
{
    return (int)threadIdx.x / 32 % 4 * 16 * S::m;
}

/* Tile number `step` of a block's: heads one after the other, each with all its queries. */
template <int BM>
static __device__ void query_tile(const f32_job &j, const key_block &b, int step, int *ret_head,
                                  int64_t *ret_i0)
{
    *ret_head = b.group * (j.heads / j.groups) + step / b.tiles;
    *ret_i0 = b.from + (int64_t)(step % b.tiles) * BM;
}

template <int D>
static __device__ void load_queries(const f32_job &j, const key_block &b, int step,
                                    const backward_tiles<D> &m)
{
    typedef backward_shape<D> S;
    int head;
    int64_t i0;
    query_tile<S::bm>(j, b, step, &head, &i0);
    const int64_t row = b.s.q_start + i0;
    const int left = (int)(b.s.count - i0 < S::bm ? b.s.count - i0 : S::bm);
    load_rows<D, S::bm, S::threads>(m.q, j.q.at(row, head, j.dim), j.q.stride, left, j.dim);
    load_rows<D, S::bm, S::threads>(m.dout, j.dout.at(row, head, j.dim), j.dout.stride, left,
                                    j.dim);
    copy_commit();
    for (int i = (int)threadIdx.x; i < S::bm; i += S::threads) {
        m.lse[i] = i < left ? j.lse[head * j.lse_stride + row + i] * log2_of_e : 0;
        m.delta[i] = i < left ? j.delta[head * j.n + row + i] : 0;
    }
}

/*
 * Of 16 keys from number `key` of the block's on: scores become ds, dp becomes the weights. ds also
 * goes where dq's product reads it, in places that make it a left operand (flash_tf32.cuh).
 */
struct weigh_at {
    int64_t i0;
    int head, key;
};

template <int D, int N>
static __device__ void weigh(const f32_job &j, const key_block &b, weigh_at at,
                             const backward_tiles<D> &m, float (&score)[N][4], float (&dp)[N][4])
{
    typedef backward_shape<D> S;
    const int64_t i0 = at.i0;
    const int key = at.key;
    const int lane = (int)threadIdx.x % 32, half = (int)threadIdx.x / 128;
    const int row = lane / 4, query = lane % 4 * 2;
    const sight see = sight_of(b.s, i0, b.k0);
    const bool all = see.all(0, S::bm - 1, key, key + 15);
    uint64_t kept = 0;
    if (j.drop.on)
        kept = kept_weights<4 * N>(j, b.s, i0 + query, b.k0 + key + row, at.head, [](int e) {
            return make_int2(e / 4 * 8 + e % 2, e % 4 / 2 * 8);
        });
#pragma unroll
    for (int n = 0; n < N; n++)
#pragma unroll
        for (int e = 0; e < 4; e++) {
            const int i = n * 8 + query + e % 2, k = key + row + e / 2 * 8;
            float drop = !j.drop.on ? 1 : kept >> (4 * n + e) & 1 ? j.drop.scale : 0;
            weight_slope w = slope_of(j, score[n][e], dp[n][e], m.lse[i], m.delta[i],
                                      all || see.sees(i, k), drop);
            score[n][e] = w.ds;
            dp[n][e] = w.weight;
            if (n % S::halves == half)
                m.ds[i * f32_stride<S::bn>() + key + e / 2 * 8 + row / 2 + row % 2 * 4] =
                    __uint_as_float(to_tf32(w.ds));
        }
}

/* Adds this block's share to the queries' dq. */
template <int D>
static __device__ added add_dq(const f32_job &j, const key_block &b, int64_t i0, int head,
                               const backward_tiles<D> &t)
{
    typedef backward_shape<D> S;
    const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
    const int first = warp % (S::bm / 16) * 16, column = warp / (S::bm / 16) * S::dq_columns;
    float dq[1][S::dq_columns / 8][4] = {{{0}}};
#pragma unroll 2
    for (int k = 0; k < S::bn; k += 8) {
        uint32_t a[1][4];
        load_left_f32<f32_stride<S::bn>()>(a[0], t.ds, first, k);
        product_columns_f32<false, f32_stride<D>()>(dq, a, t.k + column, k);
    }
    const int turn = turn_of<S::bm, S::bn>(b.s, i0, b.tile);
    if (turn)
        turn_wait(j.turn + head * j.n + b.s.q_start + i0, turn);
#pragma unroll
    for (int half = 0; half < 2; half++) {
        const int64_t row = i0 + first + lane / 4 + half * 8;
        float *to = j.dq.at(b.s.q_start + row, head, j.dim) + column + lane % 4 * 2;
#pragma unroll
        for (int n = 0; n < S::dq_columns / 8; n++)
            if (row < b.s.count && column + 8 * n + lane % 4 * 2 < j.dim)
                add_to((float2 *)(to + 8 * n),
                       make_float2(dq[0][n][2 * half] * j.scale, dq[0][n][2 * half + 1] * j.scale),
                       turn == 0);
    }
    return {j.turn + head * j.n + b.s.q_start + i0, turn};
}

/* 16 rows of dk or dv from number `first` of the block's on, columns from `column` on. */
template <int N>
static __device__ void write_keys(const f32_job &j, const key_block &b,
                                  const rows_of_heads<float> &to, const float (&x)[N][4], int first,
                                  int column, float factor)
{
    const int lane = (int)threadIdx.x % 32;
    column += lane % 4 * 2;
#pragma unroll
    for (int half = 0; half < 2; half++) {
        const int row = first + lane / 4 + half * 8;
        float *p = to.at(b.row0 + row, b.group, j.dim) + column;
#pragma unroll
        for (int n = 0; n < N; n++)
            if (row < b.rows && column + 8 * n < j.dim)
                *(float2 *)(p + 8 * n) =
                    make_float2(x[n][2 * half] * factor, x[n][2 * half + 1] * factor);
    }
}

template <int D>
static __global__ void __launch_bounds__(backward_shape<D>::threads, backward_shape<D>::blocks)
    tf32_backward(const f32_job j)
{
    typedef backward_shape<D> S;
    extern __shared__ __align__(16) float numbers[];
    const backward_tiles<D> t(numbers);
    key_block b;
    if (!next_block<S::bm, S::bn>(j, &b))
        return;
    load_rows<D, S::bn, S::threads>(t.k, j.k.at(b.row0, b.group, j.dim), j.k.stride, b.rows, j.dim);
    load_rows<D, S::bn, S::threads>(t.v, j.v.at(b.row0, b.group, j.dim), j.v.stride, b.rows, j.dim);
    copy_commit();
    const int N = D / 8 / S::halves;
    float dk[S::m][N][4] = {{{0}}}, dv[S::m][N][4] = {{{0}}};
    const int steps = b.tiles * (j.heads / j.groups);
    const int mine = first_key<S>(), column = (int)threadIdx.x / 128 * (D / 2);
    added last = {NULL, 0};
    if (steps)
        load_queries<D>(j, b, 0, t);
    copy_wait<0>();
    round_rows<D, S::bn, S::threads>(t.k);
    round_rows<D, S::bn, S::threads>(t.v);
    for (int step = 0; step < steps; step++) {
        float score[S::m][S::bm / 8][4] = {{{0}}}, dp[S::m][S::bm / 8][4] = {{{0}}};
        int head;
        int64_t i0;
        query_tile<S::bm>(j, b, step, &head, &i0);
        copy_wait<0>();
        round_rows<D, S::bm, S::threads>(t.q);
        round_rows<D, S::bm, S::threads>(t.dout);
        __syncthreads();
        product_rows_f32<D, false>(score, t.k, mine, t.q);
        product_rows_f32<D, false>(dp, t.v, mine, t.dout);
#pragma unroll
        for (int m = 0; m < S::m; m++)
            weigh<D>(j, b, {i0, head, mine + 16 * m}, t, score[m], dp[m]);
        product_after_f32<false, f32_stride<D>()>(dv, dp, t.dout + column);
        product_after_f32<false, f32_stride<D>()>(dk, score, t.q + column);
        added_settle(last);
        __syncthreads();
        added_tell(last);
        if (step + 1 < steps)
            load_queries<D>(j, b, step + 1, t);
        last = add_dq<D>(j, b, i0, head, t);
    }
    added_settle(last);
    __syncthreads();
    added_tell(last);
#pragma unroll
    for (int m = 0; m < S::m; m++) {
        write_keys(j, b, j.dk, dk[m], mine + 16 * m, column, j.scale);
        write_keys(j, b, j.dv, dv[m], mine + 16 * m, column, 1);
    }
}

template <int D> static void launch_tf32_bwd(dev *d, const f32_job &j)
{
    typedef backward_shape<D> S;
    const unsigned blocks = f32_tiles(j.keys, j.sequences, S::bn) * (unsigned)j.groups;
    cudaFuncSetAttribute(tf32_backward<D>, cudaFuncAttributeMaxDynamicSharedMemorySize, S::bytes);
    tf32_backward<D><<<blocks, S::threads, S::bytes, compute_stream(d)>>>(j);
}

void flash_tf32_bwd(dev *d, const f32_job &j)
{
    by_width(j.dim, [&](auto w) { launch_tf32_bwd<decltype(w)::value>(d, j); });
}

int flash_tf32_bwd_bytes(int dim)
{
    int bytes = 0;
    by_width(dim, [&](auto w) { bytes = backward_shape<decltype(w)::value>::bytes; });
    return bytes;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "train/ops/cuda/flash_f32_tile.cuh"

/*
 * Backward in fp32. A block has 64 keys of a key head and goes through the queries of its heads, bm
 * at a time: dk and dv stay in registers, dq is added to in turn (flash_f32.h).
 */

enum { BN = 64 };

/* WIDE: heads of 128 where a block can have the shared memory that 64 queries at a time need. */
template <int D, bool WIDE> struct backward_shape {
    static constexpr int d = D;
    /* warps along rows and columns of every product */
    static constexpr int warp_rows = D == 256 || (D == 128 && !WIDE) ? 2 : 4;
    static constexpr int warp_columns = D == 256 ? 4 : D > 96 ? 2 : 1;
    static constexpr int bm = D <= 64 || WIDE ? 64 : 32;
    static constexpr int blocks = D > 128 || WIDE ? 1 : 2; /* of a multiprocessor */
    static constexpr int tr = LANE_ROWS * warp_rows, tc = LANE_COLUMNS * warp_columns;
    static constexpr int threads = 32 * warp_rows * warp_columns;
    static constexpr int bytes =
        (2 * (BN + bm) * f32_stride<D>() + 2 * bm * f32_stride<BN>() + 2 * bm) * (int)sizeof(float);
};

/* A thread's row and column in the products of a block. */
template <class S> static __device__ int thread_row()
{
    return (int)threadIdx.x / 32 % S::warp_rows * LANE_ROWS + lane_row();
}

template <class S> static __device__ int thread_column()
{
    return (int)threadIdx.x / 32 / S::warp_rows * LANE_COLUMNS + lane_column();
}

/* Where the tiles of a block are. */
template <class S> struct backward_tiles {
    float *k, *v, *q, *dout, *weight, *ds, *lse, *delta;
    __device__ backward_tiles(float *p)
    {
        const int bm = S::bm;
        k = p;
        v = k + BN * f32_stride<S::d>();
        q = v + BN * f32_stride<S::d>();
        dout = q + bm * f32_stride<S::d>();
        weight = dout + bm * f32_stride<S::d>();
        ds = weight + bm * f32_stride<BN>();
        lse = ds + bm * f32_stride<BN>();
        delta = lse + bm;
    }
};

/* Tile number `step` of a block's: heads one after the other, each with all its queries. */
template <int BM>
static __device__ void query_tile(const f32_job &j, const key_block &b, int step, int *ret_head,
                                  int64_t *ret_i0)
{
    *ret_head = b.group * (j.heads / j.groups) + step / b.tiles;
    *ret_i0 = b.from + (int64_t)(step % b.tiles) * BM;
}

template <class S>
static __device__ void load_queries(const f32_job &j, const key_block &b, int step,
                                    const backward_tiles<S> &m)
{
    int head;
    int64_t i0;
    query_tile<S::bm>(j, b, step, &head, &i0);
    const int64_t row = b.s.q_start + i0;
    const int left = (int)(b.s.count - i0 < S::bm ? b.s.count - i0 : S::bm);
    load_rows<S::d, S::bm, S::threads>(m.q, j.q.at(row, head, j.dim), j.q.stride, left, j.dim);
    load_rows<S::d, S::bm, S::threads>(m.dout, j.dout.at(row, head, j.dim), j.dout.stride, left,
                                       j.dim);
    copy_commit();
    for (int i = (int)threadIdx.x; i < S::bm; i += S::threads) {
        m.lse[i] = i < left ? j.lse[head * j.lse_stride + row + i] * log2_of_e : 0;
        m.delta[i] = i < left ? j.delta[head * j.n + row + i] : 0;
    }
}

/* Scores and dp become weights and ds, in the tiles of these. */
template <class S>
static __device__ void weigh(const f32_job &j, const key_block &b, int64_t i0, int head,
                             const backward_tiles<S> &m)
{
    const int rm = S::bm / S::tr, rn = BN / S::tc, row = thread_row<S>(),
              column = thread_column<S>();
    float score[rm][rn] = {{0}}, dp[rm][rn] = {{0}};
    uint64_t kept = 0;
    add_rows_by_rows<S::d, f32_stride<S::d>(), S::tr, S::tc>(score, m.q + row * f32_stride<S::d>(),
                                                             m.k + column * f32_stride<S::d>());
    add_rows_by_rows<S::d, f32_stride<S::d>(), S::tr, S::tc>(dp, m.dout + row * f32_stride<S::d>(),
                                                             m.v + column * f32_stride<S::d>());
    if (j.drop.on)
        kept = kept_weights<rm * rn>(j, b.s, i0 + row, b.k0 + column, head, [](int e) {
            return make_int2(e / rn * S::tr, e % rn * S::tc);
        });
    const sight see = sight_of(b.s, i0, b.k0);
    const bool all = see.all(0, S::bm - 1, 0, BN - 1);
#pragma unroll
    for (int i = 0; i < rm; i++)
#pragma unroll
        for (int k = 0; k < rn; k++) {
            const int y = row + S::tr * i, x = column + S::tc * k;
            float drop = !j.drop.on ? 1 : kept >> (i * rn + k) & 1 ? j.drop.scale : 0;
            weight_slope w = slope_of(j, score[i][k], dp[i][k], m.lse[y], m.delta[y],
                                      all || see.sees(y, x), drop);
            m.weight[y * f32_stride<BN>() + x] = w.weight;
            m.ds[y * f32_stride<BN>() + x] = w.ds;
        }
}

/* Adds this block's share to the queries' dq. */
template <class S>
static __device__ added add_dq(const f32_job &j, const key_block &b, int64_t i0, int head,
                               const backward_tiles<S> &m)
{
    const int rm = S::bm / S::tr, rd = S::d / S::tc, row = thread_row<S>(),
              column = thread_column<S>();
    float dq[rm][rd] = {{0}};
    add_rows_by_columns<BN, f32_stride<BN>(), f32_stride<S::d>(), S::tr, S::tc>(
        dq, m.ds + row * f32_stride<BN>(), m.k + 4 * column);
    const int turn = turn_of<S::bm, BN>(b.s, i0, b.tile);
    if (turn)
        turn_wait(j.turn + head * j.n + b.s.q_start + i0, turn);
#pragma unroll
    for (int i = 0; i < rm; i++) {
        const int64_t at = i0 + row + S::tr * i;
        float *to = j.dq.at(b.s.q_start + at, head, j.dim) + 4 * column;
#pragma unroll
        for (int d = 0; d < rd; d += 4)
            if (at < b.s.count && 4 * column + d * S::tc < j.dim)
                add_to((float4 *)(to + d * S::tc),
                       make_float4(dq[i][d] * j.scale, dq[i][d + 1] * j.scale,
                                   dq[i][d + 2] * j.scale, dq[i][d + 3] * j.scale),
                       turn == 0);
    }
    return {j.turn + head * j.n + b.s.q_start + i0, turn};
}

/* Rows of dk or dv, times `factor`. */
template <class S, int RM, int RD>
static __device__ void write_keys(const f32_job &j, const key_block &b,
                                  const rows_of_heads<float> &to, const float (&x)[RM][RD],
                                  float factor)
{
    const int column = 4 * thread_column<S>();
#pragma unroll
    for (int i = 0; i < RM; i++) {
        const int row = 4 * (thread_row<S>() + i / 4 * S::tr) + i % 4;
        float *p = to.at(b.row0 + row, b.group, j.dim) + column;
#pragma unroll
        for (int d = 0; d < RD; d += 4)
            if (row < b.rows && column + d * S::tc < j.dim)
                *(float4 *)(p + d * S::tc) =
                    make_float4(x[i][d] * factor, x[i][d + 1] * factor, x[i][d + 2] * factor,
                                x[i][d + 3] * factor);
    }
}

template <class S>
static __global__ void __launch_bounds__(S::threads, S::blocks) f32_backward(const f32_job j)
{
    extern __shared__ __align__(16) float numbers[];
    const backward_tiles<S> m(numbers);
    key_block b;
    if (!next_block<S::bm, BN>(j, &b))
        return;
    load_rows<S::d, BN, S::threads>(m.k, j.k.at(b.row0, b.group, j.dim), j.k.stride, b.rows, j.dim);
    load_rows<S::d, BN, S::threads>(m.v, j.v.at(b.row0, b.group, j.dim), j.v.stride, b.rows, j.dim);
    float dk[BN / S::tr][S::d / S::tc] = {{0}}, dv[BN / S::tr][S::d / S::tc] = {{0}};
    const int steps = b.tiles * (j.heads / j.groups);
    const int row = 4 * thread_row<S>(), column = 4 * thread_column<S>();
    added last = {NULL, 0};
    if (steps)
        load_queries<S>(j, b, 0, m);
    for (int step = 0; step < steps; step++) {
        int head;
        int64_t i0;
        query_tile<S::bm>(j, b, step, &head, &i0);
        copy_wait<0>();
        __syncthreads();
        weigh<S>(j, b, i0, head, m);
        added_settle(last);
        __syncthreads();
        added_tell(last);
        add_columns_by_columns<S::bm, f32_stride<BN>(), f32_stride<S::d>(), S::tr, S::tc>(
            dv, m.weight + row, m.dout + column);
        add_columns_by_columns<S::bm, f32_stride<BN>(), f32_stride<S::d>(), S::tr, S::tc>(
            dk, m.ds + row, m.q + column);
        __syncthreads();
        if (step + 1 < steps)
            load_queries<S>(j, b, step + 1, m);
        last = add_dq<S>(j, b, i0, head, m);
    }
    added_settle(last);
    __syncthreads();
    added_tell(last);
    write_keys<S>(j, b, j.dk, dk, j.scale);
    write_keys<S>(j, b, j.dv, dv, 1);
}

/* ---- delta and entries
 * ---------------------------------------------------------------------------- */

enum { DELTA_THREADS = 256 };

/* LANES neighbouring threads have a query and head. */
template <int LANES>
static __global__ void __launch_bounds__(DELTA_THREADS) f32_delta(const flash_job<float> j)
{
    const int lane = (int)threadIdx.x % LANES;
    int64_t i = (int64_t)blockIdx.x * (DELTA_THREADS / LANES) + threadIdx.x / LANES;
    int64_t row = i / j.heads;
    int head = (int)(i % j.heads);
    float sum = 0;
    for (int d = 4 * lane; d < j.dim && row < j.n; d += 4 * LANES) {
        float4 x = *(const float4 *)(j.dout.at(row, head, j.dim) + d);
        float4 y = *(const float4 *)(j.o.at(row, head, j.dim) + d);
        sum += x.x * y.x + x.y * y.y + x.z * y.z + x.w * y.w;
    }
    for (int k = LANES / 2; k; k /= 2)
        sum += __shfl_xor_sync(~0u, sum, k);
    if (lane == 0 && row < j.n)
        j.delta[head * j.n + row] = sum;
}

template <int LANES> static void delta(dev *d, const f32_job &j)
{
    f32_delta<LANES><<<(unsigned)ceil_div(j.n * j.heads, DELTA_THREADS / LANES), DELTA_THREADS, 0,
                       compute_stream(d)>>>(j);
}

template <class S> static void launch_f32_bwd(dev *d, const f32_job &j)
{
    const unsigned blocks = f32_tiles(j.keys, j.sequences, BN) * (unsigned)j.groups;
    cudaFuncSetAttribute(f32_backward<S>, cudaFuncAttributeMaxDynamicSharedMemorySize, S::bytes);
    f32_backward<S><<<blocks, S::threads, S::bytes, compute_stream(d)>>>(j);
}

static void launch_f32_bwd_by_width(dev *d, const f32_job &j)
{
    typedef backward_shape<128, true> wide;
    if (j.dim > 96 && j.dim <= 128 && wide::bytes <= flash_f32_most_bytes(&d->desc))
        launch_f32_bwd<wide>(d, j);
    else
        by_width(j.dim,
                 [&](auto w) { launch_f32_bwd<backward_shape<decltype(w)::value, false>>(d, j); });
}

int flash_f32_bwd_bytes(int dim)
{
    int bytes = 0;
    by_width(dim, [&](auto w) { bytes = backward_shape<decltype(w)::value, false>::bytes; });
    return bytes;
}

/* delta, counters of turns, the ticket */
extern "C" size_t flash_f32_bwd_scratch(const attention_bwd_args *b)
{
    return (size_t)(b->fwd.q.size[0] * b->fwd.q.size[1]) * (sizeof(float) + sizeof(int)) +
           sizeof(int);
}

extern "C" void flash_f32_attention_bwd(dev *d, const attention_bwd_args *b,
                                        enum f32_products products, void *scratch)
{
    f32_job j = {flash_job_of<float>(&b->fwd), NULL, NULL};
    const size_t numbers = (size_t)(j.n * j.heads);
    BUG_ON(!flash_f32_takes_bwd(&d->desc, b, products), "attention of a form that is not taken");
    j.dout = heads_of<float>(b->dout);
    j.dq = heads_of<float>(b->dq);
    j.dk = heads_of<float>(b->dk);
    j.dv = heads_of<float>(b->dv);
    j.delta = (float *)scratch;
    j.turn = (int *)(j.delta + numbers);
    j.ticket = j.turn + numbers;
    if (j.keys)
        flash_zero<float>
            <<<(unsigned)ceil_div(j.keys, ZERO_ROWS), TILE_THREADS, 0, compute_stream(d)>>>(j);
    if (j.n) {
        cudaMemsetAsync(j.turn, 0, (numbers + 1) * sizeof(int), compute_stream(d));
        if (j.dim <= 64)
            delta<16>(d, j);
        else
            delta<32>(d, j);
        if (products == F32_TF32)
            flash_tf32_bwd(d, j);
        else
            launch_f32_bwd_by_width(d, j);
    }
    dev_cuda_check(d, "launch");
}

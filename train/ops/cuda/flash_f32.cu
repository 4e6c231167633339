/* SPDX-License-Identifier: Apache-2.0 */
#include "train/ops/cuda/flash_f32_tile.cuh"

/*
 * Forward in fp32. A warp has 4 * rm queries of a head, its block goes through the keys that any of
 * them sees, bn at a time. Keys are copied while weights are multiplied by values, values while
 * queries are multiplied by keys. A warp's weights pass through shared memory of its own, PC
 * columns at a time, to be where the next product wants them.
 */

enum { PC = 16 };

template <int D> struct forward_shape {
    static constexpr int warps = D > 128 ? 8 : 4;
    static constexpr int rm = D > 96 ? 4 : 8;
    static constexpr int bn = D == 96 || D > 128 ? 32 : 64;
    static constexpr int blocks = D > 128 ? 1 : 2; /* of a multiprocessor */
    static constexpr int threads = 32 * warps, bm = 4 * rm * warps;
    static constexpr int rn = bn / LANE_COLUMNS, rd = D / LANE_COLUMNS;
    static constexpr int bytes =
        ((bm + 2 * bn) * f32_stride<D>() + bm * f32_stride<PC>()) * (int)sizeof(float);
};

/* Capped, and -INFINITY where a query, from number `row` of its tile on, does not see a key. */
template <int RM, int RN>
static __device__ void shape_scores(const flash_job<float> &j, sight see, int row, int column,
                                    bool all, float (&score)[RM][RN])
{
    if (j.cap > 0)
#pragma unroll
        for (int i = 0; i < RM; i++)
#pragma unroll
            for (int k = 0; k < RN; k++)
                score[i][k] = j.cap * tanhf(score[i][k] * (j.scale / j.cap));
    if (!all)
#pragma unroll
        for (int i = 0; i < RM; i++)
#pragma unroll
            for (int k = 0; k < RN; k++)
                if (!see.sees(row + LANE_ROWS * i, column + LANE_COLUMNS * k))
                    score[i][k] = -INFINITY;
}

/* Scores become weights against the rows' maxima so far; sum, this thread's part of the rows' sums,
 * and o are rescaled. */
template <int RM, int RN, int RD>
static __device__ void soften_rows(float (&score)[RM][RN], float (&max)[RM], float (&sum)[RM],
                                   float (&o)[RM][RD], float scale)
{
#pragma unroll
    for (int i = 0; i < RM; i++) {
        float top = score[i][0];
#pragma unroll
        for (int k = 1; k < RN; k++)
            top = fmaxf(top, score[i][k]);
        top = fmaxf(max[i], columns_max(top));
        float base = top == -INFINITY ? 0 : top * scale, total = 0;
        float old = exp2_of(max[i] * scale - base);
#pragma unroll
        for (int k = 0; k < RN; k++) {
            score[i][k] = exp2_of(fmaf(score[i][k], scale, -base));
            total += score[i][k];
        }
        sum[i] = sum[i] * old + total;
        max[i] = top;
#pragma unroll
        for (int d = 0; d < RD; d++)
            o[i][d] *= old;
    }
}

template <int RM, int RN>
static __device__ void drop_exact_weights(const flash_job<float> &j, const span &s,
                                          float (&p)[RM][RN], int64_t query, int64_t key, int head)
{
    const uint64_t kept = kept_weights<RM * RN>(j, s, query, key, head, [](int e) {
        return make_int2(e / RN * LANE_ROWS, e % RN * LANE_COLUMNS);
    });
#pragma unroll
    for (int e = 0; e < RM * RN; e++)
        p[e / RN][e % RN] *= kept >> e & 1 ? j.drop.scale : 0;
}

/* o += weights by values; `mine` is where this thread's first weight goes. */
template <class S, int D, int RM, int RN, int RD>
static __device__ void add_values(float (&o)[RM][RD], const float (&p)[RM][RN], float *mine,
                                  const float *rows, const float *v)
{
    const int each = PC / LANE_COLUMNS;
#pragma unroll
    for (int part = 0; part < S::bn / PC; part++) {
        __syncwarp();
#pragma unroll
        for (int i = 0; i < RM; i++)
#pragma unroll
            for (int k = 0; k < each; k++)
                mine[i * LANE_ROWS * f32_stride<PC>() + k * LANE_COLUMNS] = p[i][part * each + k];
        __syncwarp();
        add_rows_by_columns<PC, f32_stride<PC>(), f32_stride<D>(), LANE_ROWS, LANE_COLUMNS>(
            o, rows, v + part * PC * f32_stride<D>());
    }
}

template <int D>
static __global__ void __launch_bounds__(forward_shape<D>::threads, forward_shape<D>::blocks)
    f32_forward(const flash_job<float> j)
{
    typedef forward_shape<D> S;
    extern __shared__ __align__(16) float numbers[];
    float *q = numbers, *k = q + S::bm * f32_stride<D>(), *v = k + S::bn * f32_stride<D>(),
          *weights = v + S::bn * f32_stride<D>();
    const int head = (int)blockIdx.y, group = head / (j.heads / j.groups);
    const int mine = (int)threadIdx.x / 32 * S::rm * LANE_ROWS; /* this warp's first query */
    const int row = mine + lane_row(), column = lane_column();
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
    const float scale = j.cap > 0 ? 1 : j.scale;
    float o[S::rm][S::rd] = {{0}}, max[S::rm], sum[S::rm];
#pragma unroll
    for (int i = 0; i < S::rm; i++)
        max[i] = -INFINITY, sum[i] = 0;
    for (; t < end; t++) {
        float score[S::rm][S::rn] = {{0}};
        const sight see = sight_of(s, i0, t * S::bn);
        const bool none = see.none(mine, mine + LANE_ROWS * S::rm - 1, 0, S::bn - 1);
        const bool all = see.all(mine, mine + LANE_ROWS * S::rm - 1, 0, S::bn - 1);
        copy_wait<1>(); /* all but the values */
        __syncthreads();
        if (!none)
            add_rows_by_rows<D, f32_stride<D>(), LANE_ROWS, LANE_COLUMNS>(
                score, q + row * f32_stride<D>(), k + column * f32_stride<D>());
        __syncthreads();
        load(k, j.k, t + 1);
        if (!none) {
            shape_scores(j, see, row, column, all, score);
            soften_rows(score, max, sum, o, scale * log2_of_e);
            if (j.drop.on)
                drop_exact_weights(j, s, score, i0 + row, t * S::bn + column, head);
        }
        copy_wait<1>(); /* all but the next keys */
        __syncthreads();
        if (!none)
            add_values<S, D>(o, score, weights + row * f32_stride<PC>() + column,
                             weights + row * f32_stride<PC>(), v + 4 * column);
        __syncthreads();
        load(v, j.v, t + 1);
    }
#pragma unroll
    for (int i = 0; i < S::rm; i++) {
        const int at = row + LANE_ROWS * i;
        const float total = columns_sum(sum[i]), factor = 1 / total;
        if (at >= rows)
            continue;
        float *to = j.o.at(s.q_start + i0 + at, head, j.dim) + 4 * column;
#pragma unroll
        for (int d = 0; d < S::rd; d += 4)
            if (4 * column + d * LANE_COLUMNS < j.dim)
                *(float4 *)(to + d * LANE_COLUMNS) =
                    make_float4(o[i][d] * factor, o[i][d + 1] * factor, o[i][d + 2] * factor,
                                o[i][d + 3] * factor);
        if (j.lse && column == 0)
            j.lse[head * j.lse_stride + s.q_start + i0 + at] = max[i] * scale + logf(total);
    }
}

template <int D> static void launch_f32(dev *d, const flash_job<float> &j)
{
    typedef forward_shape<D> S;
    cudaFuncSetAttribute(f32_forward<D>, cudaFuncAttributeMaxDynamicSharedMemorySize, S::bytes);
    f32_forward<D><<<dim3(f32_tiles(j.n, j.sequences, S::bm), (unsigned)j.heads), S::threads,
                     S::bytes, compute_stream(d)>>>(j);
}

extern "C" void flash_f32_attention(dev *d, const attention_args *a, enum f32_products products)
{
    const flash_job<float> j = flash_job_of<float>(a);
    BUG_ON(!flash_f32_takes(&d->desc, a, products), "attention of a form that is not taken");
    if (j.n && products == F32_TF32)
        flash_tf32(d, j);
    else if (j.n)
        by_width(j.dim, [&](auto w) { launch_f32<decltype(w)::value>(d, j); });
    dev_cuda_check(d, "launch");
}

/* ---- what the kernels take
 * ----------------------------------------------------------------------- */

static bool takes(tensor t)
{
    return t.dtype == DTYPE_F32 && (uintptr_t)t.data % 16 == 0 && t.stride % 4 == 0;
}

int flash_f32_most_bytes(const dev_desc *d)
{
    const int kib = d->capability >= 120                         ? 99
                    : d->capability >= 90                        ? 227
                    : d->capability == 80 || d->capability == 87 ? 163
                                                                 : 99;
    return kib << 10;
}

/* What a block of the forward or the backward takes, whichever is more. */
static int shared_for(int dim, enum f32_products products)
{
    int forward = 0, backward = flash_f32_bwd_bytes(dim);
    by_width(dim, [&](auto w) { forward = forward_shape<decltype(w)::value>::bytes; });
    if (products == F32_TF32) {
        forward = flash_tf32_bytes(dim);
        backward = flash_tf32_bwd_bytes(dim);
    }
    return forward > backward ? forward : backward;
}

extern "C" bool flash_f32_takes(const dev_desc *d, const attention_args *a,
                                enum f32_products products)
{
    const int64_t dim = a->q.size[2];
    return dim <= 256 && dim % 4 == 0 && takes(a->q) && takes(a->k) && takes(a->v) && takes(a->o) &&
           a->q.size[1] <= 65535 && shared_for((int)dim, products) <= flash_f32_most_bytes(d);
}

extern "C" bool flash_f32_takes_bwd(const dev_desc *d, const attention_bwd_args *b,
                                    enum f32_products products)
{
    return flash_f32_takes(d, &b->fwd, products) && takes(b->dout) && takes(b->dq) &&
           takes(b->dk) && takes(b->dv);
}

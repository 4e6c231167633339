/* SPDX-License-Identifier: Apache-2.0 */
#include "train/ops/cuda/device.cuh"

/*
 * With g = dy * w and xhat = (r - mean) * rstd:
 *     dr += rstd * (g - mean(g) - xhat * mean(g * xhat)), mean(g) for a LayerNorm only.
 * Rows are cut into at most most_ranges ranges. Each gives its sums of columns, which a second
 * kernel adds up in the order of the ranges.
 */

enum { SUMS = 3 };
static const int64_t most_ranges = 1024, fewest_rows = 8, processors = 132;

template <class T> struct norm_bwd_job {
    mat_in<T> dr, dy, r, da;
    const T *w;
    const float *mean, *rstd; /* mean: or NULL */
    void *sum[SUMS];          /* dw, db, dbias, of one type; or NULL */
    float *part;              /* [ranges][SUMS][width] */
    int64_t n, width, range;
    float one; /* 1 where weights are stored less one */
    drop_mask drop;
    bool apart; /* da is not dr */
};

/*
 * Rows of a range. As many ranges as run at once, or a multiple of that, on an H100 or H200 (sizes
 * alone decide, whatever the device): a multiprocessor has registers for 1024 threads of
 * norm_bwd_held in fp32, for 512 in 16 bits, where a thread has twice as many numbers.
 */
static int64_t range_of(int64_t n, int64_t width, enum dtype type)
{
    bool narrow = dtype_size(type) == 2;
    int64_t vectors = narrow ? width / 8 : width / 4;
    int64_t threads = threads_for(vectors, 1024), most = narrow ? 512 : 1024;
    int64_t at_once = processors * (threads < most ? most / threads : 1);
    int64_t ranges = at_once < most_ranges ? most_ranges / at_once * at_once : most_ranges;
    int64_t rows = ceil_div(n, ranges);
    return rows < fewest_rows ? fewest_rows : rows;
}

/* Two sums over a block at once; `turn` alternates between the two halves of `part`. */
static __device__ float2 block_sum2(float2 v, float2 (*part)[32], int turn)
{
    v.x = warp_sum(v.x);
    v.y = warp_sum(v.y);
    if (threadIdx.x % 32 == 0)
        part[turn][threadIdx.x / 32] = v;
    __syncthreads();
    v = make_float2(0, 0);
    for (unsigned i = 0; i < blockDim.x / 32; i++) {
        v.x += part[turn][i].x;
        v.y += part[turn][i].y;
    }
    return v;
}

/* Gradient of one vector, from the row's means; added to dr, passed on to da. */
template <int VEC, class T>
static __device__ void pass_on(const norm_bwd_job<T> &j, int64_t i, int64_t c,
                               const float (&g)[VEC], const float (&xhat)[VEC], float rstd,
                               float2 means, float (&dr)[VEC])
{
    for (int k = 0; k < VEC; k++)
        dr[k] += rstd * (g[k] - means.x - xhat[k] * means.y);
    store(j.dr.row(i) + c, dr);
    if (j.apart) {
        drop_apply(dr, j.drop, i, c, j.width);
        store(j.da.row(i) + c, dr);
    }
}

/* What is read of a row: the thread's vectors of it, as they are in memory. */
template <int NV> struct row_part {
    uint4 dy[NV], r[NV], dr[NV];
    float mean, rstd;
};

/* The first column of the thread's vector s. */
template <class T> static __device__ int64_t column_of(int s)
{
    return (int64_t)(s * blockDim.x + threadIdx.x) * wide_of<T>();
}

template <class T, int NV>
static __device__ void read_row(const norm_bwd_job<T> &j, int64_t i, row_part<NV> &p)
{
    p.mean = j.mean ? j.mean[i] : 0;
    p.rstd = j.rstd[i];
#pragma unroll
    for (int s = 0; s < NV; s++) {
        int64_t c = column_of<T>(s);
        if (c >= j.width)
            continue;
        p.dy[s] = load_raw(j.dy.row(i) + c);
        p.r[s] = load_raw(j.r.row(i) + c);
        p.dr[s] = load_raw(j.dr.row(i) + c);
    }
}

template <class T>
static __device__ void read_weights(const norm_bwd_job<T> &j, int s, float (&w)[wide_of<T>()])
{
    load(w, j.w + column_of<T>(s));
    for (int k = 0; k < wide_of<T>(); k++)
        w[k] += j.one;
}

/* g and xhat of the thread's vectors. */
template <class T, int NV> struct row_values {
    float g[NV][wide_of<T>()], xhat[NV][wide_of<T>()];
};

/* The sums of columns, and the row's two means. HELD: the weights are, else they are read. */
template <bool HELD, class T, int NV>
static __device__ float2 sum_row(const norm_bwd_job<T> &j, const row_part<NV> &p,
                                 const float (&held)[NV][wide_of<T>()],
                                 float (&sum)[SUMS][NV][wide_of<T>()], row_values<T, NV> &to)
{
    float2 means = make_float2(0, 0);
#pragma unroll
    for (int s = 0; s < NV; s++) {
        float w[wide_of<T>()];
        if (column_of<T>(s) >= j.width)
            continue;
        if (!HELD)
            read_weights(j, s, w);
        widen<T>(to.g[s], p.dy[s]);
        widen<T>(to.xhat[s], p.r[s]);
        for (int k = 0; k < wide_of<T>(); k++) {
            to.xhat[s][k] = (to.xhat[s][k] - p.mean) * p.rstd;
            sum[0][s][k] += to.g[s][k] * to.xhat[s][k];
            sum[1][s][k] += to.g[s][k];
            to.g[s][k] *= HELD ? held[s][k] : w[k];
            means.x += to.g[s][k];
            means.y += to.g[s][k] * to.xhat[s][k];
        }
    }
    return means;
}

/*
 * Threads hold NV vectors of each row; a row has at most NV * blockDim.x vectors. AHEAD: so many
 * rows are read before they are computed, which takes registers: two of 16 bits keep as many bytes
 * under way as the memory needs, where one did not.
 */
template <int NV, int AHEAD, int MOST, class T>
static __global__ void __launch_bounds__(MOST) norm_bwd_held(const norm_bwd_job<T> j)
{
    constexpr int VEC = wide_of<T>(), RING = AHEAD ? AHEAD : 1;
    __shared__ float2 part[2][32];
    int64_t begin = blockIdx.x * j.range, end = begin + j.range < j.n ? begin + j.range : j.n;
    float sum[SUMS][NV][VEC] = {{{0}}}, w[NV][VEC];
    row_part<NV> now, next[RING];
    row_values<T, NV> values;
#pragma unroll
    for (int s = 0; s < NV; s++)
        if (AHEAD && column_of<T>(s) < j.width)
            read_weights(j, s, w[s]);
#pragma unroll
    for (int k = 0; k < AHEAD; k++)
        if (begin + k < end)
            read_row(j, begin + k, next[k]);
    for (int64_t i = begin; i < end; i++) {
        now = next[0];
#pragma unroll
        for (int k = 0; k + 1 < AHEAD; k++)
            next[k] = next[k + 1];
        if (i + AHEAD < end)
            read_row(j, i + AHEAD, AHEAD ? next[RING - 1] : now);
        float2 means = block_sum2(sum_row<(AHEAD > 0)>(j, now, w, sum, values), part, (int)(i & 1));
        means.x = j.mean ? means.x / (float)j.width : 0;
        means.y /= (float)j.width;
#pragma unroll
        for (int s = 0; s < NV; s++) {
            float dr[VEC];
            if (column_of<T>(s) >= j.width)
                continue;
            widen<T>(dr, now.dr[s]);
            pass_on<VEC>(j, i, column_of<T>(s), values.g[s], values.xhat[s], now.rstd, means, dr);
            for (int k = 0; k < VEC; k++)
                sum[2][s][k] += dr[k];
        }
    }
#pragma unroll
    for (int s = 0; s < NV; s++) {
        int64_t c = (int64_t)(s * blockDim.x + threadIdx.x) * wide_of<T>();
        for (int k = 0; k < SUMS; k++)
            if (c < j.width && j.sum[k])
                store(j.part + (blockIdx.x * (int64_t)SUMS + k) * j.width + c, sum[k][s]);
    }
}

enum { READ_THREADS = 256 };

/* Any width: a block for each row, read twice. */
template <class T>
static __global__ void __launch_bounds__(READ_THREADS) norm_bwd_rows(const norm_bwd_job<T> j)
{
    __shared__ float2 part[2][32];
    int64_t i = blockIdx.x;
    float mean = j.mean ? j.mean[i] : 0, rstd = j.rstd[i];
    const T *dy = j.dy.row(i), *r = j.r.row(i);
    float2 means = make_float2(0, 0);
    for (int64_t c = threadIdx.x; c < j.width; c += READ_THREADS) {
        float g = (float)dy[c] * ((float)j.w[c] + j.one);
        means.x += g;
        means.y += g * (((float)r[c] - mean) * rstd);
    }
    means = block_sum2(means, part, 0);
    means.x = j.mean ? means.x / (float)j.width : 0;
    means.y /= (float)j.width;
    for (int64_t c = threadIdx.x; c < j.width; c += READ_THREADS) {
        float g[1] = {(float)dy[c] * ((float)j.w[c] + j.one)},
              xhat[1] = {((float)r[c] - mean) * rstd};
        float dr[1] = {(float)j.dr.row(i)[c]};
        pass_on<1>(j, i, c, g, xhat, rstd, means, dr);
    }
}

/* And its sums of columns: a thread for each column of a range of rows. */
template <class T>
static __global__ void __launch_bounds__(READ_THREADS) norm_bwd_columns(const norm_bwd_job<T> j)
{
    int64_t c = (int64_t)blockIdx.y * READ_THREADS + threadIdx.x;
    int64_t begin = blockIdx.x * j.range, end = begin + j.range < j.n ? begin + j.range : j.n;
    float sum[SUMS] = {0};
    if (c >= j.width)
        return;
    for (int64_t i = begin; i < end; i++) {
        float dy = (float)j.dy.row(i)[c], mean = j.mean ? j.mean[i] : 0;
        sum[0] += dy * (((float)j.r.row(i)[c] - mean) * j.rstd[i]);
        sum[1] += dy;
        sum[2] += j.da.p ? (float)j.da.row(i)[c] : 0;
    }
    for (int k = 0; k < SUMS; k++)
        if (j.sum[k])
            j.part[(blockIdx.x * (int64_t)SUMS + k) * j.width + c] = sum[k];
}

enum { COLUMNS = 32, STRIPES = 16 };

template <class G> struct total_job {
    G *sum[SUMS];
    const float *part;
    int64_t width, ranges;
};

/* The ranges' sums of one column: in STRIPES of them side by side, then those. */
template <class G>
static __global__ void __launch_bounds__(COLUMNS *STRIPES) norm_bwd_total(const total_job<G> j)
{
    __shared__ float stripe[STRIPES][COLUMNS];
    int64_t c = (int64_t)blockIdx.x * COLUMNS + threadIdx.x;
    int which = (int)blockIdx.y;
    float sum = 0;
    if (!j.sum[which])
        return;
    if (c < j.width)
#pragma unroll 8
        for (int64_t i = threadIdx.y; i < j.ranges; i += STRIPES)
            sum += j.part[(i * SUMS + which) * j.width + c];
    stripe[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.y || c >= j.width)
        return;
    sum = 0;
    for (int s = 0; s < STRIPES; s++)
        sum += stripe[s][threadIdx.x];
    G *to = j.sum[which] + c;
    *to = (G)((float)*to + sum);
}

extern "C" size_t cuda_norm_bwd_scratch(const dev_desc *, const void *args)
{
    const norm_bwd_args *a = (const norm_bwd_args *)args;
    int64_t n = a->dy.size[0];
    int64_t range = range_of(n, a->dy.size[1], a->dy.dtype);
    return (size_t)(ceil_div(n, range) * SUMS * a->dy.size[1]) * sizeof(float);
}

template <class T>
static void launch(const norm_bwd_job<T> &j, dtype grad, bool wide, cudaStream_t stream)
{
    unsigned ranges = (unsigned)ceil_div(j.n, j.range);
    int64_t vectors = j.width / wide_of<T>();
    const bool four_bytes = sizeof(T) == 4; /* else a vector of 8 takes more registers */
    if (wide && vectors <= 256)
        norm_bwd_held<1, four_bytes ? 1 : 2, 256>
            <<<ranges, threads_for(vectors, 256), 0, stream>>>(j);
    else if (wide && vectors <= (four_bytes ? 1024 : 512))
        norm_bwd_held<1, four_bytes ? 1 : 2, four_bytes ? 1024 : 512>
            <<<ranges, threads_for(vectors, 1024), 0, stream>>>(j);
    else if (wide && vectors <= (four_bytes ? 2048 : 1024))
        norm_bwd_held<four_bytes ? 4 : 2, 0, 512><<<ranges, 512, 0, stream>>>(j);
    else {
        dim3 columns(ranges, (unsigned)ceil_div(j.width, READ_THREADS));
        norm_bwd_rows<<<(unsigned)j.n, READ_THREADS, 0, stream>>>(j);
        norm_bwd_columns<<<columns, READ_THREADS, 0, stream>>>(j);
    }
    dim3 totals((unsigned)ceil_div(j.width, COLUMNS), SUMS);
    by_grad_type(grad, [&](auto t) {
        typedef decltype(t) G;
        total_job<G> total = {
            {(G *)j.sum[0], (G *)j.sum[1], (G *)j.sum[2]}, j.part, j.width, ranges};
        norm_bwd_total<<<totals, dim3(COLUMNS, STRIPES), 0, stream>>>(total);
    });
}

template <class T> static void issue(ops *o, const norm_bwd_args *a, void *scratch)
{
    norm_bwd_job<T> j = {.dr = mat_in_of<T>(a->dr),
                         .dy = mat_in_of<T>(a->dy),
                         .r = mat_in_of<T>(a->r),
                         .da = mat_in_of<T>(a->da),
                         .w = (const T *)a->w.data,
                         .mean = (const float *)a->mean.data,
                         .rstd = (const float *)a->rstd.data,
                         .sum = {a->dw.data, a->db.data, a->dbias.data},
                         .part = (float *)scratch,
                         .n = a->dy.size[0],
                         .width = a->dy.size[1],
                         .range = range_of(a->dy.size[0], a->dy.size[1], a->dy.dtype),
                         .one = a->less_one ? 1.0f : 0.0f,
                         .drop = mask_of(a->drop),
                         .apart = a->da.data && a->da.data != a->dr.data};
    bool wide = j.width % wide_of<T>() == 0 && aligned(a->dr) && aligned(a->dy) && aligned(a->r) &&
                aligned(a->da) && aligned(a->w);
    if (j.n && j.width)
        launch(j, a->dw.dtype, wide, stream_of(o));
    dev_cuda_check(o->dev, "launch");
}

extern "C" void cuda_norm_bwd(ops *o, const void *args, void *scratch)
{
    const norm_bwd_args *a = (const norm_bwd_args *)args;
    by_type(a->dy.dtype, [&](auto t) { issue<decltype(t)>(o, a, scratch); });
}

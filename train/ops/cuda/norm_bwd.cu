/* SPDX-License-Identifier: Apache-2.0 */
#include "train/ops/cuda/device.cuh"

/*
 * With g = dy * w and xhat = (r - mean) * rstd:
 *     dr += rstd * (g - mean(g) - xhat * mean(g * xhat)), mean(g) for a LayerNorm only.
 * Rows are cut into at most most_ranges ranges. Each gives its sums of columns, which a second
 * kernel adds up in the order of the ranges.
 */

enum { SUMS = 3 };
static const int64_t most_ranges = 1024, fewest_rows = 8;

struct norm_bwd_job {
    mat dr, dy, r, da;
    const float *mean, *rstd, *w; /* mean: or NULL */
    float *sum[SUMS];             /* dw, db, dbias; or NULL */
    float *part;                  /* [ranges][SUMS][width] */
    int64_t n, width, range;
    drop_mask drop;
};

static int64_t range_of(int64_t n)
{
    int64_t rows = ceil_div(n, most_ranges);
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
template <int VEC>
static __device__ void pass_on(const norm_bwd_job &j, int64_t i, int64_t c, const float (&g)[VEC],
                               const float (&xhat)[VEC], float rstd, float2 means, float (&dr)[VEC])
{
    for (int k = 0; k < VEC; k++)
        dr[k] += rstd * (g[k] - means.x - xhat[k] * means.y);
    store(j.dr.row(i) + c, dr);
    if (j.da.p) {
        drop_apply(dr, j.drop, i, c, j.width);
        store(j.da.row(i) + c, dr);
    }
}

/* What is read of a row: the thread's vectors of it. */
template <int NV> struct row_part {
    float dy[NV][4], r[NV][4], dr[NV][4], mean, rstd;
};

template <int NV> static __device__ void read_row(const norm_bwd_job &j, int64_t i, row_part<NV> &p)
{
    p.mean = j.mean ? j.mean[i] : 0;
    p.rstd = j.rstd[i];
#pragma unroll
    for (int s = 0; s < NV; s++) {
        int64_t c = (int64_t)(s * blockDim.x + threadIdx.x) * 4;
        if (c >= j.width)
            continue;
        load(p.dy[s], j.dy.row(i) + c);
        load(p.r[s], j.r.row(i) + c);
        load(p.dr[s], j.dr.row(i) + c);
    }
}

/* The sums of columns, and the row's two means; r becomes xhat, dy becomes g. */
template <int NV>
static __device__ float2 sum_row(const norm_bwd_job &j, row_part<NV> &p, const float (&w)[NV][4],
                                 float (&sum)[SUMS][NV][4])
{
    float2 means = make_float2(0, 0);
#pragma unroll
    for (int s = 0; s < NV; s++) {
        if ((int64_t)(s * blockDim.x + threadIdx.x) * 4 >= j.width)
            continue;
        for (int k = 0; k < 4; k++) {
            p.r[s][k] = (p.r[s][k] - p.mean) * p.rstd;
            sum[0][s][k] += p.dy[s][k] * p.r[s][k];
            sum[1][s][k] += p.dy[s][k];
            p.dy[s][k] *= w[s][k];
            means.x += p.dy[s][k];
            means.y += p.dy[s][k] * p.r[s][k];
        }
    }
    return means;
}

/*
 * Threads hold NV vectors of each row; a row has at most NV * blockDim.x vectors. AHEAD:
 * the next row is read while one is computed, which takes registers.
 */
template <int NV, bool AHEAD, int MOST>
static __global__ void __launch_bounds__(MOST) norm_bwd_held(const norm_bwd_job j)
{
    __shared__ float2 part[2][32];
    int64_t begin = blockIdx.x * j.range, end = begin + j.range < j.n ? begin + j.range : j.n;
    float sum[SUMS][NV][4] = {{{0}}}, w[NV][4];
    row_part<NV> now, next;
#pragma unroll
    for (int s = 0; s < NV; s++) {
        int64_t c = (int64_t)(s * blockDim.x + threadIdx.x) * 4;
        if (c < j.width)
            load(w[s], j.w + c);
    }
    if (AHEAD)
        read_row(j, begin, next);
    for (int64_t i = begin; i < end; i++) {
        if (!AHEAD)
            read_row(j, i, now);
        else
            now = next;
        if (AHEAD && i + 1 < end)
            read_row(j, i + 1, next);
        float2 means = block_sum2(sum_row(j, now, w, sum), part, (int)(i & 1));
        means.x = j.mean ? means.x / (float)j.width : 0;
        means.y /= (float)j.width;
#pragma unroll
        for (int s = 0; s < NV; s++) {
            int64_t c = (int64_t)(s * blockDim.x + threadIdx.x) * 4;
            if (c >= j.width)
                continue;
            pass_on<4>(j, i, c, now.dy[s], now.r[s], now.rstd, means, now.dr[s]);
            for (int k = 0; k < 4; k++)
                sum[2][s][k] += now.dr[s][k];
        }
    }
#pragma unroll
    for (int s = 0; s < NV; s++) {
        int64_t c = (int64_t)(s * blockDim.x + threadIdx.x) * 4;
        for (int k = 0; k < SUMS; k++)
            if (c < j.width && j.sum[k])
                store(j.part + (blockIdx.x * (int64_t)SUMS + k) * j.width + c, sum[k][s]);
    }
}

enum { READ_THREADS = 256 };

/* Any width: a block for each row, read twice. */
static __global__ void __launch_bounds__(READ_THREADS) norm_bwd_rows(const norm_bwd_job j)
{
    __shared__ float2 part[2][32];
    int64_t i = blockIdx.x;
    float mean = j.mean ? j.mean[i] : 0, rstd = j.rstd[i];
    const float *dy = j.dy.row(i), *r = j.r.row(i);
    float2 means = make_float2(0, 0);
    for (int64_t c = threadIdx.x; c < j.width; c += READ_THREADS) {
        float g = dy[c] * j.w[c];
        means.x += g;
        means.y += g * ((r[c] - mean) * rstd);
    }
    means = block_sum2(means, part, 0);
    means.x = j.mean ? means.x / (float)j.width : 0;
    means.y /= (float)j.width;
    for (int64_t c = threadIdx.x; c < j.width; c += READ_THREADS) {
        float g[1] = {dy[c] * j.w[c]}, xhat[1] = {(r[c] - mean) * rstd};
        float dr[1] = {j.dr.row(i)[c]};
        pass_on<1>(j, i, c, g, xhat, rstd, means, dr);
    }
}

/* And its sums of columns: a thread for each column of a range of rows. */
static __global__ void __launch_bounds__(READ_THREADS) norm_bwd_columns(const norm_bwd_job j)
{
    int64_t c = (int64_t)blockIdx.y * READ_THREADS + threadIdx.x;
    int64_t begin = blockIdx.x * j.range, end = begin + j.range < j.n ? begin + j.range : j.n;
    float sum[SUMS] = {0};
    if (c >= j.width)
        return;
    for (int64_t i = begin; i < end; i++) {
        float dy = j.dy.row(i)[c], mean = j.mean ? j.mean[i] : 0;
        sum[0] += dy * ((j.r.row(i)[c] - mean) * j.rstd[i]);
        sum[1] += dy;
        sum[2] += j.da.p ? j.da.row(i)[c] : 0;
    }
    for (int k = 0; k < SUMS; k++)
        if (j.sum[k])
            j.part[(blockIdx.x * (int64_t)SUMS + k) * j.width + c] = sum[k];
}

enum { COLUMNS = 32, STRIPES = 16 };

/* The ranges' sums of one column: in STRIPES of them side by side, then those. */
static __global__ void __launch_bounds__(COLUMNS *STRIPES)
    norm_bwd_total(const norm_bwd_job j, int64_t ranges)
{
    __shared__ float stripe[STRIPES][COLUMNS];
    int64_t c = (int64_t)blockIdx.x * COLUMNS + threadIdx.x;
    int which = (int)blockIdx.y;
    float sum = 0;
    if (!j.sum[which])
        return;
    if (c < j.width)
#pragma unroll 8
        for (int64_t i = threadIdx.y; i < ranges; i += STRIPES)
            sum += j.part[(i * SUMS + which) * j.width + c];
    stripe[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.y || c >= j.width)
        return;
    sum = 0;
    for (int s = 0; s < STRIPES; s++)
        sum += stripe[s][threadIdx.x];
    j.sum[which][c] += sum;
}

extern "C" size_t cuda_norm_bwd_scratch(const dev_desc *, const void *args)
{
    const norm_bwd_args *a = (const norm_bwd_args *)args;
    int64_t n = a->dy.size[0];
    return (size_t)(ceil_div(n, range_of(n)) * SUMS * a->dy.size[1]) * sizeof(float);
}

static void launch(const norm_bwd_job &j, bool wide, cudaStream_t stream)
{
    unsigned ranges = (unsigned)ceil_div(j.n, j.range);
    int64_t vectors = j.width / 4;
    if (wide && vectors <= 256)
        norm_bwd_held<1, true, 256><<<ranges, threads_for(vectors, 256), 0, stream>>>(j);
    else if (wide && vectors <= 1024)
        norm_bwd_held<1, true, 1024><<<ranges, threads_for(vectors, 1024), 0, stream>>>(j);
    else if (wide && vectors <= 2048)
        norm_bwd_held<4, false, 512><<<ranges, 512, 0, stream>>>(j);
    else {
        dim3 columns(ranges, (unsigned)ceil_div(j.width, READ_THREADS));
        norm_bwd_rows<<<(unsigned)j.n, READ_THREADS, 0, stream>>>(j);
        norm_bwd_columns<<<columns, READ_THREADS, 0, stream>>>(j);
    }
    dim3 totals((unsigned)ceil_div(j.width, COLUMNS), SUMS);
    norm_bwd_total<<<totals, dim3(COLUMNS, STRIPES), 0, stream>>>(j, ranges);
}

extern "C" void cuda_norm_bwd(ops *o, const void *args, void *scratch)
{
    const norm_bwd_args *a = (const norm_bwd_args *)args;
    norm_bwd_job j = {.dr = mat_of(a->dr),
                      .dy = mat_of(a->dy),
                      .r = mat_of(a->r),
                      .da = mat_of(a->da),
                      .mean = (const float *)a->mean.data,
                      .rstd = (const float *)a->rstd.data,
                      .w = (const float *)a->w.data,
                      .sum = {(float *)a->dw.data, (float *)a->db.data, (float *)a->dbias.data},
                      .part = (float *)scratch,
                      .n = a->dy.size[0],
                      .width = a->dy.size[1],
                      .range = range_of(a->dy.size[0]),
                      .drop = mask_of(a->drop)};
    bool wide = j.width % 4 == 0 && aligned(a->dr) && aligned(a->dy) && aligned(a->r) &&
                aligned(a->da) && aligned(a->w);
    if (j.n && j.width)
        launch(j, wide, stream_of(o));
    dev_cuda_check(o->dev, "norm_bwd");
}

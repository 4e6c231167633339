/* SPDX-License-Identifier: Apache-2.0 */
#include "train/ops/cuda/device.cuh"

struct norm_job {
    mat y, r, x, a;
    float *mean, *rstd;
    const float *bias, *w, *b; /* bias and b: or NULL */
    int64_t n, width;
    float eps;
    bool layer;
    drop_mask drop;
};

/* The sum over the WARPS warps that share a row. */
template <int WARPS> static __device__ float row_sum(float v, float *part)
{
    if constexpr (WARPS == 1)
        return warp_sum(v);
    else
        return block_sum(v, part);
}

/* r = x + dropout(a + bias), written; without a, r is x. */
template <int VEC>
static __device__ void residual(const norm_job &j, int64_t i, int64_t c, float (&v)[VEC])
{
    load(v, j.x.row(i) + c);
    if (!j.a.p)
        return;
    float add[VEC];
    load(add, j.a.row(i) + c);
    if (j.bias) {
        float bias[VEC];
        load(bias, j.bias + c);
        for (int k = 0; k < VEC; k++)
            add[k] += bias[k];
    }
    drop_apply(add, j.drop, i, c, j.width);
    for (int k = 0; k < VEC; k++)
        v[k] += add[k];
    store(j.r.row(i) + c, v);
}

template <int VEC>
static __device__ void normed(const norm_job &j, int64_t i, int64_t c, const float (&v)[VEC],
                              float mean, float rstd)
{
    float w[VEC], b[VEC] = {0};
    load(w, j.w + c);
    if (j.b)
        load(b, j.b + c);
    for (int k = 0; k < VEC; k++)
        w[k] = fmaf((v[k] - mean) * rstd, w[k], b[k]);
    store(j.y.row(i) + c, w);
}

static __device__ void save(const norm_job &j, int64_t i, float mean, float rstd)
{
    if (j.layer)
        j.mean[i] = mean;
    j.rstd[i] = rstd;
}

/*
 * A row for each group of WARPS warps, held in registers: NV vectors of 4 for each thread. Blocks
 * have ROWS such groups.
 */
template <int WARPS, int ROWS, int NV>
static __global__ void __launch_bounds__(32 * WARPS * ROWS) norm_held(const norm_job j)
{
    __shared__ float part[32];
    const int lane = (int)threadIdx.x % (32 * WARPS);
    int64_t i = (int64_t)blockIdx.x * ROWS + threadIdx.x / (32 * WARPS);
    if (i >= j.n)
        return;
    float v[NV][4], sum = 0, mean = 0;
#pragma unroll
    for (int s = 0; s < NV; s++) {
        int64_t c = (int64_t)(s * 32 * WARPS + lane) * 4;
        if (c < j.width) {
            residual<4>(j, i, c, v[s]);
            sum += (v[s][0] + v[s][1]) + (v[s][2] + v[s][3]);
        }
    }
    if (j.layer)
        mean = row_sum<WARPS>(sum, part) / (float)j.width;
    sum = 0;
#pragma unroll
    for (int s = 0; s < NV; s++)
        if ((s * 32 * WARPS + lane) * 4 < j.width)
            for (int k = 0; k < 4; k++)
                sum += (v[s][k] - mean) * (v[s][k] - mean);
    float rstd = 1 / sqrtf(row_sum<WARPS>(sum, part) / (float)j.width + j.eps);
    if (lane == 0)
        save(j, i, mean, rstd);
#pragma unroll
    for (int s = 0; s < NV; s++) {
        int64_t c = (int64_t)(s * 32 * WARPS + lane) * 4;
        if (c < j.width)
            normed<4>(j, i, c, v[s], mean, rstd);
    }
}

enum { READ_THREADS = 256 };

/* Any width: a block for each row, which is read again from r (or x) for each sum. */
static __global__ void __launch_bounds__(READ_THREADS) norm_read(const norm_job j)
{
    __shared__ float part[32];
    int64_t i = blockIdx.x;
    const float *r = j.a.p ? j.r.row(i) : j.x.row(i);
    float v[1], sum = 0, mean = 0;
    for (int64_t c = threadIdx.x; c < j.width; c += READ_THREADS) {
        residual<1>(j, i, c, v);
        sum += v[0];
    }
    if (j.layer)
        mean = block_sum(sum, part) / (float)j.width;
    sum = 0;
    for (int64_t c = threadIdx.x; c < j.width; c += READ_THREADS)
        sum += (r[c] - mean) * (r[c] - mean);
    float rstd = 1 / sqrtf(block_sum(sum, part) / (float)j.width + j.eps);
    if (threadIdx.x == 0)
        save(j, i, mean, rstd);
    for (int64_t c = threadIdx.x; c < j.width; c += READ_THREADS) {
        v[0] = r[c];
        normed<1>(j, i, c, v, mean, rstd);
    }
}

static void launch(const norm_job &j, bool wide, cudaStream_t stream)
{
    unsigned n = (unsigned)j.n, fours = (unsigned)((j.n + 3) / 4);
    if (wide && j.width <= 256)
        norm_held<1, 4, 2><<<fours, 128, 0, stream>>>(j);
    else if (wide && j.width <= 512)
        norm_held<1, 4, 4><<<fours, 128, 0, stream>>>(j);
    else if (wide && j.width <= 1024)
        norm_held<1, 4, 8><<<fours, 128, 0, stream>>>(j);
    else if (wide && j.width <= 2048)
        norm_held<4, 1, 4><<<n, 128, 0, stream>>>(j);
    else if (wide && j.width <= 4096)
        norm_held<8, 1, 4><<<n, 256, 0, stream>>>(j);
    else if (wide && j.width <= 8192)
        norm_held<16, 1, 4><<<n, 512, 0, stream>>>(j);
    else
        norm_read<<<n, READ_THREADS, 0, stream>>>(j);
}

extern "C" void cuda_norm(ops *o, const void *args, void *)
{
    const norm_args *a = (const norm_args *)args;
    norm_job j = {.y = mat_of(a->y),
                  .r = mat_of(a->r),
                  .x = mat_of(a->x),
                  .a = mat_of(a->a),
                  .mean = (float *)a->mean.data,
                  .rstd = (float *)a->rstd.data,
                  .bias = (const float *)a->bias.data,
                  .w = (const float *)a->w.data,
                  .b = (const float *)a->b.data,
                  .n = a->y.size[0],
                  .width = a->y.size[1],
                  .eps = a->eps,
                  .layer = a->kind == NORM_LAYER,
                  .drop = mask_of(a->drop)};
    bool wide = j.width % 4 == 0 && aligned(a->y) && aligned(a->r) && aligned(a->x) &&
                aligned(a->a) && aligned(a->bias) && aligned(a->w) && aligned(a->b);
    if (j.n && j.width)
        launch(j, wide, stream_of(o));
    dev_cuda_check(o->dev, "norm");
}

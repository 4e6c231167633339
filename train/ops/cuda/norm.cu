/* SPDX-License-Identifier: Apache-2.0 */
#include "train/ops/cuda/device.cuh"

template <class T> struct norm_job {
    mat_in<T> y, r, x, a;
    float *mean, *rstd;
    const T *bias, *w, *b; /* bias and b: or NULL */
    int64_t n, width;
    float eps, one; /* one: 1 where weights are stored less one */
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

/* r = x + dropout(a + bias), written, and the norm is of what is stored; v is x, add is a. */
template <int VEC, class T>
static __device__ void residual(const norm_job<T> &j, int64_t i, int64_t c, float (&v)[VEC],
                                float (&add)[VEC])
{
    if (j.bias) {
        float bias[VEC];
        load(bias, j.bias + c);
        for (int k = 0; k < VEC; k++)
            add[k] += bias[k];
    }
    drop_apply(add, j.drop, i, c, j.width);
    for (int k = 0; k < VEC; k++)
        v[k] += add[k];
    store_rounding(j.r.row(i) + c, v);
}

template <int VEC, class T>
static __device__ void normed(const norm_job<T> &j, int64_t i, int64_t c, const float (&v)[VEC],
                              float mean, float rstd)
{
    float w[VEC], b[VEC] = {0};
    load(w, j.w + c);
    if (j.b)
        load(b, j.b + c);
    for (int k = 0; k < VEC; k++)
        w[k] = fmaf((v[k] - mean) * rstd, w[k] + j.one, b[k]);
    store(j.y.row(i) + c, w);
}

template <class T>
static __device__ void save(const norm_job<T> &j, int64_t i, float mean, float rstd)
{
    if (j.layer)
        j.mean[i] = mean;
    j.rstd[i] = rstd;
}

/*
 * A row for each group of WARPS warps, held in registers: NV vectors of 4 for each thread. Blocks
 * have ROWS such groups.
 */
template <int WARPS, int ROWS, int NV, class T>
static __global__ void __launch_bounds__(32 * WARPS * ROWS) norm_held(const norm_job<T> j)
{
    constexpr int VEC = wide_of<T>();
    __shared__ float part[32];
    const int lane = (int)threadIdx.x % (32 * WARPS);
    int64_t i = (int64_t)blockIdx.x * ROWS + threadIdx.x / (32 * WARPS);
    if (i >= j.n)
        return;
    float v[NV][VEC], sum = 0, mean = 0;
    uint4 x[NV], a[NV];
#pragma unroll
    for (int s = 0; s < NV; s++) { /* all of it is under way before anything is stored */
        int64_t c = (int64_t)(s * 32 * WARPS + lane) * VEC;
        if (c < j.width) {
            x[s] = load_raw(j.x.row(i) + c);
            if (j.a.p)
                a[s] = load_raw(j.a.row(i) + c);
        }
    }
#pragma unroll
    for (int s = 0; s < NV; s++) {
        int64_t c = (int64_t)(s * 32 * WARPS + lane) * VEC;
        if (c < j.width) {
            widen<T>(v[s], x[s]);
            if (j.a.p) {
                float add[VEC];
                widen<T>(add, a[s]);
                residual<VEC>(j, i, c, v[s], add);
            }
            for (int k = 0; k < VEC; k += 2)
                sum += v[s][k] + v[s][k + 1];
        }
    }
    if (j.layer)
        mean = row_sum<WARPS>(sum, part) / (float)j.width;
    sum = 0;
#pragma unroll
    for (int s = 0; s < NV; s++)
        if ((s * 32 * WARPS + lane) * VEC < j.width)
            for (int k = 0; k < VEC; k++)
                sum += (v[s][k] - mean) * (v[s][k] - mean);
    float rstd = 1 / sqrtf(row_sum<WARPS>(sum, part) / (float)j.width + j.eps);
    if (lane == 0)
        save(j, i, mean, rstd);
#pragma unroll
    for (int s = 0; s < NV; s++) {
        int64_t c = (int64_t)(s * 32 * WARPS + lane) * VEC;
        if (c < j.width)
            normed<VEC>(j, i, c, v[s], mean, rstd);
    }
}

enum { READ_THREADS = 256 };

/* Any width: a block for each row, which is read again from r (or x) for each sum. */
template <class T>
static __global__ void __launch_bounds__(READ_THREADS) norm_read(const norm_job<T> j)
{
    __shared__ float part[32];
    int64_t i = blockIdx.x;
    const T *r = j.a.p ? j.r.row(i) : j.x.row(i);
    float v[1], sum = 0, mean = 0;
    for (int64_t c = threadIdx.x; c < j.width; c += READ_THREADS) {
        load(v, j.x.row(i) + c);
        if (j.a.p) {
            float add[1];
            load(add, j.a.row(i) + c);
            residual<1>(j, i, c, v, add);
        }
        sum += v[0];
    }
    if (j.layer)
        mean = block_sum(sum, part) / (float)j.width;
    sum = 0;
    for (int64_t c = threadIdx.x; c < j.width; c += READ_THREADS)
        sum += ((float)r[c] - mean) * ((float)r[c] - mean);
    float rstd = 1 / sqrtf(block_sum(sum, part) / (float)j.width + j.eps);
    if (threadIdx.x == 0)
        save(j, i, mean, rstd);
    for (int64_t c = threadIdx.x; c < j.width; c += READ_THREADS) {
        v[0] = (float)r[c];
        normed<1>(j, i, c, v, mean, rstd);
    }
}

template <class T> static void launch(const norm_job<T> &j, bool wide, cudaStream_t stream)
{
    const unsigned n = (unsigned)j.n, fours = (unsigned)((j.n + 3) / 4);
    const int64_t vectors = j.width / wide_of<T>();
    if (wide && vectors <= 64)
        norm_held<1, 4, 2><<<fours, 128, 0, stream>>>(j);
    else if (wide && vectors <= 128)
        norm_held<1, 4, 4><<<fours, 128, 0, stream>>>(j);
    else if (wide && vectors <= 256)
        norm_held<1, 4, 8><<<fours, 128, 0, stream>>>(j);
    else if (wide && vectors <= 512)
        norm_held<4, 1, 4><<<n, 128, 0, stream>>>(j);
    else if (wide && vectors <= 1024)
        norm_held<8, 1, 4><<<n, 256, 0, stream>>>(j);
    else if (wide && vectors <= 2048)
        norm_held<16, 1, 4><<<n, 512, 0, stream>>>(j);
    else
        norm_read<<<n, READ_THREADS, 0, stream>>>(j);
}

template <class T> static void issue(ops *o, const norm_args *a)
{
    norm_job<T> j = {.y = mat_in_of<T>(a->y),
                     .r = mat_in_of<T>(a->r),
                     .x = mat_in_of<T>(a->x),
                     .a = mat_in_of<T>(a->a),
                     .mean = (float *)a->mean.data,
                     .rstd = (float *)a->rstd.data,
                     .bias = (const T *)a->bias.data,
                     .w = (const T *)a->w.data,
                     .b = (const T *)a->b.data,
                     .n = a->y.size[0],
                     .width = a->y.size[1],
                     .eps = a->eps,
                     .one = a->less_one ? 1.0f : 0.0f,
                     .layer = a->kind == NORM_LAYER,
                     .drop = mask_of(a->drop)};
    bool wide = j.width % wide_of<T>() == 0 && aligned(a->y) && aligned(a->r) && aligned(a->x) &&
                aligned(a->a) && aligned(a->bias) && aligned(a->w) && aligned(a->b);
    if (j.n && j.width)
        launch(j, wide, stream_of(o));
    dev_cuda_check(o->dev, "launch");
}

extern "C" void cuda_norm(ops *o, const void *args, void *)
{
    const norm_args *a = (const norm_args *)args;
    by_type(a->y.dtype, [&](auto t) { issue<decltype(t)>(o, a); });
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "train/ops/cuda/device.cuh"

/* What surrounds the product of cuda_matmul: bias and activation, and a bias's gradient. */

enum { MOST = 512, COLUMNS = 32, STRIPES = 16 };
static const int64_t most_ranges = 512, fewest_rows = 16;

static __device__ float act_of(enum act kind, float x)
{
    if (kind == ACT_GELU_ERF)
        return 0.5f * x * (1 + erff(x * 0.70710678118654752440f));
    if (kind == ACT_GELU_TANH)
        return 0.5f * x * (1 + tanhf(0.79788456080286535588f * (x + 0.044715f * x * x * x)));
    return x;
}

static __device__ float act_slope(enum act kind, float x)
{
    if (kind == ACT_GELU_ERF)
        return 0.5f * (1 + erff(x * 0.70710678118654752440f)) +
               x * 0.39894228040143267794f * expf(-0.5f * x * x);
    float t = tanhf(0.79788456080286535588f * (x + 0.044715f * x * x * x));
    float inner = 0.79788456080286535588f * (1 + 3 * 0.044715f * x * x);
    return 0.5f * (1 + t) + 0.5f * x * (1 - t * t) * inner;
}

template <class T> struct epilogue_job {
    mat_in<T> y, pre;
    const T *bias;
    int64_t width;
    enum act act;
    bool backward;
};

/* A block for each row. */
template <int VEC, class T> static __global__ void epilogue(const epilogue_job<T> j)
{
    int64_t i = blockIdx.x;
    for (int64_t c = threadIdx.x * VEC; c < j.width; c += blockDim.x * VEC) {
        float y[VEC], other[VEC] = {0};
        load(y, j.y.row(i) + c);
        if (j.bias)
            load(other, j.bias + c);
        if (j.backward)
            load(other, j.pre.row(i) + c);
        for (int k = 0; k < VEC; k++)
            y[k] = j.backward ? y[k] * act_slope(j.act, other[k]) : y[k] + other[k];
        if (!j.backward && j.pre.p)
            store(j.pre.row(i) + c, y);
        for (int k = 0; k < VEC; k++)
            y[k] = j.backward ? y[k] : act_of(j.act, y[k]);
        store(j.y.row(i) + c, y);
    }
}

template <class T> static void issue_epilogue(ops *o, const matmul_args *a)
{
    const int vec = wide_of<T>();
    epilogue_job<T> j = {
        mat_in_of<T>(a->y), mat_in_of<T>(a->pre), (const T *)a->bias.data, a->y.size[1], a->act,
        a->act_bwd};
    int64_t n = a->y.size[0];
    if (j.width % vec == 0 && aligned(a->y) && aligned(a->pre) && aligned(a->bias))
        epilogue<vec, T><<<(unsigned)n, threads_for(j.width / vec, MOST), 0, stream_of(o)>>>(j);
    else
        epilogue<1, T><<<(unsigned)n, threads_for(j.width, MOST), 0, stream_of(o)>>>(j);
}

extern "C" void cuda_epilogue(ops *o, const matmul_args *a)
{
    if (!tensor_count(a->y) || (a->act == ACT_NONE && tensor_none(a->bias)))
        return;
    by_type(a->y.dtype, [&](auto t) { issue_epilogue<decltype(t)>(o, a); });
}

/* ---- dbias: sums of columns, by ranges of rows
 * ---------------------------------------------------- */

static int64_t range_of(int64_t n)
{
    int64_t rows = ceil_div(n, most_ranges);
    return rows < fewest_rows ? fewest_rows : rows;
}

/* part[range][column]; the last range of rows may be short. A thread adds up VEC columns. */
template <int VEC, class T>
static __global__ void __launch_bounds__(COLUMNS *STRIPES)
    column_parts(mat_in<T> x, int64_t n, int64_t width, int64_t range, float *part)
{
    __shared__ float stripe[STRIPES][COLUMNS * VEC];
    int64_t c = ((int64_t)blockIdx.y * COLUMNS + threadIdx.x) * VEC;
    int64_t begin = blockIdx.x * range, end = begin + range < n ? begin + range : n;
    float sum[VEC] = {0};
    if (c < width)
        for (int64_t i = begin + threadIdx.y; i < end; i += STRIPES) {
            float v[VEC];
            load(v, x.row(i) + c);
            for (int k = 0; k < VEC; k++)
                sum[k] += v[k];
        }
    for (int k = 0; k < VEC; k++)
        stripe[threadIdx.y][threadIdx.x * VEC + k] = sum[k];
    __syncthreads();
    if (threadIdx.y || c >= width)
        return;
    for (int k = 0; k < VEC; k++) {
        float total = 0;
        for (int s = 0; s < STRIPES; s++)
            total += stripe[s][threadIdx.x * VEC + k];
        part[blockIdx.x * width + c + k] = total;
    }
}

template <class G>
static __global__ void __launch_bounds__(COLUMNS *STRIPES)
    column_total(const float *part, int64_t ranges, int64_t width, G *to)
{
    __shared__ float stripe[STRIPES][COLUMNS];
    int64_t c = (int64_t)blockIdx.x * COLUMNS + threadIdx.x;
    float sum = 0;
    if (c < width)
        for (int64_t i = threadIdx.y; i < ranges; i += STRIPES)
            sum += part[i * width + c];
    stripe[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.y || c >= width)
        return;
    sum = 0;
    for (int s = 0; s < STRIPES; s++)
        sum += stripe[s][threadIdx.x];
    to[c] = (G)((float)to[c] + sum);
}

extern "C" size_t cuda_dbias_scratch(const matmul_args *a)
{
    if (tensor_none(a->dbias))
        return 0;
    int64_t n = a->a.size[0];
    return (size_t)(ceil_div(n, range_of(n)) * a->a.size[1]) * sizeof(float);
}

/* Eight columns of 16 bits a thread, one of fp32. */
template <class T> static void issue_parts(ops *o, const matmul_args *a, float *part)
{
    const int vec = sizeof(T) == 2 ? 8 : 1;
    int64_t n = a->a.size[0], width = a->a.size[1];
    bool wide = width % vec == 0 && aligned(a->a);
    dim3 grid((unsigned)ceil_div(n, range_of(n)),
              (unsigned)ceil_div(width, COLUMNS * (wide ? vec : 1)));
    if (wide)
        column_parts<vec, T><<<grid, dim3(COLUMNS, STRIPES), 0, stream_of(o)>>>(
            mat_in_of<T>(a->a), n, width, range_of(n), part);
    else
        column_parts<1, T><<<grid, dim3(COLUMNS, STRIPES), 0, stream_of(o)>>>(
            mat_in_of<T>(a->a), n, width, range_of(n), part);
}

extern "C" void cuda_dbias(ops *o, const matmul_args *a, void *scratch)
{
    int64_t n = a->a.size[0], width = a->a.size[1];
    float *part = (float *)scratch;
    if (tensor_none(a->dbias) || !n || !width)
        return;
    by_type(a->a.dtype, [&](auto t) { issue_parts<decltype(t)>(o, a, part); });
    by_grad_type(a->dbias.dtype, [&](auto t) {
        column_total<<<(unsigned)ceil_div(width, COLUMNS), dim3(COLUMNS, STRIPES), 0,
                       stream_of(o)>>>(part, ceil_div(n, range_of(n)), width,
                                       (decltype(t) *)a->dbias.data);
    });
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "train/ops/cuda/device.cuh"

enum { THREADS = 256 };

/* Rows of `length` elements; contiguous tensors count as one row, cut over blocks. */
struct rows {
    int64_t n, length;
};

static rows rows_of(tensor y, tensor x)
{
    int64_t count = tensor_count(y);
    if (!y.size[0] || !count)
        return {0, 0};
    if (y.size[0] == 1 || (tensor_contiguous(y) && tensor_contiguous(x)))
        return {1, count};
    return {y.size[0], count / y.size[0]};
}

/* One row a value of blockIdx.y, and of what follows by gridDim.y. */
static dim3 grid_of(rows r, int64_t items)
{
    return dim3((unsigned)ceil_div(items, THREADS), (unsigned)(r.n < 65535 ? r.n : 65535));
}

template <class T>
static __global__ void __launch_bounds__(THREADS) fill_rows(T *y, int64_t stride, rows r, T value)
{
    int64_t j = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (j < r.length)
        for (int64_t i = blockIdx.y; i < r.n; i += gridDim.y)
            y[i * stride + j] = value;
}

template <class T> static void fill(ops *o, const fill_args *a, T value)
{
    rows r = rows_of(a->y, a->y);
    if (r.n)
        fill_rows<T><<<grid_of(r, r.length), THREADS, 0, stream_of(o)>>>((T *)a->y.data,
                                                                         a->y.stride, r, value);
    dev_cuda_check(o->dev, "launch");
}

extern "C" void cuda_fill(ops *o, const void *args, void *)
{
    const fill_args *a = (const fill_args *)args;
    if (a->y.dtype == DTYPE_F32)
        fill(o, a, (float)a->value);
    else if (a->y.dtype == DTYPE_F64)
        fill(o, a, a->value);
    else if (a->y.dtype == DTYPE_BF16)
        fill(o, a, (bf16)(float)a->value);
    else if (a->y.dtype == DTYPE_F16)
        fill(o, a, (f16)(float)a->value);
    else
        fill(o, a, (int32_t)a->value);
}

template <class T>
static __global__ void __launch_bounds__(THREADS)
    copy_rows(T *y, const T *x, int64_t y_stride, int64_t x_stride, rows r)
{
    int64_t j = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (j < r.length)
        for (int64_t i = blockIdx.y; i < r.n; i += gridDim.y)
            y[i * y_stride + j] = x[i * x_stride + j];
}

template <int VEC, class T>
static __global__ void __launch_bounds__(THREADS) add_rows(mat_in<T> y, mat_in<T> x, rows r)
{
    int64_t j = ((int64_t)blockIdx.x * THREADS + threadIdx.x) * VEC;
    if (j >= r.length)
        return;
    for (int64_t i = blockIdx.y; i < r.n; i += gridDim.y) {
        float a[VEC], b[VEC];
        load(a, y.row(i) + j);
        load(b, x.row(i) + j);
        for (int k = 0; k < VEC; k++)
            a[k] += b[k];
        store(y.row(i) + j, a);
    }
}

template <class T> static void add(ops *o, const copy_args *a, rows r, bool wide)
{
    const int vec = wide_of<T>();
    mat_in<T> y = mat_in_of<T>(a->y), x = mat_in_of<T>(a->x);
    if (wide)
        add_rows<vec><<<grid_of(r, r.length / vec), THREADS, 0, stream_of(o)>>>(y, x, r);
    else
        add_rows<1><<<grid_of(r, r.length), THREADS, 0, stream_of(o)>>>(y, x, r);
}

/* In units of T: addresses and lengths are multiples of it. */
template <class T> static void copy(ops *o, const copy_args *a, rows r, int64_t size)
{
    int64_t unit = (int64_t)sizeof(T);
    rows in_units = {r.n, r.length * size / unit};
    copy_rows<T><<<grid_of(r, in_units.length), THREADS, 0, stream_of(o)>>>(
        (T *)a->y.data, (const T *)a->x.data, a->y.stride * size / unit, a->x.stride * size / unit,
        in_units);
}

/* Of VEC numbers at a time, the last ones by one thread. */
template <int VEC, class T>
static __global__ void __launch_bounds__(THREADS) narrow(T *y, const float *x, int64_t n)
{
    int64_t i = ((int64_t)blockIdx.x * THREADS + threadIdx.x) * VEC;
    if (i + VEC <= n) {
        float v[VEC];
        load(v, x + i);
        store(y + i, v);
    } else {
        for (; i < n; i++)
            y[i] = (T)x[i];
    }
}

template <class T> static void cast(ops *o, const copy_args *a)
{
    int64_t n = tensor_count(a->y);
    T *y = (T *)a->y.data;
    const float *x = (const float *)a->x.data;
    if (n && ((uintptr_t)y | (uintptr_t)x) % 16 == 0)
        narrow<8><<<(unsigned)ceil_div(n, 8 * THREADS), THREADS, 0, stream_of(o)>>>(y, x, n);
    else if (n)
        narrow<1><<<(unsigned)ceil_div(n, THREADS), THREADS, 0, stream_of(o)>>>(y, x, n);
    dev_cuda_check(o->dev, "launch");
}

extern "C" void cuda_copy(ops *o, const void *args, void *)
{
    const copy_args *a = (const copy_args *)args;
    rows r = rows_of(a->y, a->x);
    int64_t size = (int64_t)dtype_size(a->y.dtype);
    bool single = r.n == 1;
    uintptr_t any = (uintptr_t)a->y.data | (uintptr_t)a->x.data | (uintptr_t)(r.length * size) |
                    (single ? 0 : (uintptr_t)((a->y.stride | a->x.stride) * size));
    if (a->y.dtype != a->x.dtype) {
        BUG_ON(a->x.dtype != DTYPE_F32 || size != 2, "copy: %s from %s", dtype_name(a->y.dtype),
               dtype_name(a->x.dtype));
        if (a->y.dtype == DTYPE_BF16)
            cast<bf16>(o, a);
        else
            cast<f16>(o, a);
        return;
    }
    if (!r.n)
        return;
    if (a->accumulate)
        by_type(a->y.dtype, [&](auto t) { add<decltype(t)>(o, a, r, any % 16 == 0); });
    else if (any % 16 == 0)
        copy<uint4>(o, a, r, size);
    else if (any % 8 == 0)
        copy<uint2>(o, a, r, size);
    else if (any % 4 == 0)
        copy<uint32_t>(o, a, r, size);
    else
        copy<uint16_t>(o, a, r, size);
    dev_cuda_check(o->dev, "launch");
}

template <class T>
static __global__ void __launch_bounds__(THREADS) noise_rows(T *y, int64_t stride, rows r)
{
    int64_t j = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (j < r.length)
        for (int64_t i = blockIdx.y; i < r.n; i += gridDim.y) {
            uint32_t x = (uint32_t)(i * r.length + j) * 2654435761u; /* by the golden ratio */
            x ^= x >> 15;
            y[i * stride + j] = (T)((float)(int32_t)(x * 2246822519u) * 0x1p-31f);
        }
}

template <class T> static void noise(ops *o, tensor t, rows r)
{
    noise_rows<<<grid_of(r, r.length), THREADS, 0, stream_of(o)>>>((T *)t.data, t.stride, r);
}

extern "C" void cuda_noise(ops *o, tensor t)
{
    rows r = rows_of(t, t);
    if (r.n)
        by_type(t.dtype, [&](auto x) { noise<decltype(x)>(o, t, r); });
    dev_cuda_check(o->dev, "launch");
}

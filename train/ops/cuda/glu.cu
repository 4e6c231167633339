/* SPDX-License-Identifier: Apache-2.0 */
#include "train/ops/cuda/device.cuh"

/* silu(g) = g s with s = 1 / (1 + exp(-g)); silu'(g) = s (1 + g (1 - s)). A block for each row. */

enum { MOST = 512 };

static __device__ float sigmoid(float x)
{
    return 1 / (1 + expf(-x));
}

template <int VEC, class T> static __global__ void glu(mat_in<T> y, mat_in<T> x, int64_t width)
{
    int64_t i = blockIdx.x;
    for (int64_t j = threadIdx.x * VEC; j < width; j += blockDim.x * VEC) {
        float g[VEC], u[VEC];
        load(g, x.row(i) + j);
        load(u, x.row(i) + width + j);
        for (int k = 0; k < VEC; k++)
            g[k] = g[k] * sigmoid(g[k]) * u[k];
        store(y.row(i) + j, g);
    }
}

template <class T> static void issue_glu(ops *o, const glu_args *a)
{
    const int vec = wide_of<T>();
    int64_t n = a->y.size[0], width = a->y.size[1];
    mat_in<T> y = mat_in_of<T>(a->y), x = mat_in_of<T>(a->x);
    if (width % vec == 0 && aligned(a->y) && aligned(a->x))
        glu<vec><<<(unsigned)n, threads_for(width / vec, MOST), 0, stream_of(o)>>>(y, x, width);
    else
        glu<1><<<(unsigned)n, threads_for(width, MOST), 0, stream_of(o)>>>(y, x, width);
    dev_cuda_check(o->dev, "launch");
}

extern "C" void cuda_glu(ops *o, const void *args, void *)
{
    const glu_args *a = (const glu_args *)args;
    if (!a->y.size[0] || !a->y.size[1])
        return;
    by_type(a->y.dtype, [&](auto t) { issue_glu<decltype(t)>(o, a); });
}

/* dx may be x: an element is read and written by the same thread. */
template <int VEC, class T>
static __global__ void glu_bwd(mat_in<T> dx, mat_in<T> dy, mat_in<T> x, int64_t width)
{
    int64_t i = blockIdx.x;
    for (int64_t j = threadIdx.x * VEC; j < width; j += blockDim.x * VEC) {
        float g[VEC], u[VEC], d[VEC];
        load(g, x.row(i) + j);
        load(u, x.row(i) + width + j);
        load(d, dy.row(i) + j);
        for (int k = 0; k < VEC; k++) {
            float s = sigmoid(g[k]), du = d[k] * g[k] * s;
            g[k] = d[k] * u[k] * (s * (1 + g[k] * (1 - s)));
            u[k] = du;
        }
        store(dx.row(i) + j, g);
        store(dx.row(i) + width + j, u);
    }
}

template <class T> static void issue_glu_bwd(ops *o, const glu_bwd_args *a)
{
    const int vec = wide_of<T>();
    int64_t n = a->dy.size[0], width = a->dy.size[1];
    mat_in<T> dx = mat_in_of<T>(a->dx), dy = mat_in_of<T>(a->dy), x = mat_in_of<T>(a->x);
    if (width % vec == 0 && aligned(a->dx) && aligned(a->dy) && aligned(a->x))
        glu_bwd<vec>
            <<<(unsigned)n, threads_for(width / vec, MOST), 0, stream_of(o)>>>(dx, dy, x, width);
    else
        glu_bwd<1><<<(unsigned)n, threads_for(width, MOST), 0, stream_of(o)>>>(dx, dy, x, width);
    dev_cuda_check(o->dev, "launch");
}

extern "C" void cuda_glu_bwd(ops *o, const void *args, void *)
{
    const glu_bwd_args *a = (const glu_bwd_args *)args;
    if (!a->dy.size[0] || !a->dy.size[1])
        return;
    by_type(a->dy.dtype, [&](auto t) { issue_glu_bwd<decltype(t)>(o, a); });
}

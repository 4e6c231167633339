/* SPDX-License-Identifier: Apache-2.0 */
#include "train/ops/cuda/device.cuh"

/*
 * silu(g) = g s with s = 1 / (1 + exp(-g)); silu'(g) = s (1 + g (1 - s)). GELU: g P(g) with the
 * normal distribution P, its tanh form g s(z) with z = 2 sqrt(2 / pi) (g + 0.044715 g^3). A block
 * for each row.
 */

enum { MOST = 512 };

static __device__ float sigmoid(float x)
{
    return 1 / (1 + expf(-x));
}

/* Of the tanh form's z. */
static const float gelu_scale = 1.59576912160573071176f;

/* act(g), and its slope. */
template <int ACT> static __device__ float gate(float g, float &slope)
{
    if constexpr (ACT == GLU_GELU_ERF) {
        float p = 0.5f * (1 + erff(g * 0.70710678118654752440f));
        slope = fmaf(g * 0.39894228040143267794f, expf(-0.5f * g * g), p);
        return g * p;
    }
    float z = ACT == GLU_SILU ? g : gelu_scale * fmaf(0.044715f * g * g, g, g), s = sigmoid(z);
    float dz = ACT == GLU_SILU ? 1 : gelu_scale * fmaf(3 * 0.044715f * g, g, 1);
    slope = s * (1 + g * dz * (1 - s));
    return g * s;
}

template <int VEC, int ACT, class T>
static __global__ void glu(mat_in<T> y, mat_in<T> x, int64_t width)
{
    int64_t i = blockIdx.x;
    for (int64_t j = threadIdx.x * VEC; j < width; j += blockDim.x * VEC) {
        float g[VEC], u[VEC], slope;
        load(g, x.row(i) + j);
        load(u, x.row(i) + width + j);
        for (int k = 0; k < VEC; k++)
            g[k] = gate<ACT>(g[k], slope) * u[k];
        store(y.row(i) + j, g);
    }
}

template <int ACT, class T> static void issue_glu(ops *o, const glu_args *a)
{
    const int vec = wide_of<T>();
    int64_t n = a->y.size[0], width = a->y.size[1];
    mat_in<T> y = mat_in_of<T>(a->y), x = mat_in_of<T>(a->x);
    if (width % vec == 0 && aligned(a->y) && aligned(a->x))
        glu<vec, ACT>
            <<<(unsigned)n, even_threads_for(width / vec, MOST), 0, stream_of(o)>>>(y, x, width);
    else
        glu<1, ACT><<<(unsigned)n, even_threads_for(width, MOST), 0, stream_of(o)>>>(y, x, width);
    dev_cuda_check(o->dev, "launch");
}

extern "C" void cuda_glu(ops *o, const void *args, void *)
{
    const glu_args *a = (const glu_args *)args;
    if (!a->y.size[0] || !a->y.size[1])
        return;
    by_type(a->y.dtype, [&](auto t) {
        typedef decltype(t) T;
        if (a->act == GLU_SILU)
            issue_glu<GLU_SILU, T>(o, a);
        else if (a->act == GLU_GELU_TANH)
            issue_glu<GLU_GELU_TANH, T>(o, a);
        else
            issue_glu<GLU_GELU_ERF, T>(o, a);
    });
}

/* dx may be x: an element is read and written by the same thread. */
template <int VEC, int ACT, class T>
static __global__ void glu_bwd(mat_in<T> dx, mat_in<T> dy, mat_in<T> x, int64_t width)
{
    int64_t i = blockIdx.x;
    for (int64_t j = threadIdx.x * VEC; j < width; j += blockDim.x * VEC) {
        float g[VEC], u[VEC], d[VEC];
        load(g, x.row(i) + j);
        load(u, x.row(i) + width + j);
        load(d, dy.row(i) + j);
        for (int k = 0; k < VEC; k++) {
            float slope, act = gate<ACT>(g[k], slope);
            g[k] = d[k] * u[k] * slope;
            u[k] = d[k] * act;
        }
        store(dx.row(i) + j, g);
        store(dx.row(i) + width + j, u);
    }
}

template <int ACT, class T> static void issue_glu_bwd(ops *o, const glu_bwd_args *a)
{
    const int vec = wide_of<T>();
    int64_t n = a->dy.size[0], width = a->dy.size[1];
    mat_in<T> dx = mat_in_of<T>(a->dx), dy = mat_in_of<T>(a->dy), x = mat_in_of<T>(a->x);
    if (width % vec == 0 && aligned(a->dx) && aligned(a->dy) && aligned(a->x))
        glu_bwd<vec, ACT><<<(unsigned)n, even_threads_for(width / vec, MOST), 0, stream_of(o)>>>(
            dx, dy, x, width);
    else
        glu_bwd<1, ACT>
            <<<(unsigned)n, even_threads_for(width, MOST), 0, stream_of(o)>>>(dx, dy, x, width);
    dev_cuda_check(o->dev, "launch");
}

extern "C" void cuda_glu_bwd(ops *o, const void *args, void *)
{
    const glu_bwd_args *a = (const glu_bwd_args *)args;
    if (!a->dy.size[0] || !a->dy.size[1])
        return;
    by_type(a->dy.dtype, [&](auto t) {
        typedef decltype(t) T;
        if (a->act == GLU_SILU)
            issue_glu_bwd<GLU_SILU, T>(o, a);
        else if (a->act == GLU_GELU_TANH)
            issue_glu_bwd<GLU_GELU_TANH, T>(o, a);
        else
            issue_glu_bwd<GLU_GELU_ERF, T>(o, a);
    });
}

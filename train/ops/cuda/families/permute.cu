/* SPDX-License-Identifier: Apache-2.0 */
#include "train/ops/cuda/device.cuh"

extern "C" {
#include "train/ops/experts.h"
}

/*
 * Rows of tokens to rows of slots and back, and the gate of a shared expert: a block for each
 * token.
 */

enum { MOST = 256 };

struct slots {
    const int32_t *p;
    int64_t stride;
    int k;
    __device__ int64_t at(int64_t i, int t) const
    {
        return p[i * stride + t];
    }
};

static slots slots_of(tensor t)
{
    return {ints_of(t), t.stride, (int)t.size[1]};
}

/* ---- to slots -----------------------------------------------------------------------------------
 */

template <int VEC, class T>
static __global__ void __launch_bounds__(MOST)
    permute(mat_in<T> to, mat_in<T> x, slots s, int64_t width)
{
    const int64_t i = blockIdx.x;
    for (int64_t c = threadIdx.x * VEC; c < width; c += blockDim.x * VEC) {
        float v[VEC];
        load(v, x.row(i) + c);
        for (int t = 0; t < s.k; t++)
            store(to.row(s.at(i, t)) + c, v);
    }
}

template <class T> static void issue_permute(ops *o, const permute_args *a)
{
    const int vec = wide_of<T>();
    const int64_t n = a->x.size[0], width = a->x.size[1];
    mat_in<T> to = mat_in_of<T>(a->to), x = mat_in_of<T>(a->x);
    slots s = slots_of(a->slot);
    if (width % vec == 0 && aligned(a->to) && aligned(a->x))
        permute<vec>
            <<<(unsigned)n, threads_for(width / vec, MOST), 0, stream_of(o)>>>(to, x, s, width);
    else
        permute<1><<<(unsigned)n, threads_for(width, MOST), 0, stream_of(o)>>>(to, x, s, width);
    dev_cuda_check(o->dev, "launch");
}

extern "C" void cuda_permute(ops *o, const void *args, void *)
{
    const permute_args *a = (const permute_args *)args;
    if (tensor_count(a->x))
        by_type(a->x.dtype, [&](auto t) { issue_permute<decltype(t)>(o, a); });
}

/* ---- back: the sum of a token's rows, each times its weight or as it is -------------------------
 */

template <class T> struct gather_job {
    mat_in<T> y, from;
    mat weight; /* p NULL: none */
    slots s;
    int64_t width;
};

template <int VEC, class T>
static __global__ void __launch_bounds__(MOST) gather(const gather_job<T> j)
{
    const int64_t i = blockIdx.x;
    for (int64_t c = threadIdx.x * VEC; c < j.width; c += blockDim.x * VEC) {
        float sum[VEC] = {0};
        for (int t = 0; t < j.s.k; t++) {
            float v[VEC], w = j.weight.p ? j.weight.row(i)[t] : 1;
            load(v, j.from.row(j.s.at(i, t)) + c);
            for (int k = 0; k < VEC; k++)
                sum[k] = fmaf(w, v[k], sum[k]);
        }
        store(j.y.row(i) + c, sum);
    }
}

template <class T>
static void issue_gather(ops *o, tensor y, tensor from, tensor weight, tensor slot)
{
    const int vec = wide_of<T>();
    gather_job<T> j = {mat_in_of<T>(y), mat_in_of<T>(from), mat_of(weight), slots_of(slot),
                       y.size[1]};
    const unsigned n = (unsigned)y.size[0];
    if (j.width % vec == 0 && aligned(y) && aligned(from))
        gather<vec><<<n, threads_for(j.width / vec, MOST), 0, stream_of(o)>>>(j);
    else
        gather<1><<<n, threads_for(j.width, MOST), 0, stream_of(o)>>>(j);
    dev_cuda_check(o->dev, "launch");
}

extern "C" void cuda_permute_bwd(ops *o, const void *args, void *)
{
    const permute_bwd_args *a = (const permute_bwd_args *)args;
    if (tensor_count(a->dx))
        by_type(a->dx.dtype,
                [&](auto t) { issue_gather<decltype(t)>(o, a->dx, a->dto, tensor{}, a->slot); });
}

extern "C" void cuda_unpermute(ops *o, const void *args, void *)
{
    const unpermute_args *a = (const unpermute_args *)args;
    if (tensor_count(a->y))
        by_type(a->y.dtype,
                [&](auto t) { issue_gather<decltype(t)>(o, a->y, a->from, a->weight, a->slot); });
}

template <class T> struct unpermute_bwd_job {
    mat_in<T> dfrom, dy, from;
    mat dweight, weight;
    slots s;
    int64_t width;
};

template <int VEC, class T>
static __global__ void __launch_bounds__(MOST) unpermute_bwd(const unpermute_bwd_job<T> j)
{
    __shared__ float part[32];
    const int64_t i = blockIdx.x;
    for (int t = 0; t < j.s.k; t++) {
        const int64_t at = j.s.at(i, t);
        const float w = j.weight.row(i)[t];
        float dot = 0;
        for (int64_t c = threadIdx.x * VEC; c < j.width; c += blockDim.x * VEC) {
            float dy[VEC], from[VEC];
            load(dy, j.dy.row(i) + c);
            load(from, j.from.row(at) + c);
            for (int k = 0; k < VEC; k++) {
                dot = fmaf(dy[k], from[k], dot);
                dy[k] *= w;
            }
            store(j.dfrom.row(at) + c, dy);
        }
        dot = block_sum(dot, part);
        if (threadIdx.x == 0)
            j.dweight.row(i)[t] = dot;
    }
}

template <class T> static void issue_unpermute_bwd(ops *o, const unpermute_bwd_args *a)
{
    const int vec = wide_of<T>();
    unpermute_bwd_job<T> j = {mat_in_of<T>(a->dfrom), mat_in_of<T>(a->dy), mat_in_of<T>(a->from),
                              mat_of(a->dweight),     mat_of(a->weight),   slots_of(a->slot),
                              a->dy.size[1]};
    const unsigned n = (unsigned)a->dy.size[0];
    if (j.width % vec == 0 && aligned(a->dfrom) && aligned(a->dy) && aligned(a->from))
        unpermute_bwd<vec><<<n, threads_for(j.width / vec, MOST), 0, stream_of(o)>>>(j);
    else
        unpermute_bwd<1><<<n, threads_for(j.width, MOST), 0, stream_of(o)>>>(j);
    dev_cuda_check(o->dev, "launch");
}

extern "C" void cuda_unpermute_bwd(ops *o, const void *args, void *)
{
    const unpermute_bwd_args *a = (const unpermute_bwd_args *)args;
    if (a->dy.size[0])
        by_type(a->dy.dtype, [&](auto t) { issue_unpermute_bwd<decltype(t)>(o, a); });
}

/* ---- the gate of a shared expert ----------------------------------------------------------------
 */

template <class T> struct gate_job {
    mat_in<T> y, x, logit; /* y: dx in the backward */
    mat_in<T> dy, dlogit;  /* backward */
    int64_t width;
};

static __device__ float logistic(float x)
{
    return 1 / (1 + expf(-x));
}

template <int VEC, class T>
static __global__ void __launch_bounds__(MOST) gate_rows(const gate_job<T> j)
{
    const int64_t i = blockIdx.x;
    const float s = logistic((float)*j.logit.row(i));
    for (int64_t c = threadIdx.x * VEC; c < j.width; c += blockDim.x * VEC) {
        float v[VEC];
        load(v, j.x.row(i) + c);
        for (int k = 0; k < VEC; k++)
            v[k] *= s;
        store(j.y.row(i) + c, v);
    }
}

/* dx may be dy: an element is read and written by the same thread. */
template <int VEC, class T>
static __global__ void __launch_bounds__(MOST) gate_rows_bwd(const gate_job<T> j)
{
    __shared__ float part[32];
    const int64_t i = blockIdx.x;
    const float s = logistic((float)*j.logit.row(i));
    float dot[1] = {0};
    for (int64_t c = threadIdx.x * VEC; c < j.width; c += blockDim.x * VEC) {
        float dy[VEC], x[VEC];
        load(dy, j.dy.row(i) + c);
        load(x, j.x.row(i) + c);
        for (int k = 0; k < VEC; k++) {
            dot[0] = fmaf(dy[k], x[k], dot[0]);
            dy[k] *= s;
        }
        store(j.y.row(i) + c, dy);
    }
    dot[0] = block_sum(dot[0], part) * s * logistic(-(float)*j.logit.row(i));
    if (threadIdx.x == 0)
        store(j.dlogit.row(i), dot);
}

template <class T> static void issue_gate(ops *o, const gate_job<T> &j, unsigned n, bool wide)
{
    const int vec = wide_of<T>();
    const bool backward = j.dy.p;
    const int threads = threads_for(wide ? j.width / vec : j.width, MOST);
    if (backward && wide)
        gate_rows_bwd<vec><<<n, threads, 0, stream_of(o)>>>(j);
    else if (backward)
        gate_rows_bwd<1><<<n, threads, 0, stream_of(o)>>>(j);
    else if (wide)
        gate_rows<vec><<<n, threads, 0, stream_of(o)>>>(j);
    else
        gate_rows<1><<<n, threads, 0, stream_of(o)>>>(j);
    dev_cuda_check(o->dev, "launch");
}

extern "C" void cuda_gate(ops *o, const void *args, void *)
{
    const gate_args *a = (const gate_args *)args;
    if (!tensor_count(a->y))
        return;
    by_type(a->y.dtype, [&](auto t) {
        typedef decltype(t) T;
        gate_job<T> j = {};
        j.y = mat_in_of<T>(a->y);
        j.x = mat_in_of<T>(a->x);
        j.logit = mat_in_of<T>(a->logit);
        j.width = a->y.size[1];
        issue_gate(o, j, (unsigned)a->y.size[0],
                   j.width % wide_of<T>() == 0 && aligned(a->y) && aligned(a->x));
    });
}

extern "C" void cuda_gate_bwd(ops *o, const void *args, void *)
{
    const gate_bwd_args *a = (const gate_bwd_args *)args;
    if (!a->dy.size[0])
        return;
    by_type(a->dy.dtype, [&](auto t) {
        typedef decltype(t) T;
        gate_job<T> j = {.y = mat_in_of<T>(a->dx),
                         .x = mat_in_of<T>(a->x),
                         .logit = mat_in_of<T>(a->logit),
                         .dy = mat_in_of<T>(a->dy),
                         .dlogit = mat_in_of<T>(a->dlogit),
                         .width = a->dy.size[1]};
        issue_gate(o, j, (unsigned)a->dy.size[0],
                   j.width % wide_of<T>() == 0 && aligned(a->dx) && aligned(a->dy) &&
                       aligned(a->x));
    });
}

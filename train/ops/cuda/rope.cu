/* SPDX-License-Identifier: Apache-2.0 */
#include "train/ops/cuda/device.cuh"

enum { MOST = 512 };

/* A block for each row; a thread turns VEC neighbouring pairs of one head. */
template <int VEC, class T>
static __global__ void rope(mat_in<T> x, mat cosine, mat sine, const int32_t *position, int heads,
                            int dim, int half, float sign)
{
    int64_t i = blockIdx.x;
    const float *cos_row = cosine.row(position[i]), *sin_row = sine.row(position[i]);
    int pieces = half / VEC;
    for (int t = (int)threadIdx.x; t < heads * pieces; t += (int)blockDim.x) {
        int head = t / pieces, j = (t - head * pieces) * VEC;
        T *p = x.row(i) + (int64_t)head * dim + j;
        float u[VEC], v[VEC], c[VEC], s[VEC];
        load(u, p);
        load(v, p + half);
        load(c, cos_row + j);
        load(s, sin_row + j);
        for (int k = 0; k < VEC; k++) {
            float first = u[k] * c[k] - v[k] * (sign * s[k]);
            v[k] = u[k] * (sign * s[k]) + v[k] * c[k];
            u[k] = first;
        }
        store(p, u);
        store(p + half, v);
    }
}

template <class T> static void issue_rope(ops *o, const rope_args *a)
{
    const int vec = wide_of<T>();
    int64_t n = a->x.size[0], heads = a->x.size[1], dim = a->x.size[2], half = a->rotary / 2;
    float sign = a->backward ? -1.0f : 1.0f;
    mat_in<T> x = mat_in_of<T>(a->x);
    if (half % vec == 0 && dim % vec == 0 && aligned(a->x) && aligned(a->cos) && aligned(a->sin))
        rope<vec><<<(unsigned)n, threads_for(heads * half / vec, MOST), 0, stream_of(o)>>>(
            x, mat_of(a->cos), mat_of(a->sin), ints_of(a->position), (int)heads, (int)dim,
            (int)half, sign);
    else
        rope<1><<<(unsigned)n, threads_for(heads * half, MOST), 0, stream_of(o)>>>(
            x, mat_of(a->cos), mat_of(a->sin), ints_of(a->position), (int)heads, (int)dim,
            (int)half, sign);
    dev_cuda_check(o->dev, "launch");
}

extern "C" void cuda_rope(ops *o, const void *args, void *)
{
    const rope_args *a = (const rope_args *)args;
    if (!a->x.size[0] || !a->x.size[1])
        return;
    by_type(a->x.dtype, [&](auto t) { issue_rope<decltype(t)>(o, a); });
}

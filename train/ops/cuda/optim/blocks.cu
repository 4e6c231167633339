/* SPDX-License-Identifier: Apache-2.0 */
#include "train/ops/cuda/optim/rounding.cuh"
#include "train/ops/cuda/optim/sums.cuh"

extern "C" {
#include "train/ops/blocks.h"
}

/* The ops of SGD-SaI and Muon (train/ops/blocks.h). */

/* ---- statistics of blocks, in double ----------------------------------------------------------
 */

struct itself {
    __device__ double of(double x) const
    {
        return x;
    }
};

struct deviation {
    const double *sum, *count;
    __device__ double of(double x) const
    {
        double away = x - *sum / *count;
        return away * away;
    }
};

extern "C" size_t cuda_moments_scratch(const dev_desc *, const void *args)
{
    return sum_scratch(((const moments_args *)args)->x);
}

extern "C" void cuda_moments(ops *o, const void *args, void *scratch)
{
    const moments_args *a = (const moments_args *)args;
    double *count = (double *)a->count.data, *sum = (double *)a->sum.data;
    if (tensor_none(a->deviations))
        sum_add(o, a->x, itself{}, (double *)scratch, sum, count);
    else
        sum_add(o, a->x, deviation{sum, count}, (double *)scratch, (double *)a->deviations.data,
                NULL);
}

enum { GSNR_THREADS = 256 };

struct gsnr_job {
    double *y;
    const double *count, *sum, *away, *factor;
    const int32_t *skip;
    int64_t n;
    double eps;
    bool max;
};

static __device__ double gsnr_of(const gsnr_job &j, double factor, int64_t i)
{
    double count = j.count[i], sum = j.sum[i], away = j.away[i];
    double squares = count > 0 ? away + sum * sum / count : 0;
    double spread = count > 1 ? sqrt(away / (count - 1)) : 0;
    return factor * sqrt(squares) / (factor * spread + j.eps);
}

/* One block: there are a few blocks of gradients for each layer. */
static __global__ void __launch_bounds__(GSNR_THREADS) gsnr(const gsnr_job j)
{
    __shared__ double most[GSNR_THREADS];
    double mine = 0;
    if (*j.skip)
        return;
    for (int64_t i = threadIdx.x; i < j.n; i += GSNR_THREADS) {
        double y = gsnr_of(j, *j.factor, i);
        j.y[i] = y;
        mine = y > mine ? y : mine;
    }
    most[threadIdx.x] = mine;
    __syncthreads();
    for (int k = 0; k < GSNR_THREADS; k++)
        mine = most[k] > mine ? most[k] : mine;
    for (int64_t i = threadIdx.x; i < j.n && j.max && mine > 0; i += GSNR_THREADS)
        j.y[i] /= mine;
}

extern "C" void cuda_gsnr(ops *o, const void *args, void *)
{
    const gsnr_args *a = (const gsnr_args *)args;
    gsnr_job j = {(double *)a->y.data,
                  (const double *)a->count.data,
                  (const double *)a->sum.data,
                  (const double *)a->deviations.data,
                  (const double *)a->factor.data,
                  (const int32_t *)a->skip.data,
                  a->y.size[0],
                  a->eps,
                  a->max};
    if (j.n)
        gsnr<<<1, GSNR_THREADS, 0, stream_of(o)>>>(j);
    dev_cuda_check(o->dev, "launch");
}

/* ---- steps ------------------------------------------------------------------------------------
 */

/* Weights or moments, in one way or the other. */
template <bool ROUND, int VEC>
static __device__ void store_state(const flat &f, int64_t i, const float (&v)[VEC],
                                   const rounder &r, uint64_t key)
{
    if constexpr (ROUND) {
        int k = rounder_run(r, i);
        const round_place at = rounder_place(r, k, i, VEC);
        flat_store_rounded(f, i, v, r, at, k, key);
    } else {
        flat_store(f, i, v);
    }
}

template <bool ROUND> struct momentum_job {
    flat y, m, g; /* m: or none */
    const double *factor, *number;
    const int32_t *skip;
    int64_t n;
    bool aligned, nesterov;
    float keep, rest; /* momentum, and 1 less that */
    rounder round;

    struct now {
        float factor, keep, rest;
        uint64_t key;
    };
    __device__ now begin() const
    {
        bool first = !m.p || (number && *number == 1);
        return {(float)*factor, first ? 0 : keep, first ? 1 : rest,
                ROUND ? rounder_key(round, ROUND_MOMENT) : 0};
    }
    template <int VEC> __device__ void at(const now &w, int64_t i) const
    {
        float gi[VEC], mi[VEC] = {0};
        flat_load(gi, g, i);
        if (m.p)
            flat_load(mi, m, i);
        for (int k = 0; k < VEC; k++) {
            gi[k] *= w.factor;
            mi[k] = w.keep > 0 ? fmaf(w.keep, mi[k], w.rest * gi[k]) : w.rest * gi[k];
        }
        if (m.p)
            store_state<ROUND>(m, i, mi, round, w.key);
        for (int k = 0; k < VEC && nesterov; k++)
            mi[k] = fmaf(keep, mi[k], rest * gi[k]);
        if (!ROUND || y.p != m.p)
            flat_store(y, i, mi);
    }
};

template <bool ROUND> static void momentum_each(ops *o, const momentum_args *a)
{
    constexpr int vec = ROUND ? EIGHT : 4;
    momentum_job<ROUND> j = {flat_of(a->y),
                             flat_of(a->m),
                             flat_of(a->g),
                             (const double *)a->factor.data,
                             (const double *)a->number.data,
                             (const int32_t *)a->skip.data,
                             tensor_count(a->y),
                             flat_aligned(a->y, vec) && flat_aligned(a->m, vec) &&
                                 flat_aligned(a->g, vec),
                             a->nesterov,
                             (float)a->momentum,
                             (float)(1 - a->momentum),
                             rounder_of(a->round)};
    flat_each<vec>(o, j);
}

extern "C" void cuda_momentum(ops *o, const void *args, void *)
{
    const momentum_args *a = (const momentum_args *)args;
    if (tensor_none(a->round.runs))
        momentum_each<false>(o, a);
    else
        momentum_each<true>(o, a);
}

template <bool ROUND> struct decayed_job {
    flat p, x;
    const double *gsnr; /* or NULL */
    const int32_t *skip;
    const step_values *values;
    int64_t n;
    bool aligned, decays;
    double scale;
    rounder round;

    struct now {
        two keep;
        float step;
        uint64_t key;
    };
    __device__ now begin() const
    {
        const double lr = values->lr, decay = decays ? values->decay : 0;
        return {two_of(1 - lr * decay), (float)(-lr * scale * (gsnr ? *gsnr : 1)),
                ROUND ? rounder_key(round, ROUND_WEIGHT) : 0};
    }
    template <int VEC> __device__ void at(const now &w, int64_t i) const
    {
        float pi[VEC], xi[VEC];
        flat_load(pi, p, i);
        flat_load(xi, x, i);
        for (int k = 0; k < VEC; k++)
            pi[k] = times(pi[k], w.keep, w.step * xi[k]);
        store_state<ROUND>(p, i, pi, round, w.key);
    }
};

template <bool ROUND> static void decayed_each(ops *o, const decayed_args *a)
{
    constexpr int vec = ROUND ? EIGHT : 4;
    decayed_job<ROUND> j = {flat_of(a->p),
                            flat_of(a->x),
                            (const double *)a->gsnr.data,
                            (const int32_t *)a->skip.data,
                            (const step_values *)a->values.data,
                            tensor_count(a->p),
                            flat_aligned(a->p, vec) && flat_aligned(a->x, vec),
                            a->decays,
                            a->scale,
                            rounder_of(a->round)};
    flat_each<vec>(o, j);
}

extern "C" void cuda_decayed(ops *o, const void *args, void *)
{
    const decayed_args *a = (const decayed_args *)args;
    if (tensor_none(a->round.runs))
        decayed_each<false>(o, a);
    else
        decayed_each<true>(o, a);
}

struct combine_job {
    flat y, x;
    const int32_t *skip;
    int64_t n;
    bool aligned;
    float s, t;

    struct now {
        float s, t;
    };
    __device__ now begin() const
    {
        return {s, t};
    }
    template <int VEC> __device__ void at(const now &w, int64_t i) const
    {
        float yi[VEC], xi[VEC];
        flat_load(yi, y, i);
        flat_load(xi, x, i);
        for (int k = 0; k < VEC; k++)
            yi[k] = fmaf(w.t, xi[k], w.s * yi[k]);
        flat_store(y, i, yi);
    }
};

extern "C" void cuda_combine(ops *o, const void *args, void *)
{
    const combine_args *a = (const combine_args *)args;
    combine_job j = {flat_of(a->y),
                     flat_of(a->x),
                     NULL,
                     tensor_count(a->y),
                     flat_aligned(a->y) && flat_aligned(a->x),
                     (float)a->s,
                     (float)a->t};
    flat_each(o, j);
}

/* ---- to length 1 ------------------------------------------------------------------------------
 */

struct square {
    __device__ double of(double x) const
    {
        return x * x;
    }
};

struct unit_job {
    flat x;
    const double *squares;
    const int32_t *skip;
    int64_t n;
    bool aligned;

    typedef float now;
    __device__ now begin() const
    {
        return (float)(1 / (sqrt(*squares) + 1e-7));
    }
    template <int VEC> __device__ void at(now by, int64_t i) const
    {
        float v[VEC];
        flat_load(v, x, i);
        for (int k = 0; k < VEC; k++)
            v[k] *= by;
        flat_store(x, i, v);
    }
};

/* The sum of squares, and then its parts. */
extern "C" size_t cuda_unit_scratch(const dev_desc *, const void *args)
{
    return sizeof(double) + sum_scratch(((const unit_args *)args)->x);
}

extern "C" void cuda_unit(ops *o, const void *args, void *scratch)
{
    const unit_args *a = (const unit_args *)args;
    double *sum = (double *)scratch;
    unit_job j = {flat_of(a->x), sum, NULL, tensor_count(a->x), flat_aligned(a->x)};
    if (!j.n)
        return;
    cudaMemsetAsync(sum, 0, sizeof(*sum), stream_of(o));
    sum_add(o, a->x, square{}, sum + 1, sum, NULL);
    flat_each(o, j);
}

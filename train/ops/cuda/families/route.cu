/* SPDX-License-Identifier: Apache-2.0 */
#include "train/ops/cuda/device.cuh"

extern "C" {
#include "train/ops/experts.h"
}

/* The router of a mixture of experts: a warp for each token. */

enum { WARPS = 8, THREADS = 32 * WARPS, SLOT_THREADS = 1024, PARTS = 64 };

struct int_mat {
    int32_t *p;
    int64_t stride;
    __device__ int32_t *row(int64_t i) const
    {
        return p + i * stride;
    }
};

static int_mat int_mat_of(tensor t)
{
    return {(int32_t *)t.data, t.stride};
}

static __device__ int32_t warp_sum(int32_t v)
{
    for (int k = 16; k; k /= 2)
        v += __shfl_xor_sync(~0u, v, k);
    return v;
}

/* ---- probabilities and choices ------------------------------------------------------------------
 */

template <class T> struct route_job {
    mat_in<T> logits;
    mat prob, weight;
    float *lse;
    int_mat choice;
    int64_t n;
    int experts, k;
    bool normalize;
};

/*
 * The place of expert e in the order of choices: the larger its logit the larger, of equals the
 * first expert's is larger. No two are equal, so the choice after `key` is the largest below it.
 */
static __device__ uint64_t choice_key(float x, int e)
{
    uint32_t bits = __float_as_uint(isnan(x) ? INFINITY : x + 0.0f); /* -0 becomes 0 */
    bits ^= bits >> 31 ? ~0u : 1u << 31;
    return (uint64_t)bits << 32 | (~0u - (uint32_t)e);
}

static __device__ int expert_of(uint64_t key)
{
    return (int)(~0u - (uint32_t)key);
}

static __device__ uint64_t warp_largest(uint64_t v)
{
    for (int k = 16; k; k /= 2) {
        uint64_t other = __shfl_xor_sync(~0u, v, k);
        v = other > v ? other : v;
    }
    return v;
}

template <class T> static __device__ float logit(const T *x, int e)
{
    return (float)x[e];
}

template <class T> static __global__ void __launch_bounds__(THREADS) route(const route_job<T> j)
{
    const int lane = (int)threadIdx.x % 32;
    const int64_t i = (int64_t)blockIdx.x * WARPS + threadIdx.x / 32;
    if (i >= j.n)
        return;
    const T *x = j.logits.row(i);
    float max = -INFINITY, sum = 0, chosen = 0;
    for (int e = lane; e < j.experts; e += 32)
        max = fmaxf(max, logit(x, e));
    max = warp_max(max);
    for (int e = lane; e < j.experts; e += 32)
        sum += expf(logit(x, e) - max);
    sum = warp_sum(sum);
    for (int e = lane; e < j.experts; e += 32)
        j.prob.row(i)[e] = expf(logit(x, e) - max) / sum;
    if (lane == 0)
        j.lse[i] = max + logf(sum);
    uint64_t last = ~(uint64_t)0;
    for (int t = 0; t < j.k; t++) {
        uint64_t best = 0;
        for (int e = lane; e < j.experts; e += 32) {
            uint64_t key = choice_key(logit(x, e), e);
            best = key < last && key > best ? key : best;
        }
        last = warp_largest(best);
        const float p = expf(logit(x, expert_of(last)) - max) / sum;
        chosen += p;
        if (lane == 0) {
            j.choice.row(i)[t] = expert_of(last);
            j.weight.row(i)[t] = p;
        }
    }
    __syncwarp();
    for (int t = lane; t < j.k && j.normalize; t += 32)
        j.weight.row(i)[t] /= chosen;
}

/* ---- slots --------------------------------------------------------------------------------------
 */

struct slot_job {
    int_mat choice, slot;
    int32_t *count, *start; /* start: or NULL */
    int pairs, k;           /* all pairs of a token and an expert; of one token */
};

static __device__ int32_t *pair_at(const int_mat &m, int pair, int k)
{
    int i = pair / k;
    return m.row(i) + (pair - i * k);
}

/*
 * A block for each expert e. Its pairs are numbered in their order, from the number of pairs of
 * experts before it on. A warp has a range of neighbouring pairs.
 */
static __global__ void __launch_bounds__(SLOT_THREADS) number_slots(const slot_job j)
{
    __shared__ int32_t own[32], before[32];
    const int e = (int)blockIdx.x, lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
    const int each = (j.pairs + SLOT_THREADS - 1) / SLOT_THREADS * 32;
    const int begin = warp * each, end = begin + each < j.pairs ? begin + each : j.pairs;
    int32_t mine = 0, less = 0, first = 0, at = 0, total = 0;
    for (int p = begin + lane; p < end; p += 32) {
        int32_t c = *pair_at(j.choice, p, j.k);
        mine += c == e;
        less += c < e;
    }
    mine = warp_sum(mine);
    less = warp_sum(less);
    if (lane == 0) {
        own[warp] = mine;
        before[warp] = less;
    }
    __syncthreads();
    for (int w = 0; w < 32; w++) {
        first += before[w];
        at += w < warp ? own[w] : 0;
        total += own[w];
    }
    at += first;
    if (threadIdx.x == 0) {
        j.count[e] = total;
        if (j.start)
            j.start[e] = first;
        if (j.start && e + 1 == (int)gridDim.x)
            j.start[e + 1] = j.pairs;
    }
    for (int base = begin; base < end; base += 32) {
        const int p = base + lane;
        const bool hit = p < end && *pair_at(j.choice, p, j.k) == e;
        const unsigned all = __ballot_sync(~0u, hit);
        if (hit)
            *pair_at(j.slot, p, j.k) = at + __popc(all & ((1u << lane) - 1));
        at += __popc(all);
    }
}

template <class T> static void issue_route(ops *o, const route_args *a)
{
    route_job<T> j = {.logits = mat_in_of<T>(a->logits),
                      .prob = mat_of(a->prob),
                      .weight = mat_of(a->weight),
                      .lse = (float *)a->lse.data,
                      .choice = int_mat_of(a->choice),
                      .n = a->logits.size[0],
                      .experts = (int)a->logits.size[1],
                      .k = (int)a->choice.size[1],
                      .normalize = a->normalize};
    slot_job s = {.choice = j.choice,
                  .slot = int_mat_of(a->slot),
                  .count = (int32_t *)a->count.data,
                  .start = (int32_t *)a->start.data,
                  .pairs = (int)(j.n * j.k),
                  .k = j.k};
    if (j.n)
        route<<<(unsigned)ceil_div(j.n, WARPS), THREADS, 0, stream_of(o)>>>(j);
    number_slots<<<(unsigned)j.experts, SLOT_THREADS, 0, stream_of(o)>>>(s);
    dev_cuda_check(o->dev, "launch");
}

extern "C" void cuda_route(ops *o, const void *args, void *)
{
    const route_args *a = (const route_args *)args;
    BUG_ON(a->slot.size[0] * a->slot.size[1] > INT32_MAX - SLOT_THREADS, "route: %lld tokens",
           (long long)a->slot.size[0]);
    by_type(a->logits.dtype, [&](auto t) { issue_route<decltype(t)>(o, a); });
}

/* ---- backward -----------------------------------------------------------------------------------
 */

template <class T> struct route_bwd_job {
    mat_in<T> dlogits;
    mat dweight, prob, weight;
    const float *lse;
    int_mat choice;
    const int32_t *total;
    int64_t n;
    int experts, k;
    bool normalize;
    const double *scale; /* of the two below, or NULL */
    double balance, z;
};

/* What a factor of a loss is multiplied by; a loss without a factor takes no part. */
template <class T> static __device__ double scaled(const route_bwd_job<T> &j, double factor)
{
    return factor != 0 && j.scale ? factor * *j.scale : factor;
}

/* The gradient of the probability of expert e of token i; `both` and `sum` as in ref_experts.c. */
template <class T>
static __device__ double dprob(const route_bwd_job<T> &j, int64_t i, int e, double both, double sum)
{
    double balance = scaled(j, j.balance), d = balance != 0 ? balance * (double)j.total[e] : 0;
    for (int t = 0; t < j.k; t++)
        if (j.choice.row(i)[t] == e) {
            double dw = (double)j.dweight.row(i)[t];
            d += j.normalize ? (dw - both) / sum : dw;
        }
    return d;
}

template <class T>
static __global__ void __launch_bounds__(THREADS) route_bwd(const route_bwd_job<T> j)
{
    const int lane = (int)threadIdx.x % 32;
    const int64_t i = (int64_t)blockIdx.x * WARPS + threadIdx.x / 32;
    if (i >= j.n)
        return;
    const float *p = j.prob.row(i);
    double sum = 0, both = 0, mean = 0, z = scaled(j, j.z);
    for (int t = lane; t < j.k; t += 32) {
        sum += (double)p[j.choice.row(i)[t]];
        both += (double)j.dweight.row(i)[t] * (double)j.weight.row(i)[t];
    }
    sum = warp_sum(sum);
    both = warp_sum(both);
    for (int e = lane; e < j.experts; e += 32)
        mean += dprob(j, i, e, both, sum) * (double)p[e];
    mean = warp_sum(mean) - (z != 0 ? 2 * z * (double)j.lse[i] : 0);
    for (int e = lane; e < j.experts; e += 32) {
        float v[1] = {(float)((double)p[e] * (dprob(j, i, e, both, sum) - mean))};
        store(j.dlogits.row(i) + e, v);
    }
}

template <class T> static void issue_route_bwd(ops *o, const route_bwd_args *a)
{
    route_bwd_job<T> j = {.dlogits = mat_in_of<T>(a->dlogits),
                          .dweight = mat_of(a->dweight),
                          .prob = mat_of(a->prob),
                          .weight = mat_of(a->weight),
                          .lse = (const float *)a->lse.data,
                          .choice = int_mat_of(a->choice),
                          .total = ints_of(a->total),
                          .n = a->dlogits.size[0],
                          .experts = (int)a->dlogits.size[1],
                          .k = (int)a->choice.size[1],
                          .normalize = a->normalize,
                          .scale = (const double *)a->scale.data,
                          .balance = a->balance,
                          .z = a->z};
    if (j.n)
        route_bwd<<<(unsigned)ceil_div(j.n, WARPS), THREADS, 0, stream_of(o)>>>(j);
    dev_cuda_check(o->dev, "launch");
}

extern "C" void cuda_route_bwd(ops *o, const void *args, void *)
{
    const route_bwd_args *a = (const route_bwd_args *)args;
    by_type(a->dlogits.dtype, [&](auto t) { issue_route_bwd<decltype(t)>(o, a); });
}

/* ---- the losses ---------------------------------------------------------------------------------
 */

struct route_loss_job {
    mat prob;
    const float *lse;
    const int32_t *total;
    int64_t n, range; /* rows of a block */
    int experts;
    double2 *part; /* [PARTS] */
    double *sums, balance, z;
};

static __global__ void __launch_bounds__(THREADS) route_loss_parts(const route_loss_job j)
{
    __shared__ double part[32];
    const int lane = (int)threadIdx.x % 32;
    const int64_t begin = blockIdx.x * j.range;
    const int64_t end = begin + j.range < j.n ? begin + j.range : j.n;
    double balance = 0, z = 0;
    for (int64_t i = begin + threadIdx.x / 32; i < end; i += WARPS) {
        for (int e = lane; e < j.experts; e += 32)
            balance += (double)j.prob.row(i)[e] * (double)j.total[e];
        if (lane == 0)
            z += (double)j.lse[i] * (double)j.lse[i];
    }
    balance = block_sum(balance, part);
    z = block_sum(z, part);
    if (threadIdx.x == 0)
        j.part[blockIdx.x] = make_double2(balance, z);
}

static __global__ void __launch_bounds__(PARTS) route_loss_total(const route_loss_job j)
{
    __shared__ double part[32];
    const double2 v = j.part[threadIdx.x];
    double balance = block_sum(v.x, part), z = block_sum(v.y, part);
    if (threadIdx.x == 0) {
        j.sums[0] += j.balance * balance;
        j.sums[1] += j.z * z;
    }
}

extern "C" size_t cuda_route_loss_scratch(const dev_desc *, const void *)
{
    return PARTS * sizeof(double2);
}

extern "C" void cuda_route_loss(ops *o, const void *args, void *scratch)
{
    const route_loss_args *a = (const route_loss_args *)args;
    route_loss_job j = {.prob = mat_of(a->prob),
                        .lse = (const float *)a->lse.data,
                        .total = ints_of(a->total),
                        .n = a->prob.size[0],
                        .range = ceil_div(a->prob.size[0], PARTS),
                        .experts = (int)a->prob.size[1],
                        .part = (double2 *)scratch,
                        .sums = (double *)a->sums.data,
                        .balance = a->balance,
                        .z = a->z};
    if (!j.n)
        return;
    route_loss_parts<<<PARTS, THREADS, 0, stream_of(o)>>>(j);
    route_loss_total<<<1, PARTS, 0, stream_of(o)>>>(j);
    dev_cuda_check(o->dev, "launch");
}

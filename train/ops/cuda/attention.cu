/* SPDX-License-Identifier: Apache-2.0 */
#include "train/ops/cuda/device.cuh"

extern "C" {
#include "train/ops/cuda/flash.h"
}

/*
 * Attention in any type and with heads of any size, made to be right rather than fast: in fp32, and
 * in types of 16 bits where flash.h has nothing. A warp for each query and head (for each key and
 * key head where keys' gradients are summed), 32 keys (queries) at a time, one a lane.
 */

enum { WARPS = 4, THREADS = 32 * WARPS };

template <class T> struct heads_in {
    T *p;
    int64_t stride;
    __device__ T *at(int64_t row, int64_t head, int dim) const
    {
        return p + row * stride + head * dim;
    }
};

template <class T> static heads_in<T> heads_of(tensor t)
{
    return {(T *)t.data, t.stride};
}

template <class T> struct attention_job {
    heads_in<T> q, k, v, o, dout, dq, dk, dv;
    mat lse;      /* p NULL: none */
    float *delta; /* [H, n] */
    const int32_t *q_start, *k_start, *k_len;
    int64_t n, keys, sequences, window, max_len;
    int heads, groups, dim;
    int head0, all_heads; /* of the dropout's rows */
    float scale, cap;     /* cap 0: none */
    drop_mask drop;
};

/* The keys that a query sees: rows key .. key + n - 1, the first being number `first` of its
 * sequence. */
struct seen {
    int64_t key, first, n;
};

template <class T> static __device__ seen keys_of(const attention_job<T> &j, int64_t row)
{
    int64_t low = 0, high = j.sequences; /* q_start[low] <= row < q_start[high] */
    while (high - low > 1) {
        int64_t middle = (low + high) / 2;
        if (j.q_start[middle] <= row)
            low = middle;
        else
            high = middle;
    }
    int64_t count = j.q_start[low + 1] - j.q_start[low];
    int64_t last = j.k_len[low] - count + (row - j.q_start[low]);
    int64_t first = j.window > 0 && last - j.window + 1 > 0 ? last - j.window + 1 : 0;
    return {j.k_start[low] + first, first, last - first + 1};
}

/* The factor of one weight. */
template <class T>
static __device__ float weight_drop(const attention_job<T> &j, int64_t row, int head, int64_t key)
{
    if (!j.drop.on)
        return 1;
    uint64_t at =
        (drop_row0(j.drop) + (uint64_t)row) * (uint64_t)j.all_heads + (uint64_t)(j.head0 + head);
    return drop_factor(j.drop, at, key, j.max_len);
}

template <class A, class B> static __device__ float dot(const A *x, const B *y, int dim)
{
    float sum = 0;
    for (int d = 0; d < dim; d++)
        sum += (float)x[d] * (float)y[d];
    return sum;
}

template <class T> static __device__ float capped(const attention_job<T> &j, float score)
{
    return j.cap > 0 ? j.cap * tanhf(score / j.cap) : score;
}

/* Which query and head this warp has; false behind the last. */
static __device__ bool turn(int64_t rows, int heads, int64_t *ret_row, int *ret_head)
{
    int64_t i = (int64_t)blockIdx.x * WARPS + threadIdx.x / 32;
    *ret_row = i / heads;
    *ret_head = (int)(i % heads);
    return i < rows * heads;
}

template <class T>
static __global__ void __launch_bounds__(THREADS) attention(const attention_job<T> j)
{
    extern __shared__ float shared[];
    const int lane = (int)threadIdx.x % 32;
    float *q = shared + threadIdx.x / 32 * 2 * j.dim, *sum = q + j.dim;
    int64_t row;
    int head;
    if (!turn(j.n, j.heads, &row, &head))
        return;
    const int group = head / (j.heads / j.groups);
    const seen s = keys_of(j, row);
    for (int d = lane; d < j.dim; d += 32) {
        q[d] = (float)j.q.at(row, head, j.dim)[d];
        sum[d] = 0;
    }
    __syncwarp();
    float max = -INFINITY, total = 0;
    for (int64_t base = 0; base < s.n; base += 32) {
        int64_t i = base + lane;
        float score = -INFINITY;
        if (i < s.n)
            score = capped(j, j.scale * dot(q, j.k.at(s.key + i, group, j.dim), j.dim));
        float new_max = fmaxf(max, warp_max(score)), old = expf(max - new_max);
        float p = i < s.n ? expf(score - new_max) : 0;
        total = total * old + warp_sum(p);
        max = new_max;
        p *= weight_drop(j, row, head, s.first + i);
        for (int d = lane; d < j.dim; d += 32)
            sum[d] *= old;
        for (int t = 0; t < 32 && base + t < s.n; t++) {
            float weight = __shfl_sync(~0u, p, t);
            const T *v = j.v.at(s.key + base + t, group, j.dim);
            for (int d = lane; d < j.dim; d += 32)
                sum[d] += weight * (float)v[d];
        }
    }
    for (int d = lane; d < j.dim; d += 32)
        j.o.at(row, head, j.dim)[d] = (T)(sum[d] / total);
    if (lane == 0 && j.lse.p)
        j.lse.row(head)[row] = max + logf(total);
}

/* ---- backward
 * ------------------------------------------------------------------------------------ */

/*
 * With p_j = exp(score_j - lse), w_j = drop_j p_j and dp_j = drop_j (dout v_j):
 *     dv_j += w_j dout, ds_j = scale p_j (dp_j - delta), dq += ds_j k_j, dk_j += ds_j q
 * with ds_j times the slope of the cap where scores are capped. delta, the sum of p_j dp_j, is the
 * product of dout and o.
 */
struct slope {
    float weight, ds;
};

template <class T, class A, class B>
static __device__ slope slope_of(const attention_job<T> &j, int64_t row, int head, int64_t number,
                                 const A *q, const A *dout, const B *k, const B *v)
{
    float lse = j.lse.row(head)[row], delta = j.delta[head * j.n + row];
    float score = capped(j, j.scale * dot(q, k, j.dim)), t = j.cap > 0 ? score / j.cap : 0;
    float p = expf(score - lse), drop = weight_drop(j, row, head, number);
    return {p * drop, j.scale * (1 - t * t) * p * (drop * dot(dout, v, j.dim) - delta)};
}

template <class T>
static __global__ void __launch_bounds__(THREADS) attention_delta(const attention_job<T> j)
{
    const int lane = (int)threadIdx.x % 32;
    int64_t row;
    int head;
    if (!turn(j.n, j.heads, &row, &head))
        return;
    float sum = 0;
    for (int d = lane; d < j.dim; d += 32)
        sum += (float)j.dout.at(row, head, j.dim)[d] * (float)j.o.at(row, head, j.dim)[d];
    sum = warp_sum(sum);
    if (lane == 0)
        j.delta[head * j.n + row] = sum;
}

template <class T>
static __global__ void __launch_bounds__(THREADS) attention_dq(const attention_job<T> j)
{
    extern __shared__ float shared[];
    const int lane = (int)threadIdx.x % 32;
    float *q = shared + threadIdx.x / 32 * 3 * j.dim, *dout = q + j.dim, *sum = dout + j.dim;
    int64_t row;
    int head;
    if (!turn(j.n, j.heads, &row, &head))
        return;
    const int group = head / (j.heads / j.groups);
    const seen s = keys_of(j, row);
    for (int d = lane; d < j.dim; d += 32) {
        q[d] = (float)j.q.at(row, head, j.dim)[d];
        dout[d] = (float)j.dout.at(row, head, j.dim)[d];
        sum[d] = 0;
    }
    __syncwarp();
    for (int64_t base = 0; base < s.n; base += 32) {
        int64_t i = base + lane;
        slope x = {0, 0};
        if (i < s.n)
            x = slope_of(j, row, head, s.first + i, q, dout, j.k.at(s.key + i, group, j.dim),
                         j.v.at(s.key + i, group, j.dim));
        for (int t = 0; t < 32 && base + t < s.n; t++) {
            float ds = __shfl_sync(~0u, x.ds, t);
            const T *k = j.k.at(s.key + base + t, group, j.dim);
            for (int d = lane; d < j.dim; d += 32)
                sum[d] += ds * (float)k[d];
        }
    }
    for (int d = lane; d < j.dim; d += 32)
        j.dq.at(row, head, j.dim)[d] = (T)sum[d];
}

/* The sequence that a row of keys belongs to, or -1. For a whole warp. */
template <class T> static __device__ int64_t sequence_of(const attention_job<T> &j, int64_t row)
{
    for (int64_t base = 0; base < j.sequences; base += 32) {
        int64_t s = base + threadIdx.x % 32;
        bool mine = s < j.sequences && j.k_start[s] <= row && row < j.k_start[s] + j.k_len[s];
        unsigned found = __ballot_sync(~0u, mine);
        if (found)
            return base + __ffs((int)found) - 1;
    }
    return -1;
}

/* Queries of sequence s that see key number `number`: rows *ret_begin .. *ret_end - 1. */
template <class T>
static __device__ void queries_of(const attention_job<T> &j, int64_t s, int64_t number,
                                  int64_t *ret_begin, int64_t *ret_end)
{
    int64_t start = j.q_start[s], count = j.q_start[s + 1] - start;
    int64_t begin = number - (j.k_len[s] - count), end = count;
    if (j.window > 0 && begin + j.window < end)
        end = begin + j.window;
    *ret_begin = start + (begin > 0 ? begin : 0);
    *ret_end = start + (end > 0 ? end : 0);
}

template <class T>
static __global__ void __launch_bounds__(THREADS) attention_dkv(const attention_job<T> j)
{
    extern __shared__ float shared[];
    const int lane = (int)threadIdx.x % 32, each = j.heads / j.groups;
    float *k = shared + threadIdx.x / 32 * 4 * j.dim, *v = k + j.dim, *dk = v + j.dim,
          *dv = dk + j.dim;
    int64_t key, begin = 0, end = 0;
    int group;
    if (!turn(j.keys, j.groups, &key, &group))
        return;
    for (int d = lane; d < j.dim; d += 32) {
        k[d] = (float)j.k.at(key, group, j.dim)[d];
        v[d] = (float)j.v.at(key, group, j.dim)[d];
        dk[d] = dv[d] = 0;
    }
    __syncwarp();
    int64_t s = sequence_of(j, key), number = s < 0 ? 0 : key - j.k_start[s];
    if (s >= 0)
        queries_of(j, s, number, &begin, &end);
    for (int head = group * each; head < (group + 1) * each; head++) {
        for (int64_t base = begin; base < end; base += 32) {
            int64_t row = base + lane;
            slope x = {0, 0};
            if (row < end)
                x = slope_of(j, row, head, number, j.q.at(row, head, j.dim),
                             j.dout.at(row, head, j.dim), k, v);
            for (int t = 0; t < 32 && base + t < end; t++) {
                float ds = __shfl_sync(~0u, x.ds, t), weight = __shfl_sync(~0u, x.weight, t);
                const T *q = j.q.at(base + t, head, j.dim);
                const T *dout = j.dout.at(base + t, head, j.dim);
                for (int d = lane; d < j.dim; d += 32) {
                    dk[d] += ds * (float)q[d];
                    dv[d] += weight * (float)dout[d];
                }
            }
        }
    }
    for (int d = lane; d < j.dim; d += 32) {
        j.dk.at(key, group, j.dim)[d] = (T)dk[d];
        j.dv.at(key, group, j.dim)[d] = (T)dv[d];
    }
}

/* ---- entries
 * ------------------------------------------------------------------------------------- */

template <class T> static attention_job<T> job_of(const attention_args *a)
{
    attention_job<T> j = {};
    j.q = heads_of<T>(a->q);
    j.k = heads_of<T>(a->k);
    j.v = heads_of<T>(a->v);
    j.o = heads_of<T>(a->o);
    j.lse = mat_of(a->lse);
    j.q_start = ints_of(a->q_start);
    j.k_start = ints_of(a->k_start);
    j.k_len = ints_of(a->k_len);
    j.n = a->q.size[0];
    j.keys = a->k.size[0];
    j.sequences = a->k_len.size[0];
    j.window = a->window;
    j.max_len = a->max_len;
    j.heads = (int)a->q.size[1];
    j.head0 = (int)a->head0;
    j.all_heads = a->all_heads ? (int)a->all_heads : j.heads;
    j.groups = (int)a->k.size[1];
    j.dim = (int)a->q.size[2];
    j.scale = a->scale;
    j.cap = a->cap;
    j.drop = mask_of(a->drop);
    return j;
}

/* Heads of 768 numbers and more would need more shared memory than a block has by itself. */
static size_t shared_for(int dim, int rows)
{
    return (size_t)WARPS * (size_t)rows * (size_t)dim * sizeof(float);
}

static unsigned blocks_for(int64_t rows, int heads)
{
    return (unsigned)ceil_div(rows * heads, WARPS);
}

template <class T> static void forward(ops *o, const attention_args *a)
{
    attention_job<T> j = job_of<T>(a);
    if (j.n)
        attention<<<blocks_for(j.n, j.heads), THREADS, shared_for(j.dim, 2), stream_of(o)>>>(j);
    dev_cuda_check(o->dev, "launch");
}

extern "C" void cuda_attention(ops *o, const void *args, void *)
{
    const attention_args *a = (const attention_args *)args;
    by_type(a->q.dtype, [&](auto t) { forward<decltype(t)>(o, a); });
}

extern "C" size_t cuda_attention_bwd_scratch(const dev_desc *, const void *args)
{
    return flash_bwd_scratch((const attention_bwd_args *)args); /* either way a row's delta */
}

template <class T> static void backward(ops *o, const attention_bwd_args *b, void *scratch)
{
    attention_job<T> j = job_of<T>(&b->fwd);
    cudaStream_t stream = stream_of(o);
    j.dout = heads_of<T>(b->dout);
    j.dq = heads_of<T>(b->dq);
    j.dk = heads_of<T>(b->dk);
    j.dv = heads_of<T>(b->dv);
    j.delta = (float *)scratch;
    if (j.n) {
        unsigned blocks = blocks_for(j.n, j.heads);
        attention_delta<<<blocks, THREADS, 0, stream>>>(j);
        attention_dq<<<blocks, THREADS, shared_for(j.dim, 3), stream>>>(j);
    }
    if (j.keys)
        attention_dkv<<<blocks_for(j.keys, j.groups), THREADS, shared_for(j.dim, 4), stream>>>(j);
    dev_cuda_check(o->dev, "launch");
}

extern "C" void cuda_attention_bwd(ops *o, const void *args, void *scratch)
{
    const attention_bwd_args *b = (const attention_bwd_args *)args;
    by_type(b->fwd.q.dtype, [&](auto t) { backward<decltype(t)>(o, b, scratch); });
}

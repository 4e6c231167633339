/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_OPS_CUDA_FLASH_CUH
#define TRAIN_OPS_CUDA_FLASH_CUH

/* What the forward and the backward kernels of flash attention share. */

#include "train/ops/cuda/tensor_core.cuh"

extern "C" {
#include "train/ops/cuda/flash.h"
}

template <class T> struct rows_of_heads {
    T *p;
    int64_t stride;
    __device__ T *at(int64_t row, int64_t head, int dim) const
    {
        return p + row * stride + head * dim;
    }
};

template <class T> struct flash_job {
    rows_of_heads<T> q, k, v, o, dout, dq, dk, dv;
    float *lse; /* [H, n], rows lse_stride apart; or NULL */
    int64_t lse_stride;
    float *delta;   /* [H, n] */
    float delta_by; /* what it is times */
    /* Which weights the dropout keeps, from the kernel of dk and dv for that of dq (kept_shape); or
     * NULL: both draw. Only where rows are even. */
    uint32_t *kept;
    const int32_t *q_start, *k_start, *k_len;
    int64_t n, keys, sequences, window, max_len;
    int heads, groups, dim;
    int head0, all_heads; /* of the dropout's rows */
    float scale, cap;     /* cap 0: none */
    drop_mask drop;
};

/* The kernels for compute capability 9.0, where the build and the device have them; they know no
 * caps. */
void flash_wgmma(dev *d, const attention_args *a);
/* dq, dk and dv; delta is there. */
void flash_wgmma_bwd(dev *d, const flash_job<__nv_bfloat16> &j);
void flash_wgmma_bwd(dev *d, const flash_job<__half> &j);

template <class T> static rows_of_heads<T> heads_of(tensor t)
{
    return {(T *)t.data, t.stride};
}

template <class T> static flash_job<T> flash_job_of(const attention_args *a)
{
    flash_job<T> j = {};
    j.q = heads_of<T>(a->q);
    j.k = heads_of<T>(a->k);
    j.v = heads_of<T>(a->v);
    j.o = heads_of<T>(a->o);
    j.lse = (float *)a->lse.data;
    j.lse_stride = a->lse.stride;
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

/* One sequence: query i of it sees keys first(i) .. last(i). */
struct span {
    int64_t q_start, count, k_start, k_len, window;
    __device__ int64_t last(int64_t i) const
    {
        return k_len - count + i;
    }
    __device__ int64_t first(int64_t i) const
    {
        int64_t f = window > 0 ? last(i) - window + 1 : 0;
        return f > 0 ? f : 0;
    }
};

/*
 * Which pairs of a tile of queries from `query` on and a tile of keys from `key` on see each other,
 * in numbers within the tiles: low < k - i <= high, and i < left.
 */
struct sight {
    int low, high, left;
    __device__ bool sees(int i, int k) const
    {
        return k - i <= high && k - i > low && i < left;
    }
    /* All queries of first_i .. last_i see all keys of first_k .. last_k. */
    __device__ bool all(int first_i, int last_i, int first_k, int last_k) const
    {
        return last_k - first_i <= high && first_k - last_i > low && last_i < left;
    }
    /* No query of first_i .. last_i sees any key of first_k .. last_k. */
    __device__ bool none(int first_i, int last_i, int first_k, int last_k) const
    {
        return first_k - last_i > high || last_k - first_i <= low || first_i >= left;
    }
};

enum { FAR = 1 << 20 }; /* farther than any two rows of two tiles */

static __device__ inline int clamp(int64_t x)
{
    return x > FAR ? FAR : x < -FAR ? -FAR : (int)x;
}

static __device__ inline sight sight_of(const span &s, int64_t query, int64_t key)
{
    int64_t high = s.last(query) - key;
    return {s.window > 0 ? clamp(high - s.window) : -FAR, clamp(high), clamp(s.count - query)};
}

/*
 * Tile number `tile` of all sequences' tiles of `rows` queries or keys: its sequence, and its
 * number there in *ret_tile. False past the last one. For whole warps.
 */
template <class T>
static __device__ bool tile_of(const flash_job<T> &j, int64_t tile, int rows, bool of_keys,
                               span *ret, int64_t *ret_tile)
{
    const int lane = (int)threadIdx.x % 32;
    for (int64_t base = 0; base < j.sequences; base += 32) {
        int64_t s = base + lane, length = 0;
        if (s < j.sequences)
            length = of_keys ? j.k_len[s] : j.q_start[s + 1] - j.q_start[s];
        int64_t own = (length + rows - 1) / rows, sum = own;
        for (int k = 1; k < 32; k *= 2) {
            int64_t before = __shfl_up_sync(~0u, sum, k);
            sum += lane >= k ? before : 0;
        }
        unsigned found = __ballot_sync(~0u, tile < sum);
        if (found) {
            int at = __ffs((int)found) - 1;
            s = base + at;
            *ret_tile = tile - __shfl_sync(~0u, sum - own, at);
            *ret = {j.q_start[s], j.q_start[s + 1] - j.q_start[s], j.k_start[s], j.k_len[s],
                    j.window};
            return true;
        }
        tile -= __shfl_sync(~0u, sum, 31);
    }
    return false;
}

/* At most so many tiles have n rows in `sequences` sequences. */
static inline unsigned tiles_for(int64_t n, int64_t sequences)
{
    return (unsigned)(n / TILE + sequences);
}

template <class T>
static __device__ float weight_drop(const flash_job<T> &j, int64_t row, int head, int64_t key)
{
    uint64_t at =
        (drop_row0(j.drop) + (uint64_t)row) * (uint64_t)j.all_heads + (uint64_t)(j.head0 + head);
    return drop_factor(j.drop, at, key, j.max_len);
}

/* Products of queries and keys become capped scores, which are not to be times j.scale any more. */
template <class T> static __device__ void cap_scores(const flash_job<T> &j, float (&score)[8][4])
{
    const float by = j.scale / j.cap;
#pragma unroll
    for (int n = 0; n < 8; n++)
#pragma unroll
        for (int e = 0; e < 4; e++)
            score[n][e] = j.cap * tanhf(score[n][e] * by);
}

/* The slope of the cap where it gives `score`. */
template <class T> static __device__ float cap_slope(const flash_job<T> &j, float score)
{
    float t = score / j.cap;
    return 1 - t * t;
}

/* A sum or maximum over the four lanes that share a row. */
static __device__ inline float row_sum(float v)
{
    v += __shfl_xor_sync(~0u, v, 1);
    return v + __shfl_xor_sync(~0u, v, 2);
}

static __device__ inline float row_max(float v)
{
    v = fmaxf(v, __shfl_xor_sync(~0u, v, 1));
    return fmaxf(v, __shfl_xor_sync(~0u, v, 2));
}

/* Rows of dk and dv that are no sequence's become zeros; a block looks after ZERO_ROWS of them. */
enum { ZERO_ROWS = 128 };

template <class T>
static __global__ void __launch_bounds__(TILE_THREADS) flash_zero(const flash_job<T> j)
{
    __shared__ bool has_keys[ZERO_ROWS];
    const int64_t first = (int64_t)blockIdx.x * ZERO_ROWS;
    for (int r = (int)threadIdx.x; r < ZERO_ROWS; r += TILE_THREADS)
        has_keys[r] = false;
    __syncthreads();
    for (int64_t s = threadIdx.x; s < j.sequences; s += TILE_THREADS) {
        int64_t begin = j.k_start[s] - first, end = begin + j.k_len[s];
        for (int64_t r = begin > 0 ? begin : 0; r < end && r < ZERO_ROWS; r++)
            has_keys[r] = true;
    }
    __syncthreads();
    for (int r = 0; r < ZERO_ROWS && first + r < j.keys; r++)
        for (int c = (int)threadIdx.x; !has_keys[r] && c < j.groups * j.dim; c += TILE_THREADS) {
            j.dk.at(first + r, 0, j.dim)[c] = T(0.0f);
            j.dv.at(first + r, 0, j.dim)[c] = T(0.0f);
        }
}

/* Writes 16 rows of a product, those below `rows` and columns below dim, times factor[2]. */
template <class T, int D, rows_order ORDER = IN_ORDER>
static __device__ void write_rows(const float (&x)[D / 8][4], const float (&factor)[2],
                                  const rows_of_heads<T> &to, int64_t row0, int head, int dim,
                                  int first, int rows)
{
    const int lane = (int)threadIdx.x % 32;
#pragma unroll
    for (int half = 0; half < 2; half++) {
        int row = first + row_at<ORDER>(lane / 4 + half * 8);
        if (row >= rows)
            continue;
        T *p = to.at(row0 + row, head, dim) + lane % 4 * 2;
#pragma unroll
        for (int n = 0; n < D / 8; n++)
            if (n * 8 < dim)
                *(uint32_t *)(p + n * 8) =
                    pack(x[n][2 * half] * factor[half], x[n][2 * half + 1] * factor[half], T());
    }
}

#endif

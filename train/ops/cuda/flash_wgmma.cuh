/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_OPS_CUDA_FLASH_WGMMA_CUH
#define TRAIN_OPS_CUDA_FLASH_WGMMA_CUH

/* What flash attention's kernels for compute capability 9.0 share: the order of their blocks. */

#include "train/ops/cuda/flash.cuh"
#include "train/ops/cuda/wgmma.cuh"

/*
 * The grid is one-dimensional, heads fastest, and begins with the tiles that have the most work:
 * the last queries of a causal sequence, or the first keys. Where sequences are of similar lengths
 * (`most` tiles each at most, which is few tiles too many) the heaviest of all sequences come
 * first; else most is 0 and tiles are counted through as tile_of does.
 */
struct tile_grid {
    int64_t most, tiles;
};

static inline tile_grid grid_of(int64_t n, int64_t sequences, int64_t max_len, int rows)
{
    int64_t tiles = n / rows + sequences, most = ceil_div(max_len, rows);
    if (most * sequences <= 2 * tiles)
        return {most, most * sequences};
    return {0, tiles};
}

#define LOG2E 1.44269504088896340736f

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

/* As struct span, in few registers. A window that hides nothing is 0. */
struct near_span {
    int64_t q_start, k_start;
    int count, k_len, window;
    __device__ int last(int i) const
    {
        return k_len - count + i;
    }
    __device__ int first(int i) const
    {
        return window && last(i) >= window ? last(i) - window + 1 : 0;
    }
    __device__ sight at(int query, int key) const
    {
        int high = last(query) - key;
        return {window ? high - window : -FAR, high, count - query};
    }
};

template <class T>
static __device__ bool block_tile(const flash_job<T> &j, tile_grid g, int heads, int rows,
                                  bool of_keys, near_span *ret, int *ret_tile)
{
    int64_t at = blockIdx.x / (unsigned)heads, tile;
    span s;
    if (g.most) {
        int64_t i = at % j.sequences;
        tile = of_keys ? at / j.sequences : g.most - 1 - at / j.sequences;
        s = {j.q_start[i], j.q_start[i + 1] - j.q_start[i], j.k_start[i], j.k_len[i], j.window};
        if (tile * rows >= (of_keys ? s.k_len : s.count))
            return false;
    } else if (!tile_of(j, of_keys ? at : g.tiles - 1 - at, rows, of_keys, &s, &tile)) {
        return false;
    }
    *ret_tile = (int)tile;
    *ret = {s.q_start, s.k_start, (int)s.count, (int)s.k_len,
            s.window < s.k_len ? (int)s.window : 0};
    return true;
}

/* The factors of keys `key` and key + 1. */
template <class T>
static __device__ void drop_pair(const flash_job<T> &j, int64_t row, int head, int64_t key,
                                 float &first, float &second)
{
    first = weight_drop(j, row, head, key);
    second = weight_drop(j, row, head, key + 1);
}

/* Copies of this thread have arrived; after it, those of all threads, and wgmma may read them. */
template <int LEFT> static __device__ void copies_done()
{
    copy_wait<LEFT>();
    copies_visible();
    __syncthreads();
}

#endif
#endif

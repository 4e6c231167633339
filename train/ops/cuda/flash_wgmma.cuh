/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_OPS_CUDA_FLASH_WGMMA_CUH
#define TRAIN_OPS_CUDA_FLASH_WGMMA_CUH

/* What flash attention's kernels for compute capability 9.0 share: the order of their blocks. */

#include "train/ops/cuda/flash.cuh"
#include "train/ops/cuda/wgmma.cuh"

/*
 * The grid is one-dimensional. Where sequences are of similar lengths (`most` tiles each at most,
 * which is few tiles too many) it goes through `together` heads of sequences at a time, whose rows
 * stay in the L2 cache meanwhile. Of these the tiles with the most work come first: the last
 * queries of a causal sequence, or the first keys. Else most is 0, and tiles are counted through as
 * tile_of does, heads fastest.
 */
struct tile_grid {
    unsigned most, tiles, together;
};

static const int64_t cached_bytes = 12 << 20; /* of keys and values, or queries and gradients */

static inline tile_grid grid_of(int64_t n, int64_t sequences, int64_t max_len, int rows, int dim)
{
    int64_t tiles = n / rows + sequences, most = ceil_div(max_len, rows);
    int64_t together = cached_bytes / (4 * max_len * dim);
    if (most * sequences <= 2 * tiles)
        return {(unsigned)most, (unsigned)(most * sequences),
                (unsigned)(together < 1 ? 1 : together)};
    return {0, (unsigned)tiles, 1};
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

/* What all threads of a warp have alike, said so to the compiler, which has registers of the warp
 * for it. */
static __device__ inline int alike(int x)
{
    return __shfl_sync(~0u, x, 0);
}

static __device__ inline int64_t alike(int64_t x)
{
    return (int64_t)((uint64_t)(uint32_t)alike((int)x) | (uint64_t)(uint32_t)alike((int)(x >> 32))
                                                             << 32);
}

/* A block's tile of rows of a head, of queries or of keys. */
struct block_part {
    near_span s;
    int tile, head;
};

/* `heads` of each sequence: of queries, or those of keys. False: the block has none. */
template <class T>
static __device__ bool block_tile(const flash_job<T> &j, tile_grid g, int heads, int rows,
                                  bool of_keys, block_part *ret)
{
    int64_t tile;
    int head;
    span s;
    if (g.most) {
        const unsigned all = (unsigned)j.sequences * (unsigned)heads;
        const unsigned first = blockIdx.x / (g.together * g.most) * g.together;
        const unsigned in = blockIdx.x % (g.together * g.most);
        const unsigned n = all - first < g.together ? all - first : g.together;
        const unsigned i = (first + in % n) / (unsigned)heads;
        head = (int)((first + in % n) % (unsigned)heads);
        tile = of_keys ? in / n : g.most - 1 - in / n;
        s = {j.q_start[i], j.q_start[i + 1] - j.q_start[i], j.k_start[i], j.k_len[i], j.window};
        if (tile * rows >= (of_keys ? s.k_len : s.count))
            return false;
    } else {
        const int64_t at = blockIdx.x / (unsigned)heads;
        head = (int)(blockIdx.x % (unsigned)heads);
        if (!tile_of(j, of_keys ? at : g.tiles - 1 - at, rows, of_keys, &s, &tile))
            return false;
    }
    ret->tile = alike((int)tile);
    ret->head = alike(head);
    ret->s = {alike(s.q_start), alike(s.k_start), alike((int)s.count), alike((int)s.k_len),
              alike(s.window < s.k_len ? (int)s.window : 0)};
    return true;
}

/*
 * Which numbers of a product of queries (rows) and keys (KEYS_ACROSS) or the other way round
 * (KEYS_DOWN) a thread's queries see, from one comparison each of what only the number's place
 * decides. Without a window `from` is below all places.
 */
struct across_sight { /* place_of(n, e) of number 2 half + e of score[n] */
    int from[2], to[2];
    __device__ across_sight(sight s, int mine)
    {
        const int lane = (int)threadIdx.x % 32;
        for (int half = 0; half < 2; half++) {
            const int i = mine + lane / 4 + half * 8, by = i - lane % 4 * 8;
            from[half] = s.low + by;
            to[half] = i < s.left ? s.high + by : -FAR;
        }
    }
    static __device__ constexpr int place_of(int n, int e)
    {
        return row_at<KEYS_ACROSS>(n * 8 + e);
    }
    __device__ bool sees(int n, int half, int e) const
    {
        return place_of(n, e) <= to[half] && place_of(n, e) > from[half];
    }
};

struct down_sight { /* the query n * 8 + e % 2 less 4 if e is at least 2: number e of score[n] */
    int from, to, left;
    __device__ down_sight(sight s, int mine)
    {
        const int lane = (int)threadIdx.x % 32, key = mine + row_at<KEYS_DOWN>(lane / 4);
        from = key - lane % 4 * 2 - s.high;
        to = key - lane % 4 * 2 - s.low;
        left = s.left - lane % 4 * 2;
    }
    __device__ bool sees(int n, int e) const
    {
        const int query = n * 8 + e % 2, place = query - e / 2 * 4;
        return place >= from && place < to && query < left;
    }
};

/* ---- dropout -----------------------------------------------------------------------------------
 */

/* The first block of the weights of query row `row` (drop_random). */
template <class T>
static __device__ uint64_t drop_line(const flash_job<T> &j, int64_t row, int head)
{
    const uint64_t at =
        (drop_row0(j.drop) + (uint64_t)row) * (uint64_t)j.all_heads + (uint64_t)(j.head0 + head);
    return drop_row_block(at, j.max_len);
}

/* All bits of the two halves of a word from their highest. */
static __device__ inline uint32_t spread_two(uint32_t x)
{
    uint32_t ret;
    asm("prmt.b32 %0, %1, %1, 0xbb99;" : "=r"(ret) : "r"(x));
    return ret;
}

/* Which weights are kept of KEYS keys of a thread's two rows, which are queries (KEYS_ACROSS). */
template <int KEYS> struct kept_across {
    /* Of 32 keys a block: its words, or in bits 12 + w and 28 + w of one what they say. */
    enum { WORDS = KEYS > 64 ? 1 : 4 };
    uint64_t line[2]; /* of the two rows, the thread's own block */
    uint64_t seed;
    uint32_t sub, addend, bits[KEYS / 32][2][WORDS];

    template <class T> __device__ void begin(const flash_job<T> &j, int64_t row, int head)
    {
        const int lane = (int)threadIdx.x % 32;
        seed = (uint64_t)alike((int64_t)drop_seed(j.drop));
        sub = j.drop.sub;
        addend = drop_addend(j.drop);
        for (int half = 0; half < 2; half++)
            line[half] = drop_line(j, row + lane / 4 + half * 8, head) + (unsigned)(lane % 4);
    }
    /* Of the keys from `key` on, a multiple of 32. */
    __device__ void draw(int key)
    {
#pragma unroll
        for (int k = 0; k < KEYS / 32; k++) {
            const unsigned block = (unsigned)(key / DROP_BLOCK + k * 4);
            uint4 r[2] = {drop_counter(sub, line[0] + block), drop_counter(sub, line[1] + block)};
            drop_random(seed, r);
#pragma unroll
            for (int half = 0; half < 2; half++)
                keep(bits[k][half], r[half]);
        }
    }
    __device__ void keep(uint32_t (&to)[WORDS], const uint4 &r) const
    {
        const uint32_t word[4] = {drop_kept(r.x, addend), drop_kept(r.y, addend),
                                  drop_kept(r.z, addend), drop_kept(r.w, addend)};
#pragma unroll
        for (int w = 0; w < 4; w++)
            if (WORDS == 4)
                to[w % WORDS] = word[w];
            else
                to[0] = (w ? to[0] >> 1 : 0) | (word[w] & 0x80008000u);
#pragma unroll
        for (int w = 0; w < WORDS; w++)
            asm volatile("" : "+r"(to[w])); /* before the products are waited for */
    }
    /* Bits 15 and 31: numbers 2 half and 2 half + 1 of score[n]. */
    __device__ uint32_t two(int n, int half) const
    {
        return WORDS == 4 ? bits[n / 4][half][n % WORDS] : bits[n / 4][half][0] << (3 - n % 4);
    }
    __device__ bool kept(int n, int half, int e) const
    {
        return WORDS == 4 ? bits[n / 4][half][n % WORDS] & (e ? 0x80000000u : 0x8000u)
                          : bits[n / 4][half][0] & 1u << ((e ? 28 : 12) + n % 4);
    }
};

/* Weights as the left operand of a product become 0 where they are not kept. */
template <int KEYS>
static __device__ void drop_narrow(uint32_t (&p)[KEYS / 16][4], const kept_across<KEYS> &kept)
{
#pragma unroll
    for (int k = 0; k < KEYS / 16; k++)
#pragma unroll
        for (int i = 0; i < 4; i++)
            p[k][i] &= spread_two(kept.two(2 * k + i / 2, i % 2));
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

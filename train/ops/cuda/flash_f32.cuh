/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_OPS_CUDA_FLASH_F32_CUH
#define TRAIN_OPS_CUDA_FLASH_F32_CUH

/*
 * What the kernels of attention in F32 share. Tiles are rows of a head in shared memory, D numbers
 * and four more against bank conflicts: the stride is 4 modulo 32 words, so eight rows of 16 bytes,
 * or rows 2t at columns g (t below 4, g below 8), are in 32 different banks.
 */

#include "train/ops/cuda/flash.cuh"

extern "C" {
#include "train/ops/cuda/flash_f32.h"
}

static const float log2_of_e = 1.44269504088896340736f;

/* A backward's job: `turn` counts, at the row of a tile's first query [H, n], who has added to dq;
 * `ticket` is the next block's number. */
struct f32_job : flash_job<float> {
    int *turn, *ticket;
};

void flash_tf32(dev *d, const flash_job<float> &j);
void flash_tf32_bwd(dev *d, const f32_job &j);

/* Shared memory that a block can have, by compute capability; and what one has at least for heads
 * of `dim` numbers. */
int flash_f32_most_bytes(const dev_desc *d);
int flash_f32_bwd_bytes(int dim);
int flash_tf32_bytes(int dim);
int flash_tf32_bwd_bytes(int dim);

static inline cudaStream_t compute_stream(dev *d)
{
    return (cudaStream_t)dev_cuda_stream(d, STREAM_COMPUTE);
}

/* Calls f with the width of the tiles that heads of `dim` numbers take: f(width<64>()). */
template <int D> struct width {
    static constexpr int value = D;
};

template <class F> static void by_width(int dim, F f)
{
    if (dim <= 32)
        f(width<32>());
    else if (dim <= 64)
        f(width<64>());
    else if (dim <= 96)
        f(width<96>());
    else if (dim <= 128)
        f(width<128>());
    else if (dim <= 192)
        f(width<192>());
    else
        f(width<256>());
}

template <int D> static __host__ __device__ constexpr int f32_stride()
{
    return D + 4;
}

static __device__ inline void copy_piece(float *to, const float *from, bool there)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(to)),
                 "l"(from), "r"(there ? 16 : 0)
                 : "memory");
}

/* Begins to copy ROWS rows of `dim` numbers; those from `rows` on, and columns from `dim` on,
 * become zeros. */
template <int D, int ROWS, int THREADS>
static __device__ void load_rows(float *tile, const float *from, int64_t stride, int rows, int dim)
{
    const int pieces = D / 4;
#pragma unroll 4
    for (int t = (int)threadIdx.x; t < ROWS * pieces; t += THREADS) {
        int row = t / pieces, column = t % pieces * 4;
        bool there = row < rows && column < dim;
        copy_piece(tile + row * f32_stride<D>() + column,
                   there ? from + row * stride + column : from, there);
    }
}

/* Keys that queries i0 .. i0 + rows - 1 of s see lie in these tiles of BN: *ret_begin .. *ret_end -
 * 1. */
template <int BN>
static __device__ void key_tiles(const span &s, int64_t i0, int rows, int64_t *ret_begin,
                                 int64_t *ret_end)
{
    *ret_begin = s.first(i0) / BN;
    *ret_end = s.last(i0 + rows - 1) / BN + 1;
}

/* At most so many tiles of `rows` have n rows in `sequences` sequences. */
static inline unsigned f32_tiles(int64_t n, int64_t sequences, int rows)
{
    return (unsigned)(n / rows + sequences);
}

static __device__ inline float exp2_of(float x)
{
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

/*
 * Which of this thread's weights are kept, one a bit, element e being that of query place(e).x and
 * key place(e).y of a tile that begins at `query` and `key`. In a loop that is not unrolled: the
 * random numbers are many instructions.
 */
template <int N, class F>
static __device__ uint64_t kept_weights(const flash_job<float> &j, const span &s, int64_t query,
                                        int64_t key, int head, F place)
{
    static_assert(N <= 64, "a bit each");
    uint64_t kept = 0;
#pragma unroll 1
    for (int e = 0; e < N; e++) {
        int2 at = place(e);
        if (weight_drop(j, s.q_start + query + at.x, head, key + at.y) > 0)
            kept |= (uint64_t)1 << e;
    }
    return kept;
}

/* ---- the backward's blocks
 * -------------------------------------------------------------------------- */

/* What a block of the backward has: keys k0 .. k0 + rows - 1 of a sequence, and the queries that
 * see them, from .. to - 1, in tiles that begin at multiples of BM. */
struct key_block {
    span s;
    int64_t tile, k0, row0, from, to;
    int rows, group, tiles;
};

/*
 * The block's turn: numbers are given out as blocks begin, the last tile of keys first, so what a
 * block waits for is done by blocks that have begun before. False: there is nothing left to do.
 */
template <int BM, int BN> static __device__ bool next_block(const f32_job &j, key_block *ret)
{
    __shared__ int ticket;
    if (threadIdx.x == 0)
        ticket = atomicAdd(j.ticket, 1);
    __syncthreads();
    const int64_t last = (int64_t)gridDim.x / j.groups - 1;
    ret->group = ticket % j.groups;
    if (!tile_of(j, last - ticket / j.groups, BN, true, &ret->s, &ret->tile))
        return false;
    const span &s = ret->s;
    ret->k0 = ret->tile * BN;
    ret->row0 = s.k_start + ret->k0;
    ret->rows = (int)(s.k_len - ret->k0 < BN ? s.k_len - ret->k0 : BN);
    int64_t from = ret->k0 - (s.k_len - s.count), to = s.count;
    if (s.window > 0 && from + ret->rows - 1 + s.window < to)
        to = from + ret->rows - 1 + s.window;
    from = from > 0 ? from / BM * BM : 0;
    ret->from = from;
    ret->to = to;
    ret->tiles = to > from ? (int)((to - from + BM - 1) / BM) : 0;
    return true;
}

static __device__ inline int turn_read(const int *p)
{
    int v;
    asm volatile("ld.acquire.gpu.global.s32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
    return v;
}

static __device__ inline void turn_write(int *p, int v)
{
    asm volatile("st.release.gpu.global.s32 [%0], %1;" ::"l"(p), "r"(v) : "memory");
}

/* How many tiles of keys come before `tile` in adding to the dq of the queries from i0 on. */
template <int BM, int BN> static __device__ int turn_of(const span &s, int64_t i0, int64_t tile)
{
    int64_t last = (i0 + BM < s.count ? i0 + BM : s.count) - 1;
    return (int)(s.last(last) / BN - tile);
}

/* Waits until `turn` others have added. For whole warps. */
static __device__ inline void turn_wait(const int *counter, int turn)
{
    if (threadIdx.x % 32 == 0)
        while (turn_read(counter) != turn)
            __nanosleep(20);
    __syncwarp();
}

/*
 * *to becomes x for the first of those who add, else grows by x. The others add where the memory
 * is, whose order is that of the turns: nobody waits for what is there.
 */
static __device__ inline void add_to(float4 *to, float4 x, bool first)
{
    if (first) {
        __stcg(to, x);
        return;
    }
#if __CUDA_ARCH__ >= 900
    asm volatile("red.relaxed.gpu.global.add.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(to), "f"(x.x),
                 "f"(x.y), "f"(x.z), "f"(x.w)
                 : "memory");
#else
    atomicAdd(&to->x, x.x);
    atomicAdd(&to->y, x.y);
    atomicAdd(&to->z, x.z);
    atomicAdd(&to->w, x.w);
#endif
}

static __device__ inline void add_to(float2 *to, float2 x, bool first)
{
    if (first) {
        __stcg(to, x);
        return;
    }
#if __CUDA_ARCH__ >= 900
    asm volatile("red.relaxed.gpu.global.add.v2.f32 [%0], {%1, %2};" ::"l"(to), "f"(x.x), "f"(x.y)
                 : "memory");
#else
    atomicAdd(&to->x, x.x);
    atomicAdd(&to->y, x.y);
#endif
}

/* What a block has added and not told the others yet: `counter` is that of the queries, or NULL. */
struct added {
    int *counter;
    int turn;
};

/* Before the block's threads meet, each of them; after that, any of them. */
static __device__ inline void added_settle(const added &a)
{
    if (a.counter)
        __threadfence();
}

static __device__ inline void added_tell(const added &a)
{
    if (a.counter && threadIdx.x == 0)
        turn_write(a.counter, a.turn + 1);
}

/*
 * A weight w = drop p and ds of a query and key from their score (before the cap, and before it is
 * times the scale) and dp: see flash_bwd.cu. lse is of the base 2.
 */
struct weight_slope {
    float weight, ds;
};

static __device__ inline weight_slope slope_of(const flash_job<float> &j, float score, float dp,
                                               float lse, float delta, bool seen, float drop)
{
    float slope = 1, by = j.scale * log2_of_e;
    if (j.cap > 0) {
        float t = tanhf(score * (j.scale / j.cap));
        slope = 1 - t * t;
        score = j.cap * t;
        by = log2_of_e;
    }
    float p = exp2_of(fmaf(score, by, -lse));
    p = seen ? p : 0;
    return {p * drop, p * slope * (dp * drop - delta)};
}

#endif

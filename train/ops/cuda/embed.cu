/* SPDX-License-Identifier: Apache-2.0 */
#include "train/ops/cuda/device.cuh"

/* ---- forward: a block for each row --------------------------------------------------------------
 */

enum { MOST = 512 };

struct embed_job {
    mat y, tok, pos;
    const int32_t *id, *position;
    int64_t width;
    drop_mask drop;
};

template <int VEC> static __global__ void embed(const embed_job j)
{
    int64_t i = blockIdx.x;
    const float *tok = j.tok.row(j.id[i]), *pos = j.pos.p ? j.pos.row(j.position[i]) : NULL;
    for (int64_t c = threadIdx.x * VEC; c < j.width; c += blockDim.x * VEC) {
        float v[VEC], add[VEC] = {0};
        load(v, tok + c);
        if (pos)
            load(add, pos + c);
        for (int k = 0; k < VEC; k++)
            v[k] += add[k];
        drop_apply(v, j.drop, i, c, j.width);
        store(j.y.row(i) + c, v);
    }
}

extern "C" void cuda_embed(ops *o, const void *args, void *)
{
    const embed_args *a = (const embed_args *)args;
    int64_t n = a->y.size[0], width = a->y.size[1];
    embed_job j = {mat_of(a->y),         mat_of(a->tok), mat_of(a->pos),  ints_of(a->id),
                   ints_of(a->position), width,          mask_of(a->drop)};
    if (!n || !width)
        return;
    if (width % 4 == 0 && aligned(a->y) && aligned(a->tok) && aligned(a->pos))
        embed<4><<<(unsigned)n, threads_for(width / 4, MOST), 0, stream_of(o)>>>(j);
    else
        embed<1><<<(unsigned)n, threads_for(width, MOST), 0, stream_of(o)>>>(j);
    dev_cuda_check(o->dev, "embed");
}

/* ---- sorting rows by their id, equal ids in the order of rows -----------------------------------
 */

/*
 * A radix sort, DIGIT bits a pass: each block counts the digits of its TILE rows; the counts are
 * added up over digits and, within one, over blocks; each row then goes to its place. A thread has
 * EACH neighbouring rows, so that equal digits keep their order.
 */
enum { DIGIT = 6, DIGITS = 1 << DIGIT, SORT_THREADS = 128, EACH = 16, TILE = SORT_THREADS * EACH };

struct keyed {
    int32_t id, row;
};

static __device__ keyed sort_item(const int32_t *id, const keyed *from, int64_t i)
{
    return id ? keyed{id[i], (int32_t)i} : from[i];
}

static __device__ int digit_of(keyed k, int shift)
{
    return k.id >> shift & (DIGITS - 1);
}

/* count[digit * tiles + tile]; the first pass reads id instead of `from`. */
static __global__ void __launch_bounds__(SORT_THREADS)
    sort_count(const int32_t *id, const keyed *from, int64_t n, int shift, int32_t *count)
{
    __shared__ int32_t seen[DIGITS];
    int64_t begin = (int64_t)blockIdx.x * TILE;
    for (int d = (int)threadIdx.x; d < DIGITS; d += SORT_THREADS)
        seen[d] = 0;
    __syncthreads();
    for (int64_t i = begin + threadIdx.x; i < begin + TILE && i < n; i += SORT_THREADS)
        atomicAdd(&seen[digit_of(sort_item(id, from, i), shift)], 1);
    __syncthreads();
    for (int d = (int)threadIdx.x; d < DIGITS; d += SORT_THREADS)
        count[d * gridDim.x + blockIdx.x] = seen[d];
}

/* Each number becomes the sum of those before it. One block. */
static __global__ void __launch_bounds__(1024) sort_scan(int32_t *count, int n)
{
    __shared__ int32_t part[1024];
    int each = (n + 1023) / 1024, begin = (int)threadIdx.x * each;
    int end = begin + each < n ? begin + each : n, sum = 0;
    for (int i = begin; i < end; i++)
        sum += count[i];
    part[threadIdx.x] = sum;
    __syncthreads();
    for (int k = 1; k < 1024; k *= 2) {
        int32_t before = (int)threadIdx.x >= k ? part[threadIdx.x - k] : 0;
        __syncthreads();
        part[threadIdx.x] += before;
        __syncthreads();
    }
    sum = part[threadIdx.x] - sum;
    for (int i = begin; i < end; i++) {
        int32_t own = count[i];
        count[i] = sum;
        sum += own;
    }
}

static __global__ void __launch_bounds__(SORT_THREADS)
    sort_place(const int32_t *id, const keyed *from, int64_t n, int shift, const int32_t *count,
               keyed *to)
{
    __shared__ uint16_t rank[DIGITS][SORT_THREADS + 2]; /* + 2: a bank of its own for each digit */
    /* of a thread's first row with that digit */
    int64_t begin = (int64_t)blockIdx.x * TILE + threadIdx.x * EACH;
    for (int d = 0; d < DIGITS; d++)
        rank[d][threadIdx.x] = 0;
    for (int64_t i = begin; i < begin + EACH && i < n; i++)
        rank[digit_of(sort_item(id, from, i), shift)][threadIdx.x]++;
    __syncthreads();
    for (int d = (int)threadIdx.x; d < DIGITS; d += SORT_THREADS) {
        int sum = 0;
        for (int t = 0; t < SORT_THREADS; t++) {
            int own = rank[d][t];
            rank[d][t] = (uint16_t)sum;
            sum += own;
        }
    }
    __syncthreads();
    for (int64_t i = begin; i < begin + EACH && i < n; i++) {
        keyed k = sort_item(id, from, i);
        int d = digit_of(k, shift);
        to[count[d * gridDim.x + blockIdx.x] + rank[d][threadIdx.x]++] = k;
    }
}

struct sort_memory {
    keyed *from, *to; /* [n] */
    int32_t *count;   /* [DIGITS * tiles] */
};

static size_t sort_bytes(int64_t n)
{
    return (size_t)(2 * n) * sizeof(keyed) + (size_t)(DIGITS * ceil_div(n, TILE)) * sizeof(int32_t);
}

/* Rows 0 .. n - 1 by id[row] < limit; returns where they are. */
static const keyed *sort_rows(const int32_t *id, int64_t n, int64_t limit, void *scratch,
                              cudaStream_t stream)
{
    sort_memory m = {(keyed *)scratch, (keyed *)scratch + n, (int32_t *)((keyed *)scratch + 2 * n)};
    unsigned tiles = (unsigned)ceil_div(n, TILE);
    for (int shift = 0; shift == 0 || limit - 1 >> shift; shift += DIGIT) {
        const int32_t *first = shift ? NULL : id;
        sort_count<<<tiles, SORT_THREADS, 0, stream>>>(first, m.from, n, shift, m.count);
        sort_scan<<<1, 1024, 0, stream>>>(m.count, (int)tiles * DIGITS);
        sort_place<<<tiles, SORT_THREADS, 0, stream>>>(first, m.from, n, shift, m.count, m.to);
        keyed *other = m.from;
        m.from = m.to;
        m.to = other;
    }
    return m.from;
}

/* ---- backward: the rows of one id, in their order
 * ------------------------------------------------ */

enum { TOGETHER = 8 }; /* rows that are read before they are added */

template <int VEC>
static __device__ void add_row(float (&sum)[VEC], float (&v)[VEC], drop_mask drop, int64_t row,
                               int64_t c, int64_t width)
{
    drop_apply(v, drop, row, c, width);
    for (int k = 0; k < VEC; k++)
        sum[k] += v[k];
}

/*
 * Block (i, part): if row i of the sorted ones is the first of its id, the sum of all of them is
 * added to the table's row, one after the other.
 */
template <int VEC>
static __global__ void add_runs(const keyed *sorted, int64_t n, mat dy, mat to, int64_t width,
                                drop_mask drop)
{
    int64_t i = blockIdx.x, c = ((int64_t)blockIdx.y * blockDim.x + threadIdx.x) * VEC;
    int32_t id = sorted[i].id;
    if ((i && sorted[i - 1].id == id) || c >= width)
        return;
    float sum[VEC];
    load(sum, to.row(id) + c);
    for (; i + TOGETHER <= n && sorted[i + TOGETHER - 1].id == id; i += TOGETHER) {
        float v[TOGETHER][VEC];
#pragma unroll
        for (int t = 0; t < TOGETHER; t++)
            load(v[t], dy.row(sorted[i + t].row) + c);
#pragma unroll
        for (int t = 0; t < TOGETHER; t++)
            add_row(sum, v[t], drop, sorted[i + t].row, c, width);
    }
    for (; i < n && sorted[i].id == id; i++) {
        float v[VEC];
        load(v, dy.row(sorted[i].row) + c);
        add_row(sum, v, drop, sorted[i].row, c, width);
    }
    store(to.row(id) + c, sum);
}

static void add_table(ops *o, const embed_bwd_args *a, tensor id, tensor to, void *scratch)
{
    int64_t n = a->dy.size[0], width = a->dy.size[1];
    cudaStream_t stream = stream_of(o);
    const keyed *sorted = sort_rows(ints_of(id), n, to.size[0], scratch, stream);
    bool wide = width % 4 == 0 && aligned(a->dy) && aligned(to);
    int64_t items = wide ? width / 4 : width;
    int threads = threads_for(items, 128);
    dim3 grid((unsigned)n, (unsigned)ceil_div(items, threads));
    if (wide)
        add_runs<4><<<grid, threads, 0, stream>>>(sorted, n, mat_of(a->dy), mat_of(to), width,
                                                  mask_of(a->drop));
    else
        add_runs<1><<<grid, threads, 0, stream>>>(sorted, n, mat_of(a->dy), mat_of(to), width,
                                                  mask_of(a->drop));
}

extern "C" size_t cuda_embed_bwd_scratch(const dev_desc *, const void *args)
{
    return sort_bytes(((const embed_bwd_args *)args)->dy.size[0]);
}

extern "C" void cuda_embed_bwd(ops *o, const void *args, void *scratch)
{
    const embed_bwd_args *a = (const embed_bwd_args *)args;
    if (!a->dy.size[0] || !a->dy.size[1])
        return;
    if (!tensor_none(a->dtok))
        add_table(o, a, a->id, a->dtok, scratch);
    if (!tensor_none(a->dpos))
        add_table(o, a, a->position, a->dpos, scratch);
    dev_cuda_check(o->dev, "embed_bwd");
}

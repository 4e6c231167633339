/* SPDX-License-Identifier: Apache-2.0 */
#include "train/ops/cuda/device.cuh"

/* ---- forward: a block for each row --------------------------------------------------------------
 */

enum { MOST = 512 };

template <class T> struct embed_job {
    mat_in<T> y, tok, pos;
    const int32_t *id, *position;
    int64_t width;
    int64_t first, rows; /* the ids that tok has */
    float scale, noise;
    drop_mask drop;
};

/* v += noise of columns col .. col + VEC - 1 of a row; VEC divides col and width. */
template <int VEC>
static __device__ void add_noise(float (&v)[VEC], float noise, drop_mask d, int64_t row,
                                 int64_t col, int64_t width)
{
    if (!(noise > 0))
        return;
    const uint64_t seed = drop_seed(d);
    const uint64_t e = (drop_row0(d) + (uint64_t)row) * (uint64_t)width + (uint64_t)col;
#pragma unroll
    for (int k = 0; k < VEC; k++) {
        uint4 r = random_block(seed, 8 /* RNG_NOISE */, 0, (e + (unsigned)k) / 4);
        unsigned w = (unsigned)((e + (unsigned)k) % 4);
        uint32_t bits = w == 0 ? r.x : w == 1 ? r.y : w == 2 ? r.z : r.w;
        v[k] += noise * (2 * ((float)(bits >> 8) * 0x1p-24f) - 1);
    }
}

template <int VEC, class T> static __global__ void embed(const embed_job<T> j)
{
    int64_t i = blockIdx.x;
    const int64_t id = j.id[i] - j.first;
    const T *tok = id >= 0 && id < j.rows ? j.tok.row(id) : NULL;
    const T *pos = j.pos.p ? j.pos.row(j.position[i]) : NULL;
    for (int64_t c = threadIdx.x * VEC; c < j.width; c += blockDim.x * VEC) {
        float v[VEC] = {0}, add[VEC] = {0}, factor[VEC];
        if (j.drop.on) /* while the id is on its way */
            drop_factors(factor, j.drop, i, c, j.width);
        if (tok)
            load(v, tok + c);
        if (pos)
            load(add, pos + c);
        for (int k = 0; k < VEC; k++)
            v[k] = fmaf(v[k], j.scale, add[k]);
        add_noise(v, j.noise, j.drop, i, c, j.width);
        for (int k = 0; k < VEC && j.drop.on; k++)
            v[k] *= factor[k];
        store(j.y.row(i) + c, v);
    }
}

/* 0 stands for 1. */
static float scale_of(double scale)
{
    return scale != 0 ? (float)scale : 1;
}

template <class T> static void issue_embed(ops *o, const embed_args *a)
{
    const int vec = wide_of<T>();
    int64_t n = a->y.size[0], width = a->y.size[1];
    embed_job<T> j = {mat_in_of<T>(a->y),      mat_in_of<T>(a->tok),
                      mat_in_of<T>(a->pos),    ints_of(a->id),
                      ints_of(a->position),    width,
                      a->shard ? a->first : 0, a->tok.size[0],
                      scale_of(a->scale),      a->noise,
                      mask_of(a->drop)};
    if (width % vec == 0 && aligned(a->y) && aligned(a->tok) && aligned(a->pos))
        embed<vec><<<(unsigned)n, threads_for(width / vec, MOST), 0, stream_of(o)>>>(j);
    else
        embed<1><<<(unsigned)n, threads_for(width, MOST), 0, stream_of(o)>>>(j);
    dev_cuda_check(o->dev, "launch");
}

extern "C" void cuda_embed(ops *o, const void *args, void *)
{
    const embed_args *a = (const embed_args *)args;
    if (!a->y.size[0] || !a->y.size[1])
        return;
    by_type(a->y.dtype, [&](auto t) { issue_embed<decltype(t)>(o, a); });
}

/* ---- sorting rows by their id, equal ids in the order of rows -----------------------------------
 */

/*
 * A radix sort, at most DIGIT bits a pass: each block counts the digits of its SORT_TILE rows; the
 * counts are added up over digits and, within one, over blocks; each row then goes to its place. A
 * warp has SORT_EACH times 32 neighbouring rows, so that equal digits keep their order.
 */
enum {
    DIGIT = 8,
    DIGITS = 1 << DIGIT,
    SORT_THREADS = 256,
    SORT_WARPS = SORT_THREADS / 32,
    SORT_EACH = 2,
    SORT_TILE = SORT_THREADS * SORT_EACH
};

struct keyed {
    int32_t id, row;
};

/*
 * Rows of id (the first pass) or of `from`, by `digits` values of the bits from `shift` on. Ids
 * that are not among `limit` from `first` on become `limit`, the last ones.
 */
struct sort_pass {
    const int32_t *id;
    int32_t first, limit;
    const keyed *from;
    keyed *to;
    int64_t n;
    int shift, digits;
    int32_t *count; /* [digits * blocks] */
};

static __device__ keyed sort_item(const sort_pass &p, int64_t i)
{
    if (!p.id)
        return p.from[i];
    const int32_t id = p.id[i] - p.first;
    return keyed{id >= 0 && id < p.limit ? id : p.limit, (int32_t)i};
}

static __device__ int digit_of(const sort_pass &p, keyed k)
{
    return k.id >> p.shift & (p.digits - 1);
}

static __global__ void __launch_bounds__(SORT_THREADS) sort_count(const sort_pass p)
{
    __shared__ int32_t seen[DIGITS];
    int64_t begin = (int64_t)blockIdx.x * SORT_TILE;
    for (int d = (int)threadIdx.x; d < p.digits; d += SORT_THREADS)
        seen[d] = 0;
    __syncthreads();
    for (int64_t i = begin + threadIdx.x; i < begin + SORT_TILE && i < p.n; i += SORT_THREADS)
        atomicAdd(&seen[digit_of(p, sort_item(p, i))], 1);
    __syncthreads();
    for (int d = (int)threadIdx.x; d < p.digits; d += SORT_THREADS)
        p.count[d * gridDim.x + blockIdx.x] = seen[d];
}

/* Each number becomes the sum of those before it. One block; SCAN_EACH numbers a thread at a time.
 */
enum { SCAN_THREADS = 1024, SCAN_EACH = 4 };

static __global__ void __launch_bounds__(SCAN_THREADS) sort_scan(int32_t *count, int n)
{
    __shared__ int32_t part[32];
    const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
    int32_t before = 0;
    for (int base = 0; base < n; base += SCAN_THREADS * SCAN_EACH) {
        const int at = base + (int)threadIdx.x * SCAN_EACH;
        __align__(16) int32_t v[SCAN_EACH];
        int32_t sum = 0, all = 0, warps = 0;
        if (at + SCAN_EACH <= n)
            *(int4 *)v = *(const int4 *)(count + at);
        else
            for (int k = 0; k < SCAN_EACH; k++)
                v[k] = at + k < n ? count[at + k] : 0;
        for (int k = 0; k < SCAN_EACH; k++)
            sum += v[k];
        int32_t upto = sum;
        for (int k = 1; k < 32; k *= 2) {
            int32_t left = __shfl_up_sync(~0u, upto, k);
            upto += lane >= k ? left : 0;
        }
        if (lane == 31)
            part[warp] = upto;
        __syncthreads();
        for (int w = 0; w < 32; w++) {
            warps += w < warp ? part[w] : 0;
            all += part[w];
        }
        int32_t own = before + warps + upto - sum;
        for (int k = 0; k < SCAN_EACH; k++) {
            if (at + k < n)
                count[at + k] = own;
            own += v[k];
        }
        before += all;
        __syncthreads();
    }
}

static __global__ void __launch_bounds__(SORT_THREADS) sort_place(const sort_pass p)
{
    __shared__ int32_t place[SORT_WARPS][DIGITS]; /* of a warp's next row with that digit */
    const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
    const int64_t begin = (int64_t)blockIdx.x * SORT_TILE + (int64_t)(warp * SORT_EACH) * 32 + lane;
    keyed item[SORT_EACH];
    unsigned same[SORT_EACH]; /* lanes with the same digit */
    for (int i = (int)threadIdx.x; i < SORT_WARPS * DIGITS; i += SORT_THREADS)
        place[i / DIGITS][i % DIGITS] = 0;
    __syncthreads();
#pragma unroll
    for (int k = 0; k < SORT_EACH; k++) {
        const bool there = begin + k * 32 < p.n;
        item[k] = there ? sort_item(p, begin + k * 32) : keyed{0, -1};
        const int digit = there ? digit_of(p, item[k]) : -1;
        same[k] = __match_any_sync(~0u, digit);
        if (there && (same[k] & ((1u << lane) - 1)) == 0)
            place[warp][digit] += __popc(same[k]);
        __syncwarp();
    }
    __syncthreads();
    for (int d = (int)threadIdx.x; d < p.digits; d += SORT_THREADS) {
        int32_t sum = p.count[d * gridDim.x + blockIdx.x];
        for (int w = 0; w < SORT_WARPS; w++) {
            int32_t own = place[w][d];
            place[w][d] = sum;
            sum += own;
        }
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < SORT_EACH; k++) {
        const bool there = item[k].row >= 0;
        const int digit = there ? digit_of(p, item[k]) : 0;
        const int32_t to = place[warp][digit] + __popc(same[k] & ((1u << lane) - 1));
        if (there)
            p.to[to] = item[k];
        __syncwarp();
        if (there && (same[k] & ((1u << lane) - 1)) == 0)
            place[warp][digit] += __popc(same[k]);
        __syncwarp();
    }
}

static size_t sort_bytes(int64_t n)
{
    return (size_t)(2 * n) * sizeof(keyed) +
           (size_t)(DIGITS * ceil_div(n, SORT_TILE)) * sizeof(int32_t);
}

/* Rows 0 .. n - 1 by id[row] - first, where only a part has those outside of 0 .. limit - 1, which
 * come last; returns where they are. */
static const keyed *sort_rows(const int32_t *id, bool part, int64_t first, int64_t n, int64_t limit,
                              void *scratch, cudaStream_t stream)
{
    keyed *const list[2] = {(keyed *)scratch, (keyed *)scratch + n};
    unsigned tiles = (unsigned)ceil_div(n, SORT_TILE);
    int bits = 1, passes, each;
    while (limit - !part >> bits)
        bits++;
    passes = (bits + DIGIT - 1) / DIGIT;
    each = (bits + passes - 1) / passes;
    for (int k = 0; k < passes; k++) {
        const sort_pass p = {.id = k ? NULL : id,
                             .first = (int32_t)first,
                             .limit = (int32_t)limit,
                             .from = list[(k + 1) % 2],
                             .to = list[k % 2],
                             .n = n,
                             .shift = k * each,
                             .digits = 1 << each,
                             .count = (int32_t *)(list[1] + n)};
        sort_count<<<tiles, SORT_THREADS, 0, stream>>>(p);
        sort_scan<<<1, SCAN_THREADS, 0, stream>>>(p.count, (int)tiles * p.digits);
        sort_place<<<tiles, SORT_THREADS, 0, stream>>>(p);
    }
    return list[(passes - 1) % 2];
}

/* ---- backward: the rows of one id, in their order
 * ------------------------------------------------ */

/* What is done to a row before it is added. */
struct row_factor {
    drop_mask drop;
    float scale;
};

template <int VEC>
static __device__ void add_row(float (&sum)[VEC], float (&v)[VEC], const row_factor &f, int64_t row,
                               int64_t c, int64_t width)
{
    drop_apply(v, f.drop, row, c, width);
    for (int k = 0; k < VEC; k++)
        sum[k] = fmaf(v[k], f.scale, sum[k]);
}

/* Rows that are read before they are added. */
template <int VEC> static __host__ __device__ constexpr int together()
{
    return VEC == 8 ? 4 : 8;
}

/* Adds the rows from sorted[i] on that have this id, one after the other. */
template <int VEC, class T>
static __device__ void add_rest(float (&sum)[VEC], const keyed *sorted, int64_t i, int64_t n,
                                int32_t id, mat_in<T> dy, int64_t c, int64_t width,
                                const row_factor &f)
{
    constexpr int MANY = together<VEC>();
    for (; i + MANY <= n && sorted[i + MANY - 1].id == id; i += MANY) {
        float v[MANY][VEC];
#pragma unroll
        for (int t = 0; t < MANY; t++)
            load(v[t], dy.row(sorted[i + t].row) + c);
#pragma unroll
        for (int t = 0; t < MANY; t++)
            add_row(sum, v[t], f, sorted[i + t].row, c, width);
    }
    for (; i < n && sorted[i].id == id; i++) {
        float v[VEC];
        load(v, dy.row(sorted[i].row) + c);
        add_row(sum, v, f, sorted[i].row, c, width);
    }
}

/*
 * Block (b, part) has the together() sorted rows from b * together() on. Of each id whose first row
 * is among them the sum of all rows is added to the table's row, one after the other. Ids from
 * `rows` on have none.
 */
template <int VEC, class T, class G>
static __global__ void add_runs(const keyed *sorted, int64_t n, mat_in<T> dy, mat_in<G> to,
                                int32_t rows, int64_t width, const row_factor f)
{
    constexpr int MANY = together<VEC>();
    const int64_t i = (int64_t)blockIdx.x * MANY;
    const int64_t c = ((int64_t)blockIdx.y * blockDim.x + threadIdx.x) * VEC;
    keyed item[MANY];
    float v[MANY][VEC], table[MANY][VEC], sum[VEC];
    int32_t id = i ? sorted[i - 1].id : -1, first = id; /* rows of `first` are another block's */
    if (c >= width)
        return;
#pragma unroll
    for (int t = 0; t < MANY; t++) {
        item[t] = i + t < n ? sorted[i + t] : keyed{first, 0};
        if (item[t].id >= rows)
            item[t].id = first;
        if (item[t].id != first)
            load(v[t], dy.row(item[t].row) + c);
        if (item[t].id != first && (t == 0 || item[t].id != item[t - 1].id))
            load(table[t], to.row(item[t].id) + c);
    }
#pragma unroll
    for (int t = 0; t < MANY; t++) {
        if (item[t].id == first)
            continue;
        if (item[t].id != id) {
            if (id != first)
                store(to.row(id) + c, sum);
            id = item[t].id;
#pragma unroll
            for (int k = 0; k < VEC; k++)
                sum[k] = table[t][k];
        }
        add_row(sum, v[t], f, item[t].row, c, width);
    }
    if (id == first)
        return;
    add_rest(sum, sorted, i + MANY, n, id, dy, c, width, f);
    store(to.row(id) + c, sum);
}

template <class T, class G>
static void add_table(ops *o, const embed_bwd_args *a, tensor id, bool part, tensor to,
                      double scale, void *scratch)
{
    const int vec = wide_of<T>();
    const row_factor f = {mask_of(a->drop), scale_of(scale)};
    int64_t n = a->dy.size[0], width = a->dy.size[1];
    cudaStream_t stream = stream_of(o);
    const keyed *sorted =
        sort_rows(ints_of(id), part, part ? a->first : 0, n, to.size[0], scratch, stream);
    bool wide = width % vec == 0 && aligned(a->dy) && aligned(to);
    int64_t items = wide ? width / vec : width;
    int threads = threads_for(items, 192);
    dim3 grid((unsigned)ceil_div(n, wide ? together<vec>() : together<1>()),
              (unsigned)ceil_div(items, threads));
    mat_in<T> dy = mat_in_of<T>(a->dy);
    int32_t rows = (int32_t)to.size[0];
    if (wide)
        add_runs<vec>
            <<<grid, threads, 0, stream>>>(sorted, n, dy, mat_in_of<G>(to), rows, width, f);
    else
        add_runs<1><<<grid, threads, 0, stream>>>(sorted, n, dy, mat_in_of<G>(to), rows, width, f);
}

template <class T, class G> static void add_tables(ops *o, const embed_bwd_args *a, void *scratch)
{
    if (!tensor_none(a->dtok))
        add_table<T, G>(o, a, a->id, a->shard, a->dtok, a->scale, scratch);
    if (!tensor_none(a->dpos))
        add_table<T, G>(o, a, a->position, false, a->dpos, 1, scratch);
    dev_cuda_check(o->dev, "launch");
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
    if (o->grad == DTYPE_BF16)
        add_tables<bf16, bf16>(o, a, scratch);
    else
        by_type(a->dy.dtype, [&](auto t) { add_tables<decltype(t), float>(o, a, scratch); });
}

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_OPS_CPU_FAST_ATTENTION_H
#define TRAIN_OPS_CPU_FAST_ATTENTION_H

/*
 * What forward, decoding and backward of attention share. Queries lie in the lanes of vectors: the
 * scores of a block are kept as [key][query], so that keys and values need no turning about (they
 * are the kernel's left side), maxima and sums over keys stay within a lane, and what a query gets
 * does not depend on its neighbours.
 */

#include <math.h>

#include "train/ops/cpu/fast.h"
#include "train/ops/cpu/vec_drop.h"
#include "train/ops/cpu/vec_gemm.h"
#include "train/ops/cpu/vec_math.h"

/* Neighbouring queries of one head and sequence. Keys are numbered from the sequence's first. */
struct queries {
    int64_t row, count; /* rows of q */
    int64_t head, group;
    int64_t key;  /* row of k and v that holds key 0 */
    int64_t keys; /* how many there are */
    int64_t last; /* the last key that the first query sees; the next query sees one more. It may
                   * be below 0 or beyond the last one where keys are a part of those there are */
    int64_t drop_row, drop_key; /* of the dropout: the first query, key 0 */
};

static inline float *head_at(struct tensor t, int64_t i, int64_t h)
{
    return row(t, i) + h * t.size[2];
}

static inline int64_t group_of(const struct attention_args *a, int64_t head)
{
    return head / (a->q.size[1] / a->k.size[1]);
}

static inline int64_t round_up(int64_t n, int64_t to)
{
    return (n + to - 1) / to * to;
}

/* Rows [begin, end) of q, all of them of sequence s. */
static inline struct queries queries_at(const struct attention_args *a, int64_t s, int64_t head,
                                        struct range rows)
{
    int64_t behind = ints(a->q_start)[s + 1] - rows.begin; /* queries up to the sequence's end */
    int64_t at = rows.begin - ints(a->q_start)[s];
    bool part = !tensor_none(a->ahead);
    return (struct queries){.row = rows.begin,
                            .count = rows.end - rows.begin,
                            .head = head,
                            .group = group_of(a, head),
                            .key = ints(a->k_start)[s],
                            .keys = ints(a->k_len)[s],
                            .last = ints(a->k_len)[s] - behind + (part ? ints(a->ahead)[s] : 0),
                            .drop_row = part ? ints(a->drop_row)[s] + at : rows.begin,
                            .drop_key = part ? ints(a->drop_key)[s] : 0};
}

/* The first key that the first query sees. */
static inline int64_t first_key(const struct attention_args *a, int64_t last)
{
    return a->window > 0 && last >= a->window ? last - a->window + 1 : 0;
}

/* The dropout's factors of n weights of the i-th of these queries, from key number `key` on. */
static inline void drop_keys(const struct attention_args *a, const struct queries *x, int64_t i,
                             int64_t key, int64_t n, float *ret)
{
    uint64_t heads = (uint64_t)(a->all_heads ? a->all_heads : a->q.size[1]);
    uint64_t row = (drop_row0(a->drop) + (uint64_t)(x->drop_row + i)) * heads;
    drop_factors(a->drop, row + (uint64_t)(a->head0 + x->head), a->max_len, x->drop_key + key, n,
                 ret);
}

/* Head h of n rows from row i on, one behind the other. */
static inline void copy_head(struct tensor t, int64_t i, int64_t h, int64_t n, float *ret)
{
    int64_t dim = t.size[2];
    const float *from = head_at(t, i, h);
    for (int64_t r = 0; r < n; r++, from += t.stride, ret += dim) {
        int64_t d = 0;
        for (; d + VL <= dim; d += VL)
            v_store(ret + d, v_load(from + d));
        if (d < dim)
            v_store_n(ret + d, dim - d, v_load_n(from + d, dim - d));
    }
}

/*
 * exp(x) of a score less its maximum or its lse: for x up to some rounding error above 0, or NaN.
 * What is below e^-64 is lost in any sum beside the largest weight and becomes 0, for numbers below
 * the normal ones cost hundreds of cycles.
 */
static inline vf weight_of(vf x)
{
    typedef int32_t bits __attribute__((vector_size(sizeof(vf))));
    const vf least = v_set1(-64), big = v_set1(0x1.8p23f), one = v_set1(1);
    vf y = v_max(least, x), z = v_fma(y, v_set1(1.44269504f), big), n = z - big;
    vf r = v_fma(n, v_set1(-0.693359375f), y); /* as v_exp */
    r = v_fma(n, v_set1(2.12194440e-4f), r);
    vf p = v_fma(v_set1(0x1.6a23ccp-10f), r, v_set1(0x1.123a2p-7f));
    p = v_fma(p, r, v_set1(0x1.5558f2p-5f));
    p = v_fma(p, r, v_set1(0x1.555492p-3f));
    p = v_fma(p, r, v_set1(0x1.fffffcp-2f));
    p = v_fma(v_fma(p, r, one), r, one);
    bits scale = ((bits)z << 23) + (bits)one; /* 2^n: z's low bits are n */
    return v_where_less(x, least, v_zero(), p * (vf)scale);
}

/* A product with any number of rows, in tiles of even height. */
static inline void product(struct tile t)
{
    const float *a = t.a;
    float *c = t.c;
    int64_t rows = t.rows, parts = (rows + TILE_M - 1) / TILE_M;
    for (int64_t i = 0; i < parts; i++) {
        struct range r = even_range(rows, parts, i);
        t.a = a + r.begin * t.row;
        t.c = c + r.begin * t.ldc;
        t.rows = r.end - r.begin;
        tile_run(&t);
    }
}

/* Scores [n][ld] of `lanes` queries through the cap, if there is one. */
static inline void cap_scores(const struct attention_args *a, int64_t lanes, int64_t n, float *s,
                              int64_t ld)
{
    if (!(a->cap > 0))
        return;
    vf cap = v_set1(a->cap), by = v_set1(1 / a->cap);
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < lanes; j += VL) {
            float *p = s + i * ld + j;
            v_store(p, cap * v_tanh(v_load(p) * by));
        }
}

/*
 * -infinity where the query of a lane does not see the key of a row: lanes are queries `first` ..
 * of x, rows the n keys from `key` on. s: [n][ld].
 */
static inline void hide(const struct attention_args *a, const struct queries *x, int64_t first,
                        int64_t key, int64_t n, float *s, int64_t ld)
{
    int64_t last = x->last + first - key, begin = last - a->window + 1;
    bool causal = last<n - 1, window = a->window> 0 && begin + TILE_N > 1;
    float lane[TILE_N];
    for (int i = 0; i < TILE_N && (causal || window); i++)
        lane[i] = (float)i;
    for (int64_t i = causal ? (last > 0 ? last : 0) : n; i < n; i++)
        for (int j = 0; j < TILE_N; j += VL) {
            vf sees = v_set1((float)last) + v_load(lane + j), at = v_set1((float)i);
            float *p = s + i * ld + j;
            v_store(p, v_where_less(sees, at, v_set1(-INFINITY), v_load(p)));
        }
    for (int64_t i = 0; window && i < n && i < begin + TILE_N; i++)
        for (int j = 0; j < TILE_N; j += VL) {
            vf sees = v_set1((float)begin) + v_load(lane + j), at = v_set1((float)i);
            float *p = s + i * ld + j;
            v_store(p, v_where_less(at, sees, v_set1(-INFINITY), v_load(p)));
        }
}

/*
 * The dropout's factors of n keys from `key` on for TILE_N queries from `first` on, [n][step].
 * line: VL * n numbers of scratch.
 */
static inline __attribute__((always_inline)) void drop_lanes(const struct attention_args *a,
                                                             const struct queries *x, int64_t first,
                                                             int64_t key, int64_t n, float *line,
                                                             float *ret, const int64_t step)
{
    for (int64_t j = 0; j < TILE_N && first + j < x->count; j += VL) {
        int64_t have = x->count - first - j < VL ? x->count - first - j : VL;
        for (int64_t i = 0; i < have; i++)
            drop_keys(a, x, first + j + i, key, n, line + i * n);
        strip_along(line, n, n, have, step, ret + j);
    }
}

/* Turns [dim][TILE_N] back into rows of `dim` numbers, each times its lane's factor. */
static inline void unpack_lanes(const float *from, int64_t dim, int64_t count, const float *factor,
                                float *ret, int64_t stride, bool add)
{
    for (int64_t j = 0; j < count; j += VL)
        for (int64_t p = 0; p < dim; p += VL) {
            vf r[VL];
            for (int i = 0; i < VL; i++)
                r[i] = p + i < dim ? v_load(from + (p + i) * TILE_N + j) * v_load(factor + j)
                                   : v_zero();
            v_transpose(r);
            for (int i = 0; i < VL && j + i < count; i++)
                tile_store(ret + (j + i) * stride + p, dim - p, r[i], add);
        }
}

/* ---- decoding: few queries and many keys ----------------------------------------------------- */

enum { FEW_QUERIES = 4 };

/* All queries and heads of one sequence and one head of keys. */
void FAST(attend_few)(const struct attention_args *a, int64_t s, int64_t group, float *scratch);
int64_t FAST(attend_few_scratch)(const struct attention_args *a); /* floats */

#endif

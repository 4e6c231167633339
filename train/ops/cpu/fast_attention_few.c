/* SPDX-License-Identifier: Apache-2.0 */
#include "train/ops/cpu/fast_attention.h"

#include <float.h>

/*
 * Decoding: one query, or a few, over a long cache. Here lanes are keys for the scores and
 * dimensions for the sums; nothing is packed, and each block of keys and values is read once for
 * all heads that share it.
 */

enum { KEYS = 128, ROWS = 16 }; /* keys in a block; queries times heads at a time */

struct few {
    const struct attention_args *a;
    int64_t s, group;
    int64_t rows, first_row; /* row r: query r / heads, head group * heads + r % heads */
    int64_t dim, wide;       /* dimensions, and those rounded up to vectors */
    float *q, *o;            /* [ROWS][wide]; q times scale */
    float *p;                /* [ROWS][KEYS] */
    float *f;                /* [KEYS] */
    float *v;                /* [KEYS][wide], where rows are not whole vectors */
    float max[ROWS], sum[ROWS];
};

int64_t FAST(attend_few_scratch)(const struct attention_args *a)
{
    int64_t wide = round_up(a->q.size[2], VL);
    return 2 * ROWS * wide + ROWS * KEYS + KEYS + (wide > a->q.size[2] ? KEYS * wide : 0);
}

static struct queries row_of(const struct few *w, int64_t r)
{
    int64_t heads = w->a->q.size[1] / w->a->k.size[1];
    int64_t at = w->first_row + r, i = ints(w->a->q_start)[w->s] + at / heads;
    return queries_at(w->a, w->s, w->group * heads + at % heads, (struct range){i, i + 1});
}

/* VL scores of row r, keys from `key` on; keys from n on are not read. */
static vf scores(const struct few *w, const float *q, const float *k, int64_t n)
{
    vf sum[VL];
    int64_t stride = w->a->k.stride;
    for (int i = 0; i < VL; i++)
        sum[i] = v_zero();
    for (int64_t d = 0; d < w->dim; d += VL) {
        vf left = v_load(q + d);
        for (int i = 0; i < VL; i++)
            if (i < n)
                sum[i] = v_fma(left,
                               d + VL <= w->dim ? v_load(k + i * stride + d)
                                                : v_load_n(k + i * stride + d, w->dim - d),
                               sum[i]);
    }
    v_transpose(sum);
    for (int half = VL / 2; half > 0; half /= 2)
        for (int i = 0; i < half; i++)
            sum[i] = sum[i] + sum[i + half];
    return sum[0];
}

/* Scores of n keys of all rows; those that are not seen or do not exist are -infinity. */
static void score_block(const struct few *w, int64_t key, int64_t n)
{
    const struct attention_args *a = w->a;
    int64_t at = ints(a->k_start)[w->s] + key;
    for (int64_t j = 0; j < n; j += VL)
        for (int64_t r = 0; r < w->rows; r++)
            v_store(w->p + r * KEYS + j,
                    scores(w, w->q + r * w->wide, head_at(a->k, at + j, w->group), n - j));
    cap_scores(a, round_up(n, VL), w->rows, w->p, KEYS);
    for (int64_t r = 0; r < w->rows; r++) {
        struct queries x = row_of(w, r);
        int64_t begin = first_key(a, x.last) - key, end = x.last + 1 - key;
        end = end < n ? end : n;
        for (int64_t j = 0; j < begin && j < n; j++)
            w->p[r * KEYS + j] = -INFINITY;
        for (int64_t j = end < 0 ? 0 : end; j < round_up(n, VL); j++)
            w->p[r * KEYS + j] = -INFINITY;
    }
}

/* A row's scores become weights, and what it has summed up is brought to the new maximum. */
static void soften_row(struct few *w, int64_t r, int64_t key, int64_t n)
{
    const struct attention_args *a = w->a;
    float *p = w->p + r * KEYS, *o = w->o + r * w->wide;
    vf most = v_set1(w->max[r]), sum = v_zero();
    for (int64_t j = 0; j < n; j += VL)
        most = v_max(v_load(p + j), most);
    float max = v_max_lane(most), scale = expf(w->max[r] - max);
    for (int64_t j = 0; j < n; j += VL) {
        vf e = weight_of(v_load(p + j) - v_set1(max));
        sum = sum + e;
        v_store(p + j, e);
    }
    w->max[r] = max;
    w->sum[r] = w->sum[r] * scale + v_sum(sum);
    for (int64_t d = 0; d < w->wide; d += VL)
        v_store(o + d, v_load(o + d) * v_set1(scale));
    if (a->drop.p > 0) {
        struct queries x = row_of(w, r);
        drop_keys(a, &x, 0, key, n, w->f);
        for (int64_t j = 0; j < n; j++)
            p[j] *= w->f[j];
    }
}

/* o += p v. The kernel reads whole vectors, so rows that are not are copied first. */
static void add_values(const struct few *w, int64_t key, int64_t n)
{
    const struct attention_args *a = w->a;
    const float *v = head_at(a->v, ints(a->k_start)[w->s] + key, w->group);
    int64_t stride = a->v.stride;
    if (w->wide > w->dim) {
        for (int64_t i = 0; i < n; i++)
            for (int64_t d = 0; d < w->dim; d += VL)
                v_store(w->v + i * w->wide + d, v_load_n(v + i * stride + d, w->dim - d));
        v = w->v;
        stride = w->wide;
    }
    for (int64_t d = 0; d < w->wide; d += TILE_N)
        product((struct tile){.k = n,
                              .a = w->p,
                              .row = KEYS,
                              .col = 1,
                              .b = v + d,
                              .ldb = stride,
                              .c = w->o + d,
                              .ldc = w->wide,
                              .rows = w->rows,
                              .cols = w->wide - d < TILE_N ? w->wide - d : TILE_N,
                              .add = true});
}

static void begin_rows(struct few *w)
{
    for (int64_t r = 0; r < w->rows; r++) {
        struct queries x = row_of(w, r);
        const float *q = head_at(w->a->q, x.row, x.head);
        w->max[r] = -FLT_MAX;
        w->sum[r] = 0;
        for (int64_t d = 0; d < w->dim; d += VL) {
            v_store(w->q + r * w->wide + d, v_load_n(q + d, w->dim - d) * v_set1(w->a->scale));
            v_store(w->o + r * w->wide + d, v_zero());
        }
    }
}

static void end_rows(const struct few *w)
{
    for (int64_t r = 0; r < w->rows; r++) {
        struct queries x = row_of(w, r);
        float *o = head_at(w->a->o, x.row, x.head), scale = w->sum[r] > 0 ? 1 / w->sum[r] : 0;
        for (int64_t d = 0; d < w->dim; d += VL)
            v_store_n(o + d, w->dim - d, v_load(w->o + r * w->wide + d) * v_set1(scale));
        if (!tensor_none(w->a->lse))
            row(w->a->lse, x.head)[x.row] = (float)((double)w->max[r] + log((double)w->sum[r]));
    }
}

void FAST(attend_few)(const struct attention_args *a, int64_t s, int64_t group, float *scratch)
{
    int64_t count = ints(a->q_start)[s + 1] - ints(a->q_start)[s];
    int64_t all = count * (a->q.size[1] / a->k.size[1]), len = ints(a->k_len)[s];
    struct few w = {.a = a, .s = s, .group = group, .dim = a->q.size[2], .q = scratch};
    w.wide = round_up(w.dim, VL);
    w.o = w.q + ROWS * w.wide;
    w.p = w.o + ROWS * w.wide;
    w.f = w.p + ROWS * KEYS;
    w.v = w.f + KEYS;
    for (; w.first_row < all; w.first_row += ROWS) {
        w.rows = all - w.first_row < ROWS ? all - w.first_row : ROWS;
        begin_rows(&w);
        int64_t ahead = tensor_none(a->ahead) ? 0 : ints(a->ahead)[s];
        int64_t key = first_key(a, len - count + ahead);
        for (; key < len; key += KEYS) {
            int64_t n = len - key < KEYS ? len - key : KEYS;
            score_block(&w, key, n);
            for (int64_t r = 0; r < w.rows; r++)
                soften_row(&w, r, key, n);
            add_values(&w, key, n);
        }
        end_rows(&w);
    }
}

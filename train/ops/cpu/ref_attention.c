/* SPDX-License-Identifier: Apache-2.0 */
#include "train/ops/cpu/ref.h"

#include <math.h>
#include <string.h>

#include "base/core/fault.h"
#include "train/ops/dropout.h"

/* One query of one head, and the keys that it sees: first .. first + n - 1 of sequence s. */
struct query {
    int64_t row, head, group;   /* query row, query head, key head */
    int64_t first, n, key;      /* key: row of k and v that holds key `first` */
    int64_t drop_row, drop_key; /* of the dropout: this query, key `first` */
};

static struct query query_at(const struct attention_args *a, int64_t s, int64_t i, int64_t h)
{
    int64_t begin = ints(a->q_start)[s], count = ints(a->q_start)[s + 1] - begin;
    bool part = !tensor_none(a->ahead);
    int64_t len = ints(a->k_len)[s], first = 0;
    int64_t last = len - count + i + (part ? ints(a->ahead)[s] : 0);
    if (a->window > 0 && last - a->window + 1 > 0)
        first = last - a->window + (FAULT("attention_window") ? 2 : 1);
    if (FAULT("attention_ahead"))
        last = len - count + i;
    last = last < len ? last : len - 1;
    return (struct query){.row = begin + i,
                          .head = h,
                          .group = h / (a->q.size[1] / a->k.size[1]),
                          .first = first,
                          .n = last < first ? 0 : last - first + 1,
                          .key = ints(a->k_start)[s] + first,
                          .drop_row = part ? ints(a->drop_row)[s] + i : begin + i,
                          .drop_key = part ? ints(a->drop_key)[s] + first : first};
}

static double dot_product(const real *x, const real *y, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += (double)x[i] * (double)y[i];
    return sum;
}

/* The score of x's query and the key j, capped. */
static double score_of(const struct attention_args *a, struct query x, int64_t j)
{
    double s = (double)a->scale *
               dot_product(head(a->q, x.row, x.head), head(a->k, x.key + j, x.group), a->q.size[2]);
    return a->cap > 0 ? (double)a->cap * tanh(s / (double)a->cap) : s;
}

/* The slope of the cap where it gives `score`. */
static double cap_slope(const struct attention_args *a, double score)
{
    double t = a->cap > 0 ? score / (double)a->cap : 0;
    return FAULT("attention_cap") ? 1 : 1 - t * t;
}

static double weight_drop(const struct attention_args *a, struct query x, int64_t j)
{
    uint64_t heads = (uint64_t)(a->all_heads ? a->all_heads : a->q.size[1]);
    uint64_t row =
        (drop_row0(a->drop) + (uint64_t)x.drop_row) * heads + (uint64_t)(a->head0 + x.head);
    return drop_factor(a->drop, row, x.drop_key + j, a->max_len);
}

/* o = sum of softmax(scale q k)_j drop_j v_j */
static void attend(const struct attention_args *a, struct query x, double *score, double *sum)
{
    int64_t dim = a->q.size[2];
    double max = -INFINITY, total = 0;
    for (int64_t j = 0; j < x.n; j++) {
        score[j] = score_of(a, x, j);
        max = score[j] > max ? score[j] : max;
    }
    for (int64_t j = 0; j < x.n; j++)
        total += exp(score[j] - max);
    memset(sum, 0, (size_t)dim * sizeof(*sum));
    for (int64_t j = 0; j < x.n; j++) {
        double p = exp(score[j] - max) / total * weight_drop(a, x, j);
        for (int64_t d = 0; d < dim; d++)
            sum[d] += p * (double)head(a->v, x.key + j, x.group)[d];
    }
    for (int64_t d = 0; d < dim; d++)
        head(a->o, x.row, x.head)[d] = (real)sum[d];
    if (!tensor_none(a->lse))
        row(a->lse, x.head)[x.row] = (real)(x.n ? max + log(total) : -INFINITY);
}

size_t REF(attention_scratch)(const struct dev_desc *d, const void *args)
{
    const struct attention_args *a = args;
    (void)d;
    return (size_t)(a->max_len + a->q.size[2]) * sizeof(double);
}

void REF(attention)(struct ops *o, const void *args, void *scratch)
{
    const struct attention_args *a = args;
    double *score = scratch, *sum = score + a->max_len;
    (void)o;
    for (int64_t s = 0; s < a->k_len.size[0]; s++) {
        int64_t count = ints(a->q_start)[s + 1] - ints(a->q_start)[s];
        for (int64_t i = 0; i < count; i++)
            for (int64_t h = 0; h < a->q.size[1]; h++)
                attend(a, query_at(a, s, i, h), score, sum);
    }
}

/*
 * With p_j = exp(score_j - lse), w_j = drop_j p_j and dp_j = drop_j (dout v_j):
 *     dv_j += w_j dout, ds_j = p_j (dp_j - dout o) slope_j, dq += scale ds_j k_j, dk_j += scale
 * ds_j q dout o is the sum of p dp over all keys, of which this may be a part.
 */
static void attend_bwd(const struct attention_bwd_args *b, const struct attention_args *a,
                       struct query x, double *scratch)
{
    int64_t dim = a->q.size[2];
    double *p = scratch, *dp = p + a->max_len, *slope = dp + a->max_len, *sum = slope + a->max_len;
    const real *q = head(a->q, x.row, x.head), *dout = head(b->dout, x.row, x.head);
    double lse = (double)row(a->lse, x.head)[x.row];
    double delta = dot_product(dout, head(a->o, x.row, x.head), dim);
    memset(sum, 0, (size_t)dim * sizeof(*sum));
    for (int64_t j = 0; j < x.n; j++) {
        slope[j] = score_of(a, x, j);
        p[j] = exp(slope[j] - lse);
        slope[j] = cap_slope(a, slope[j]);
        dp[j] = weight_drop(a, x, j) * dot_product(dout, head(a->v, x.key + j, x.group), dim);
    }
    if (FAULT("attention_bwd"))
        delta = 0;
    for (int64_t j = 0; j < x.n; j++) {
        double w = p[j] * weight_drop(a, x, j),
               ds = (double)a->scale * slope[j] * p[j] * (dp[j] - delta);
        for (int64_t d = 0; d < dim; d++) {
            head(b->dv, x.key + j, x.group)[d] += (real)(w * (double)dout[d]);
            head(b->dk, x.key + j, x.group)[d] += (real)(ds * (double)q[d]);
            sum[d] += ds * (double)head(a->k, x.key + j, x.group)[d];
        }
    }
    for (int64_t d = 0; d < dim; d++)
        head(b->dq, x.row, x.head)[d] = (real)sum[d];
}

static void zero_rows(struct tensor t)
{
    for (int64_t i = 0; i < t.size[0]; i++)
        memset(row(t, i), 0, (size_t)(t.size[1] * t.size[2]) * sizeof(real));
}

size_t REF(attention_bwd_scratch)(const struct dev_desc *d, const void *args)
{
    const struct attention_bwd_args *b = args;
    (void)d;
    return (size_t)(3 * b->fwd.max_len + b->fwd.q.size[2]) * sizeof(double);
}

void REF(attention_bwd)(struct ops *o, const void *args, void *scratch)
{
    const struct attention_bwd_args *b = args;
    const struct attention_args *a = &b->fwd;
    (void)o;
    zero_rows(b->dk);
    zero_rows(b->dv);
    for (int64_t s = 0; s < a->k_len.size[0]; s++) {
        int64_t count = ints(a->q_start)[s + 1] - ints(a->q_start)[s];
        for (int64_t i = 0; i < count; i++)
            for (int64_t h = 0; h < a->q.size[1]; h++)
                attend_bwd(b, a, query_at(a, s, i, h), scratch);
    }
}

void REF(merge)(struct ops *o, const void *args, void *scratch)
{
    const struct merge_args *a = args;
    (void)o;
    (void)scratch;
    for (int64_t i = 0; i < a->o.size[0]; i++)
        for (int64_t h = 0; h < a->o.size[1]; h++) {
            double x = (double)row(a->lse, h)[i], y = (double)row(a->part_lse, h)[i];
            double max = x > y ? x : y, sum = exp(x - max) + exp(y - max);
            double u = exp(x - max) / sum, v = exp(y - max) / sum;
            if (max == -INFINITY)
                u = v = 0;
            if (FAULT("merge"))
                u = v = 0.5;
            for (int64_t d = 0; d < a->o.size[2]; d++) {
                real *to = &head(a->o, i, h)[d];
                *to = (real)(u * (double)*to + v * (double)head(a->part_o, i, h)[d]);
            }
            row(a->lse, h)[i] = max == -INFINITY ? (real)max : (real)(max + log(sum));
        }
}

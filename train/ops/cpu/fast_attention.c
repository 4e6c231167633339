/* SPDX-License-Identifier: Apache-2.0 */
#include "train/ops/cpu/fast_attention.h"

#include <float.h>

#include "base/core/fault.h"
#include "train/ops/cpu/vec_edge.h"

/*
 * Forward, block by block of queries and keys, with a running maximum and sum (Milakov & Gimelshein
 * 2018, Dao et al. 2022). A task is QUERIES rows of q in one head. The keys' blocks begin at the
 * sequence's key 0, so a query's bits do not depend on the rows beside it. Keys and values are
 * copied before they are used: in a packed row of q, k and v each lies in a page of its own.
 */

enum {
    QUERIES = 64, /* of a task: whole panels of TILE_N */
    KEYS = 84     /* in a block: a multiple of TILE_M */
};

struct job {
    const struct attention_args *a;
    float *scratch;
    int64_t each;   /* floats of scratch for a thread */
    int64_t blocks; /* of rows; 0: tasks are sequences and heads of keys */
};

/* One thread's scratch, and what runs along for each query while keys go by. */
struct work {
    float *k, *v; /* [KEYS][D] */
    float *s;     /* [KEYS][TILE_N] */
    float *q, *o; /* panels [QUERIES / TILE_N][D][TILE_N] */
    float *f;     /* dropout's factors, like s */
    float *line;  /* [VL][KEYS] */
    float max[QUERIES], sum[QUERIES], scale[QUERIES];
};

static bool few_queries(const struct attention_args *a)
{
    return a->q.size[0] <= FEW_QUERIES * a->k_len.size[0];
}

/* The same for few queries and many, for a workspace that is measured once has to do for both. */
static int64_t scratch_floats(const struct attention_args *a)
{
    int64_t drop = a->drop.p > 0 ? KEYS * (TILE_N + VL) : 0;
    int64_t n = 2 * (KEYS + QUERIES) * a->q.size[2] + KEYS * TILE_N + drop;
    int64_t few = FAST(attend_few_scratch)(a);
    return round_up(n > few ? n : few, 64);
}

size_t FAST(attention_scratch)(const struct dev_desc *d, const void *args)
{
    return (size_t)(scratch_floats(args) * d->threads) * sizeof(float);
}

static void set_work(struct work *w, int64_t dim, float *scratch)
{
    w->s = scratch;
    w->q = w->s + KEYS * TILE_N;
    w->o = w->q + QUERIES * dim;
    w->k = w->o + QUERIES * dim;
    w->v = w->k + KEYS * dim;
    w->f = w->v + KEYS * dim;
    w->line = w->f + KEYS * TILE_N;
}

/* ---- a block of keys and a panel of queries, of which the first is `at` ---------------------- */

/* Scores of n keys become weights; maximum and sum go along. */
static void soften(struct work *w, int64_t at, int64_t lanes, int64_t n)
{
    for (int64_t j = 0; j < lanes; j += VL) {
        vf old = v_load(w->max + at + j), max = old, sum = v_zero();
        for (int64_t i = 0; i < n; i++)
            max = v_max(v_load(w->s + i * TILE_N + j), max);
        for (int64_t i = 0; i < n; i++) {
            vf p = weight_of(v_load(w->s + i * TILE_N + j) - max);
            sum = sum + p;
            v_store(w->s + i * TILE_N + j, p);
        }
        vf scale = weight_of(old - max);
        v_store(w->max + at + j, max);
        v_store(w->scale + at + j, scale);
        v_store(w->sum + at + j, v_fma(v_load(w->sum + at + j), scale, sum));
    }
}

static void drop_weights(const struct attention_args *a, const struct queries *x, struct work *w,
                         int64_t at, int64_t lanes, int64_t key, int64_t n)
{
    drop_lanes(a, x, at, key, n, w->line, w->f, TILE_N);
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < lanes; j += VL) {
            float *p = w->s + i * TILE_N + j;
            v_store(p, v_load(p) * v_load(w->f + i * TILE_N + j));
        }
}

static void scale_lanes(float *x, int64_t dim, int64_t lanes, const float *factor)
{
    for (int64_t d = 0; d < dim; d++)
        for (int64_t j = 0; j < lanes; j += VL)
            v_store(x + d * TILE_N + j, v_load(x + d * TILE_N + j) * v_load(factor + j));
}

static void attend_panel(const struct attention_args *a, const struct queries *x, struct work *w,
                         int64_t at, int64_t key, int64_t n)
{
    int64_t dim = a->q.size[2], count = x->count - at;
    int64_t lanes = count < TILE_N ? round_up(count, VL) : TILE_N;
    product((struct tile){.k = dim,
                          .a = w->k,
                          .row = dim,
                          .col = 1,
                          .b = w->q + at * dim,
                          .ldb = TILE_N,
                          .c = w->s,
                          .ldc = TILE_N,
                          .rows = n,
                          .cols = lanes});
    cap_scores(a, lanes, n, w->s, TILE_N);
    hide(a, x, at, key, n, w->s, TILE_N);
    soften(w, at, lanes, n);
    if (a->drop.p > 0)
        drop_weights(a, x, w, at, lanes, key, n);
    scale_lanes(w->o + at * dim, dim, lanes, w->scale + at);
    product((struct tile){.k = n,
                          .a = w->v,
                          .row = 1,
                          .col = dim,
                          .b = w->s,
                          .ldb = TILE_N,
                          .c = w->o + at * dim,
                          .ldc = TILE_N,
                          .rows = dim,
                          .cols = lanes,
                          .add = true});
}

/* ---- a block of queries ---------------------------------------------------------------------- */

static void begin_queries(const struct attention_args *a, const struct queries *x, struct work *w)
{
    int64_t dim = a->q.size[2];
    for (int i = 0; i < QUERIES; i++) {
        w->max[i] = -FLT_MAX;
        w->sum[i] = 0;
        w->scale[i] = a->scale;
    }
    for (int64_t at = 0; at < x->count; at += TILE_N) {
        panel_along(head_at(a->q, x->row + at, x->head), a->q.stride, dim, x->count - at,
                    w->q + at * dim);
        scale_lanes(w->q + at * dim, dim, TILE_N, w->scale);
    }
    memset(w->o, 0, (size_t)(QUERIES * dim) * sizeof(float));
}

static void end_queries(const struct attention_args *a, const struct queries *x, struct work *w)
{
    int64_t dim = a->q.size[2];
    for (int64_t i = 0; i < x->count && !tensor_none(a->lse); i++)
        row(a->lse, x->head)[x->row + i] = (float)((double)w->max[i] + log((double)w->sum[i]));
    for (int64_t i = 0; i < QUERIES; i++)
        w->scale[i] = i < x->count && w->sum[i] > 0 ? 1 / w->sum[i] : 0;
    for (int64_t at = 0; at < x->count; at += TILE_N)
        unpack_lanes(w->o + at * dim, dim, x->count - at < TILE_N ? x->count - at : TILE_N,
                     w->scale + at, head_at(a->o, x->row + at, x->head), a->o.stride, false);
}

/* At most QUERIES queries. */
static void attend(const struct attention_args *a, const struct queries *x, struct work *w)
{
    int64_t end = x->last + x->count < x->keys ? x->last + x->count : x->keys;
    begin_queries(a, x, w);
    for (int64_t key = first_key(a, x->last), next; key < end; key = next) {
        next = (key / KEYS + 1) * KEYS < end ? (key / KEYS + 1) * KEYS : end;
        copy_head(a->k, x->key + key, x->group, next - key, w->k);
        copy_head(a->v, x->key + key, x->group, next - key, w->v);
        for (int64_t at = 0; at < x->count; at += TILE_N) {
            int64_t seen = x->last + (at + TILE_N < x->count ? at + TILE_N : x->count);
            if (key < seen && next > first_key(a, x->last + at))
                attend_panel(a, x, w, at, key, (next < seen ? next : seen) - key);
        }
    }
    end_queries(a, x, w);
}

/* Rows of one head, which may belong to several sequences, of which s is the first. */
static void attend_rows(const struct attention_args *a, int64_t s, int64_t head, struct range rows,
                        float *scratch)
{
    struct work w;
    set_work(&w, a->q.size[2], scratch);
    for (int64_t i = rows.begin, next; i < rows.end; i = next) {
        while (ints(a->q_start)[s + 1] <= i)
            s++;
        next = i + QUERIES < rows.end ? i + QUERIES : rows.end;
        if (next > ints(a->q_start)[s + 1])
            next = ints(a->q_start)[s + 1];
        struct queries x = queries_at(a, s, head, (struct range){i, next});
        attend(a, &x, &w);
    }
}

/* ---- tasks ----------------------------------------------------------------------------------- */

/* The sequence that row i of q belongs to. */
static int64_t sequence_of(const struct attention_args *a, int64_t i)
{
    int64_t low = 0, high = a->k_len.size[0] - 1;
    while (low < high) {
        int64_t middle = (low + high) / 2;
        if (ints(a->q_start)[middle + 1] <= i)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/*
 * Late rows see more keys: a head's blocks are taken from both ends in turn, so that any run of
 * tasks has its share of both.
 */
static void rows_task(void *arg, int task, int thread)
{
    const struct job *j = arg;
    int64_t head = task / j->blocks, i = task % j->blocks;
    i = i % 2 ? j->blocks - 1 - i / 2 : i / 2;
    struct range rows = {i * QUERIES, (i + 1) * QUERIES};
    if (rows.end > j->a->q.size[0])
        rows.end = j->a->q.size[0];
    attend_rows(j->a, sequence_of(j->a, rows.begin), head, rows, j->scratch + thread * j->each);
}

static void few_task(void *arg, int task, int thread)
{
    const struct job *j = arg;
    const struct attention_args *a = j->a;
    int64_t groups = a->k.size[1], s = task / groups, group = task % groups;
    int64_t heads = a->q.size[1] / groups;
    struct range rows = {ints(a->q_start)[s], ints(a->q_start)[s + 1]};
    float *scratch = j->scratch + thread * j->each;
    if (rows.end - rows.begin <= FEW_QUERIES) {
        FAST(attend_few)(a, s, group, scratch);
        return;
    }
    for (int64_t h = group * heads; h < (group + 1) * heads; h++)
        attend_rows(a, s, h, rows, scratch);
}

void FAST(attention)(struct ops *o, const void *args, void *scratch)
{
    const struct attention_args *a = args;
    struct job j = {.a = a, .scratch = scratch, .each = scratch_floats(a)};
    if (few_queries(a)) {
        pool_run(o->dev->pool, (int)(a->k_len.size[0] * a->k.size[1]), few_task, &j);
        return;
    }
    j.blocks = (a->q.size[0] + QUERIES - 1) / QUERIES;
    pool_run(o->dev->pool, (int)(a->q.size[1] * j.blocks), rows_task, &j);
}

/* ---- merging parts -------------------------------------------------------------------------- */

/* o = u o + v part over one head of a row. */
static void weigh_rows(float *o, const float *part, int64_t dim, float u, float v)
{
    for (int64_t d = 0; d < dim; d += VL) {
        int64_t n = dim - d;
        v_put(o + d, n, v_fma(v_get(part + d, n), v_set1(v), v_get(o + d, n) * v_set1(u)));
    }
}

static void merge_row(const struct merge_args *a, int64_t i)
{
    int64_t dim = a->o.size[2];
    for (int64_t h = 0; h < a->o.size[1]; h++) {
        float *lse = row(a->lse, h) + i, x = *lse, y = row(a->part_lse, h)[i];
        float max = x > y ? x : y, u = expf(x - max), v = expf(y - max), sum = u + v;
        if (max == -INFINITY) {
            u = v = 0;
            sum = 1;
        }
        if (FAULT("fast_merge"))
            sum = 1;
        weigh_rows(row(a->o, i) + h * dim, row(a->part_o, i) + h * dim, dim, u / sum, v / sum);
        *lse = max == -INFINITY ? max : max + logf(sum);
    }
}

static void merge_task(void *arg, int task, int thread)
{
    const struct merge_args *a = arg;
    struct range r = grain_range(a->o.size[0], a->o.size[1] * a->o.size[2], task);
    (void)thread;
    for (int64_t i = r.begin; i < r.end; i++)
        merge_row(a, i);
}

void FAST(merge)(struct ops *o, const void *args, void *scratch)
{
    struct merge_args a = *(const struct merge_args *)args;
    (void)scratch;
    pool_run(o->dev->pool, grain_tasks(a.o.size[0], a.o.size[1] * a.o.size[2]), merge_task, &a);
}

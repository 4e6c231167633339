/* SPDX-License-Identifier: Apache-2.0 */
#include "train/ops/cpu/fast_attention.h"

#include "base/core/fault.h"

/*
 * Backward, block by block of queries and keys; weights are computed again from the saved lse. With
 * p = exp(score - lse), delta = dout o and f the dropout's factor:
 *     ds = p (f dout v - delta), dv += f p dout, dk += ds scale q, dq = scale times the sum of ds k
 * A task owns a range of keys of one sequence and head of keys, and so their dk and dv, for all
 * queries in order. It goes through them KEPT at a time and copies those, for in a packed row of q,
 * k and v each lies in a page of its own. Where there are few sequences and heads, the keys are cut
 * into several ranges; then every range but the first has a dq of its own, added up at the end.
 */

enum {
    QUERIES = 64,         /* in a block */
    KEYS = 84,            /* in a block: a multiple of TILE_M */
    KEPT = 336,           /* keys copied at a time */
    TASKS = 64,           /* wanted */
    PARTS = 4,            /* of the keys, at most, */
    PART_KEYS = 256,      /* while a part has so many */
    PARTS_MOST = 16 << 20 /* floats of all their dq */
};

struct job {
    const struct attention_bwd_args *b;
    float *scratch;
    int64_t each;  /* floats of scratch for a thread */
    float *part;   /* dq of parts 1 .. parts - 1 */
    int64_t parts; /* of a sequence's keys */
};

/* One thread's scratch. Panels: [QUERIES / TILE_N][D][TILE_N]. */
struct work {
    struct range kept;           /* keys */
    float *k, *v, *dk, *dv;      /* theirs, [KEPT][D] */
    int64_t wide;                /* D rounded up to vectors */
    float *q, *dout;             /* [QUERIES][wide]; q times scale */
    float *q_lanes, *dout_lanes; /* panels */
    float *dq;                   /* panels */
    float *p, *ds;               /* [KEYS][QUERIES] */
    float *slope;                /* of the cap, the same */
    float *f, *line;             /* dropout's factors, the same, and [VL][KEYS] */
    float lse[QUERIES], delta[QUERIES];
};

/* A block of keys. */
struct keys {
    int64_t first, n;
};

static int64_t attention_bwd_smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Floats of one dq. */
static int64_t dq_floats(const struct attention_args *a)
{
    return round_up(a->q.size[0] * a->q.size[1] * a->q.size[2], 64);
}

/*
 * Floats for the dq of further parts. A workspace that is measured once has to do for fewer rows
 * and sequences too, which are cut into more parts: so this looks at neither.
 */
static int64_t parts_floats(const struct attention_args *a)
{
    if (TASKS / a->k.size[1] < 2 || a->max_len <= PART_KEYS)
        return 0;
    return attention_bwd_smaller(
        (PARTS - 1) * round_up(a->max_len * a->q.size[1] * a->q.size[2], 64), PARTS_MOST);
}

static int64_t parts_of(const struct attention_args *a)
{
    int64_t owners = at_least_one(a->k_len.size[0] * a->k.size[1]);
    int64_t parts = attention_bwd_smaller(TASKS / owners, (a->max_len + PART_KEYS - 1) / PART_KEYS);
    int64_t fit = 1 + parts_floats(a) / at_least_one(dq_floats(a));
    return at_least_one(attention_bwd_smaller(attention_bwd_smaller(parts, PARTS), fit));
}

static int64_t kept_of(const struct attention_args *a)
{
    return a->max_len < KEPT ? a->max_len : KEPT;
}

static int64_t thread_floats(const struct attention_args *a)
{
    int64_t dim = a->q.size[2], drop = a->drop.p > 0 ? KEYS * (QUERIES + VL) : 0;
    int64_t slope = a->cap > 0 ? KEYS * QUERIES : 0;
    int64_t n = QUERIES * (2 * round_up(dim, VL) + 3 * dim) + 2 * KEYS * QUERIES + drop + slope;
    return round_up(n + 4 * kept_of(a) * dim, 64);
}

size_t FAST(attention_bwd_scratch)(const struct dev_desc *d, const void *args)
{
    const struct attention_args *a = &((const struct attention_bwd_args *)args)->fwd;
    return (size_t)(thread_floats(a) * d->threads + parts_floats(a)) * sizeof(float);
}

static void set_work(struct work *w, const struct attention_args *a, float *scratch)
{
    int64_t dim = a->q.size[2], kept = kept_of(a) * dim;
    w->wide = round_up(dim, VL);
    w->q = scratch;
    w->dout = w->q + QUERIES * w->wide;
    w->q_lanes = w->dout + QUERIES * w->wide;
    w->dout_lanes = w->q_lanes + QUERIES * dim;
    w->dq = w->dout_lanes + QUERIES * dim;
    w->p = w->dq + QUERIES * dim;
    w->ds = w->p + KEYS * QUERIES;
    w->k = w->ds + KEYS * QUERIES;
    w->v = w->k + kept;
    w->dk = w->v + kept;
    w->dv = w->dk + kept;
    w->slope = w->dv + kept;
    w->f = w->slope + (a->cap > 0 ? KEYS * QUERIES : 0);
    w->line = w->f + KEYS * QUERIES;
}

/* ---- a block of queries ---------------------------------------------------------------------- */

static void copy_scaled(const float *from, int64_t dim, float scale, float *ret)
{
    for (int64_t d = 0; d < dim; d += VL)
        v_store(ret + d, v_load_n(from + d, dim - d) * v_set1(scale));
}

static float dot(const float *x, const float *y, int64_t dim)
{
    vf sum = v_zero();
    for (int64_t d = 0; d < dim; d += VL)
        sum = v_fma(v_load_n(x + d, dim - d), v_load_n(y + d, dim - d), sum);
    return v_sum(sum);
}

static void pack_queries(const struct attention_bwd_args *b, const struct queries *x,
                         struct work *w)
{
    const struct attention_args *a = &b->fwd;
    int64_t dim = a->q.size[2], side = dim * TILE_N;
    for (int64_t i = 0; i < QUERIES; i++) {
        w->lse[i] = INFINITY; /* lanes without a query have no weights */
        w->delta[i] = 0;
    }
    for (int64_t i = 0; i < x->count; i++) {
        const float *dout = head_at(b->dout, x->row + i, x->head);
        copy_scaled(head_at(a->q, x->row + i, x->head), dim, a->scale, w->q + i * w->wide);
        copy_scaled(dout, dim, 1, w->dout + i * w->wide);
        w->lse[i] = row(a->lse, x->head)[x->row + i];
        if (w->lse[i] == -INFINITY) /* sees no key, here or elsewhere */
            w->lse[i] = INFINITY;
        if (!FAULT("fast_attention_bwd"))
            w->delta[i] = dot(dout, head_at(a->o, x->row + i, x->head), dim);
    }
    for (int64_t j = 0; j * TILE_N < x->count; j++) {
        int64_t at = j * TILE_N * w->wide, cols = x->count - j * TILE_N;
        panel_along(w->q + at, w->wide, dim, cols, w->q_lanes + j * side);
        panel_along(w->dout + at, w->wide, dim, cols, w->dout_lanes + j * side);
    }
    memset(w->dq, 0, (size_t)(QUERIES * dim) * sizeof(float));
}

/* ---- a block of keys ------------------------------------------------------------------------- */

/* [n][lanes] = rows of k or v times a panel */
static void against(const float *rows, int64_t dim, int64_t n, const float *panel, int64_t lanes,
                    float *ret)
{
    product((struct tile){.k = dim,
                          .a = rows,
                          .row = dim,
                          .col = 1,
                          .b = panel,
                          .ldb = TILE_N,
                          .c = ret,
                          .ldc = QUERIES,
                          .rows = n,
                          .cols = lanes});
}

/* Scores in p become weights, products in ds what reaches the scores; queries from `first` on. */
static void soften(const struct work *w, int64_t first, int64_t lanes, int64_t n, bool drop)
{
    for (int64_t j = first; j < first + lanes; j += VL) {
        vf lse = v_load(w->lse + j), delta = v_load(w->delta + j);
        for (int64_t i = 0; i < n; i++) {
            int64_t at = i * QUERIES + j;
            vf p = weight_of(v_load(w->p + at) - lse), dp = v_load(w->ds + at);
            if (drop) {
                vf f = v_load(w->f + at);
                v_store(w->ds + at, p * v_fma(f, dp, v_zero() - delta));
                v_store(w->p + at, p * f);
            } else {
                v_store(w->ds + at, p * (dp - delta));
                v_store(w->p + at, p);
            }
        }
    }
}

/* The slope of the cap that gave these scores. */
static void through_cap(const struct attention_args *a, int64_t lanes, int64_t n, const float *s,
                        float *ret)
{
    vf by = v_set1(1 / a->cap), one = v_set1(1);
    for (int64_t i = 0; a->cap > 0 && i < n; i++)
        for (int64_t j = 0; j < lanes; j += VL) {
            vf t = v_load(s + i * QUERIES + j) * by;
            v_store(ret + i * QUERIES + j, FAULT("attention_cap") ? one : one - t * t);
        }
}

static void times_slope(const struct work *w, int64_t first, int64_t lanes, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = first; j < first + lanes; j += VL) {
            float *p = w->ds + i * QUERIES + j;
            v_store(p, v_load(p) * v_load(w->slope + i * QUERIES + j));
        }
}

/* What tiles of dk and dv reach beyond the last key that a panel sees. */
static void zero_below(const struct work *w, int64_t first, int64_t begin, int64_t n)
{
    for (int64_t i = begin; i < n && i < begin + TILE_M; i++)
        for (int64_t j = first; j < first + TILE_N; j += VL) {
            v_store(w->p + i * QUERIES + j, v_zero());
            v_store(w->ds + i * QUERIES + j, v_zero());
        }
}

/* Weights and slopes of one panel of queries, and its dq. */
static void panel_bwd(const struct attention_args *a, const struct queries *x, const struct work *w,
                      int64_t first, struct keys k)
{
    int64_t dim = a->q.size[2], n = k.n, count = x->count - first;
    int64_t from = (k.first - w->kept.begin) * dim;
    int64_t lanes = count < TILE_N ? round_up(count, VL) : TILE_N;
    k.n = x->last + first + (count < TILE_N ? count : TILE_N) - k.first;
    k.n = k.n < 0 ? 0 : k.n < n ? k.n : n;
    against(w->k + from, dim, k.n, w->q_lanes + first * dim, lanes, w->p + first);
    against(w->v + from, dim, k.n, w->dout_lanes + first * dim, lanes, w->ds + first);
    cap_scores(a, lanes, k.n, w->p + first, QUERIES);
    through_cap(a, lanes, k.n, w->p + first, w->slope + first);
    hide(a, x, first, k.first, k.n, w->p + first, QUERIES);
    if (a->drop.p > 0)
        drop_lanes(a, x, first, k.first, k.n, w->line, w->f + first, QUERIES);
    soften(w, first, lanes, k.n, a->drop.p > 0);
    if (a->cap > 0)
        times_slope(w, first, lanes, k.n);
    zero_below(w, first, k.n, n);
    product((struct tile){.k = k.n,
                          .a = w->k + from,
                          .row = 1,
                          .col = dim,
                          .b = w->ds + first,
                          .ldb = QUERIES,
                          .c = w->dq + first * dim,
                          .ldc = TILE_N,
                          .rows = dim,
                          .cols = lanes,
                          .add = true});
}

/*
 * d += weights [keys][queries] times rows of queries; queries that see no key of a tile are left
 * out.
 */
static void into_keys(float *d, int64_t dim, const struct queries *x, const struct work *w,
                      struct keys k, const float *weight, const float *rows)
{
    int64_t parts = (k.n + TILE_M - 1) / TILE_M;
    for (int64_t i = 0; i < parts; i++) {
        struct range r = even_range(k.n, parts, i);
        int64_t from = k.first + r.begin > x->last ? k.first + r.begin - x->last : 0;
        struct tile t = {.k = x->count - from,
                         .a = weight + r.begin * QUERIES + from,
                         .row = QUERIES,
                         .col = 1,
                         .ldb = w->wide,
                         .ldc = dim,
                         .rows = r.end - r.begin,
                         .add = true};
        for (int64_t j = 0; j < dim; j += TILE_N) {
            t.b = rows + from * w->wide + j;
            t.c = d + (k.first - w->kept.begin + r.begin) * dim + j;
            t.cols = dim - j < TILE_N ? dim - j : TILE_N;
            tile_run(&t);
        }
    }
}

/* dq is scale times what has been summed up, on top of what the keys before gave it. */
static void store_dq(const struct attention_args *a, const struct queries *x, struct work *w,
                     struct tensor dq, bool add)
{
    int64_t dim = a->q.size[2];
    float scale[TILE_N];
    for (int i = 0; i < TILE_N; i++)
        scale[i] = a->scale;
    for (int64_t i = 0; i < x->count; i += TILE_N)
        unpack_lanes(w->dq + i * dim, dim, x->count - i < TILE_N ? x->count - i : TILE_N, scale,
                     head_at(dq, x->row + i, x->head), dq.stride, add);
}

/* All that a block of queries has to do with the keys at hand. */
static void queries_bwd(const struct attention_bwd_args *b, const struct queries *x, struct work *w,
                        struct tensor dq, bool add)
{
    int64_t begin = first_key(&b->fwd, x->last), end = x->last + x->count, dim = dq.size[2];
    begin = begin > w->kept.begin ? begin : w->kept.begin;
    end = end < w->kept.end ? end : w->kept.end;
    if (begin >= end && add)
        return;
    pack_queries(b, x, w);
    for (int64_t key = begin; key < end; key += KEYS) {
        struct keys k = {key, end - key < KEYS ? end - key : KEYS};
        for (int64_t i = 0; i < x->count; i += TILE_N)
            panel_bwd(&b->fwd, x, w, i, k);
        into_keys(w->dv, dim, x, w, k, w->p, w->dout);
        into_keys(w->dk, dim, x, w, k, w->ds, w->q);
    }
    store_dq(&b->fwd, x, w, dq, add);
}

/* ---- tasks ----------------------------------------------------------------------------------- */

static struct tensor part_dq(const struct job *j, int64_t part)
{
    const struct attention_args *a = &j->b->fwd;
    if (part == 0)
        return j->b->dq;
    return tensor_nd(j->part + (part - 1) * dq_floats(a), DTYPE_F32, 3, a->q.size);
}

static void store_kept(const struct attention_bwd_args *b, int64_t key, int64_t group,
                       const struct work *w)
{
    int64_t dim = b->dk.size[2];
    for (int64_t i = 0; i < w->kept.end - w->kept.begin; i++) {
        memcpy(head_at(b->dk, key + i, group), w->dk + i * dim, (size_t)dim * sizeof(float));
        memcpy(head_at(b->dv, key + i, group), w->dv + i * dim, (size_t)dim * sizeof(float));
    }
}

/* The keys at hand, with all queries of the sequence and all heads that share the keys. */
static void kept_bwd(const struct attention_bwd_args *b, int64_t s, int64_t group, struct tensor dq,
                     bool add, struct work *w)
{
    const struct attention_args *a = &b->fwd;
    int64_t n = w->kept.end - w->kept.begin, key = ints(a->k_start)[s] + w->kept.begin;
    int64_t heads = a->q.size[1] / a->k.size[1], end = ints(a->q_start)[s + 1];
    size_t bytes = (size_t)(n * a->q.size[2]) * sizeof(float);
    copy_head(a->k, key, group, n, w->k);
    copy_head(a->v, key, group, n, w->v);
    memset(w->dk, 0, bytes);
    memset(w->dv, 0, bytes);
    for (int64_t h = group * heads; h < (group + 1) * heads; h++)
        for (int64_t i = ints(a->q_start)[s], next; i < end; i = next) {
            next = i + QUERIES < end ? i + QUERIES : end;
            struct queries x = queries_at(a, s, h, (struct range){i, next});
            queries_bwd(b, &x, w, dq, add);
        }
    store_kept(b, key, group, w);
}

/* A task's range of keys, KEPT at a time. */
static void keys_task(void *arg, int task, int thread)
{
    const struct job *j = arg;
    const struct attention_args *a = &j->b->fwd;
    int64_t part = task % j->parts, owner = task / j->parts, groups = a->k.size[1];
    struct work w;
    part = part % 2 ? j->parts - 1 - part / 2 : part / 2; /* early keys have more queries */
    struct range keys = even_range(ints(a->k_len)[owner / groups], j->parts, part);
    int64_t times = at_least_one((keys.end - keys.begin + KEPT - 1) / KEPT);
    set_work(&w, a, j->scratch + thread * j->each);
    for (int64_t i = 0; i < times; i++) {
        w.kept = even_range(keys.end - keys.begin, times, i);
        w.kept.begin += keys.begin;
        w.kept.end += keys.begin;
        kept_bwd(j->b, owner / groups, owner % groups, part_dq(j, part), i > 0, &w);
    }
}

/* Rows of k and v that belong to sequences; the others' gradients are zeros. */
static int64_t owned_rows(const struct attention_args *a)
{
    int64_t n = 0;
    for (int64_t s = 0; s < a->k_len.size[0]; s++)
        n += ints(a->k_len)[s];
    return n;
}

static void zero_task(void *arg, int task, int thread)
{
    const struct attention_bwd_args *b = arg;
    int64_t width = b->dk.size[1] * b->dk.size[2];
    struct range r = grain_range(b->dk.size[0], width, task);
    (void)thread;
    for (int64_t i = r.begin; i < r.end; i++) {
        memset(row(b->dk, i), 0, (size_t)width * sizeof(float));
        memset(row(b->dv, i), 0, (size_t)width * sizeof(float));
    }
}

static void sum_task(void *arg, int task, int thread)
{
    const struct job *j = arg;
    struct tensor dq = j->b->dq;
    int64_t width = dq.size[1] * dq.size[2];
    struct range r = grain_range(dq.size[0], width, task);
    (void)thread;
    for (int64_t i = r.begin; i < r.end; i++)
        for (int64_t part = 1; part < j->parts; part++) {
            const float *from = row(part_dq(j, part), i);
            float *to = row(dq, i);
            for (int64_t d = 0; d < width; d++)
                to[d] += from[d];
        }
}

void FAST(attention_bwd)(struct ops *o, const void *args, void *scratch)
{
    struct attention_bwd_args b = *(const struct attention_bwd_args *)args;
    const struct attention_args *a = &b.fwd;
    struct pool *pool = o->dev->pool;
    int64_t width = b.dk.size[1] * b.dk.size[2];
    struct job j = {.b = &b, .scratch = scratch, .each = thread_floats(a), .parts = parts_of(a)};
    j.part = j.scratch + j.each * o->dev->desc.threads;
    if (owned_rows(a) < b.dk.size[0])
        pool_run(pool, grain_tasks(b.dk.size[0], width), zero_task, &b);
    pool_run(pool, (int)(a->k_len.size[0] * a->k.size[1] * j.parts), keys_task, &j);
    if (j.parts > 1)
        pool_run(pool, grain_tasks(a->q.size[0], a->q.size[1] * a->q.size[2]), sum_task, &j);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "train/ops/cpu/fast.h"

#include "base/core/fault.h"
#include "train/ops/cpu/vec_drop.h"
#include "train/ops/cpu/vec_edge.h"

enum {
    CHUNK = 256,  /* columns in hand at a time */
    BUCKETS = 16, /* of table rows in backward, at most; a power of two */
};

static int64_t embed_smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Factors of columns j .. j + n - 1; NULL without dropout. */
static const float *factors(struct dropout d, int64_t i, int64_t width, int64_t j, int64_t n,
                            float *space)
{
    if (!(d.p > 0))
        return NULL;
    drop_factors(d, drop_row(d, i), width, j, n, space);
    return space;
}

/* The noise of columns j .. j + n - 1; NULL without. */
static const float *noise_of(const struct embed_args *a, int64_t i, int64_t j, int64_t n,
                             float *space)
{
    uint64_t first = drop_element(a->drop, i, a->y.size[1]) + (uint64_t)j;
    uint64_t seed = drop_seed(a->drop);
    if (!(a->noise > 0))
        return NULL;
    for (int64_t k = 0; k < n;) {
        uint64_t e = first + (uint64_t)k;
        struct rng4 r = rng_block(seed, RNG_NOISE, 0, e / 4);
        for (uint64_t w = e % 4; w < 4 && k < n; w++, k++)
            space[k] = a->noise * (2 * rng_unit(r.v[w]) - 1);
    }
    return space;
}

/* The table's row that has `id`; -1: it is not here. */
static int64_t row_of_id(struct tensor table, int32_t id, bool shard, int64_t first)
{
    int64_t i = id - (shard ? first : 0);
    return shard && (i < 0 || i >= table.size[0]) ? -1 : i;
}

/* The factor of a table's rows. */
static vf embed_scale(double scale)
{
    return v_set1(scale != 0 ? (float)scale : 1);
}

/* ---- forward --------------------------------------------------------------------------------- */

static void embed_row(const struct embed_args *a, int64_t i)
{
    int64_t width = a->y.size[1];
    int64_t at = row_of_id(a->tok, ints(a->id)[i], a->shard, a->first);
    const float *tok = at < 0 ? NULL : row(a->tok, at);
    const float *pos = tensor_none(a->pos) ? NULL : row(a->pos, ints(a->position)[i]);
    float *y = row(a->y, i), space[CHUNK], noise[CHUNK];
    vf scale = embed_scale(a->scale);
    for (int64_t c = 0; c < width; c += CHUNK) {
        int64_t end = embed_smaller(c + CHUNK, width);
        const float *f = factors(a->drop, i, width, c, end - c, space);
        const float *u = noise_of(a, i, c, end - c, noise);
        for (int64_t j = c; j < end; j += VL) {
            int64_t n = end - j;
            vf v = tok ? v_get(tok + j, n) * scale : v_zero();
            if (pos)
                v = v + v_get(pos + j, n);
            if (u)
                v = v + v_get(u + (j - c), n);
            if (f)
                v = v * v_get(f + (j - c), n);
            v_put(y + j, n, v);
        }
    }
}

static void embed_task(void *arg, int task, int thread)
{
    const struct embed_args *a = arg;
    struct range r = grain_range(a->y.size[0], a->y.size[1], task);
    (void)thread;
    for (int64_t i = r.begin; i < r.end; i++)
        embed_row(a, i);
}

void FAST(embed)(struct ops *o, const void *args, void *scratch)
{
    struct embed_args a = *(const struct embed_args *)args;
    (void)scratch;
    pool_run(o->dev->pool, grain_tasks(a.y.size[0], a.y.size[1]), embed_task, &a);
}

/*
 * ---- backward -----------------------------------------------------------------------------------
 * A task owns some columns of the table rows of a bucket, those whose number ends in the same bits,
 * and walks all of dy for them in order.
 */

struct job {
    const struct embed_bwd_args *a;
    int64_t chunks;
    int32_t buckets;
};

/* A row of dy, times `scale`. */
static void add_row(const struct embed_bwd_args *a, int64_t i, struct range cols, float *to,
                    vf scale, bool overwrite)
{
    float space[CHUNK];
    int64_t width = a->dy.size[1];
    const float *dy = row(a->dy, i);
    const float *f = factors(a->drop, i, width, cols.begin, cols.end - cols.begin, space);
    for (int64_t j = cols.begin; j < cols.end; j += VL) {
        int64_t n = cols.end - j;
        vf g = v_get(dy + j, n);
        if (f)
            g = g * v_get(f + (j - cols.begin), n);
        g = g * scale;
        v_put(to + j, n, overwrite ? g : v_get(to + j, n) + g);
    }
}

static void embed_bwd_task(void *arg, int task, int thread)
{
    const struct job *job = arg;
    const struct embed_bwd_args *a = job->a;
    int64_t n = a->dy.size[0], width = a->dy.size[1], each = job->buckets * job->chunks;
    bool tok = !tensor_none(a->dtok) && task < each;
    int64_t part = task % each, c = part / job->buckets * CHUNK;
    int32_t bucket = (int32_t)(part % job->buckets);
    const int32_t *number = ints(tok ? a->id : a->position);
    struct tensor to = tok ? a->dtok : a->dpos;
    (void)thread;
    struct range cols = {c, embed_smaller(c + CHUNK, width)};
    vf scale = embed_scale(tok && !FAULT("embed_scale") ? a->scale : 0);
    for (int64_t i = 0; i < n; i++) {
        int64_t at = row_of_id(to, number[i], tok && a->shard, a->first);
        if ((number[i] & (job->buckets - 1)) == bucket && at >= 0)
            add_row(a, i, cols, row(to, at), scale, tok && FAULT("embed_bwd"));
    }
}

void FAST(embed_bwd)(struct ops *o, const void *args, void *scratch)
{
    const struct embed_bwd_args *a = args;
    int64_t n = a->dy.size[0], width = a->dy.size[1];
    struct job job = {a, (width + CHUNK - 1) / CHUNK, 1};
    int tables = !tensor_none(a->dtok) + !tensor_none(a->dpos);
    (void)scratch;
    while (job.buckets < BUCKETS && n * embed_smaller(width, CHUNK) >= 2 * GRAIN * job.buckets)
        job.buckets *= 2;
    pool_run(o->dev->pool, tables * job.buckets * (int)job.chunks, embed_bwd_task, &job);
}

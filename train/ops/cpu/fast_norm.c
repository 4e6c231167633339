/* SPDX-License-Identifier: Apache-2.0 */
#include "train/ops/cpu/fast.h"

#include <math.h>

#include "base/core/fault.h"
#include "train/ops/cpu/vec_drop.h"
#include "train/ops/cpu/vec_edge.h"
#include "train/ops/head_norm.h"

enum {
    CHUNK = 512,  /* columns whose dropout factors are made at a time */
    GROUP = 4,    /* rows that are added to the column sums at a time */
    BLOCKS = 64,  /* of rows with column sums of their own, at most */
    SUMS = 3,     /* dw, db, dbias */
    COLUMNS = 64, /* of them that are added up at a time */
};

static int64_t norm_smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t pieces(int64_t n, int64_t each)
{
    return (n + each - 1) / each;
}

/* What is missing in a norm's weight. */
static inline vf plus_one(bool less_one)
{
    return v_set1(less_one ? 1 : 0);
}

static const float *vector_of(struct tensor t)
{
    return tensor_none(t) ? NULL : row(t, 0);
}

/* Factors of columns j .. j + n - 1; NULL without dropout. */
static inline const float *factors(struct dropout d, int64_t i, int64_t width, int64_t j, int64_t n,
                                   float *space)
{
    if (!(d.p > 0))
        return NULL;
    drop_factors(d, drop_row(d, i), width, j, n, space);
    return space;
}

/* ---- forward --------------------------------------------------------------------------------- */

static inline __attribute__((always_inline)) void residual_step(const float *x, const float *a,
                                                                const float *bias,
                                                                const float *factor, float *r,
                                                                int64_t n)
{
    vf add = v_get(a, n);
    if (bias)
        add = add + v_get(bias, n);
    if (factor)
        add = add * v_get(factor, n);
    v_put(r, n, v_get(x, n) + add);
}

/* Returns the row to be normed. */
static const float *residual(const struct norm_args *a, int64_t i)
{
    int64_t width = a->x.size[1];
    const float *x = row(a->x, i), *bias = vector_of(a->bias);
    if (tensor_none(a->a))
        return x;
    const float *add = row(a->a, i);
    float *r = row(a->r, i), space[CHUNK];
    for (int64_t c = 0; c < width; c += CHUNK) {
        int64_t end = norm_smaller(c + CHUNK, width), j = c;
        const float *f = factors(a->drop, i, width, c, end - c, space);
        for (; j + VL <= end; j += VL)
            residual_step(x + j, add + j, bias ? bias + j : NULL, f ? f + (j - c) : NULL, r + j,
                          VL);
        if (j < end)
            residual_step(x + j, add + j, bias ? bias + j : NULL, f ? f + (j - c) : NULL, r + j,
                          end - j);
    }
    return r;
}

static double mean_of(const float *r, int64_t width)
{
    vd low = vd_zero(), high = vd_zero();
    int64_t j = 0;
    for (; j + VL <= width; j += VL) {
        low = low + v_low(v_load(r + j));
        high = high + v_high(v_load(r + j));
    }
    if (j < width) {
        vf v = v_load_n(r + j, width - j);
        low = low + v_low(v);
        high = high + v_high(v);
    }
    return vd_sum(low + high) / (double)width;
}

static double square_of(const float *r, int64_t width, float mean)
{
    vd low = vd_zero(), high = vd_zero();
    vf m = v_set1(mean);
    int64_t j = 0;
    for (; j + VL <= width; j += VL) {
        vf v = v_load(r + j) - m;
        low = low + v_low(v) * v_low(v);
        high = high + v_high(v) * v_high(v);
    }
    if (j < width) {
        vf v = v_keep(v_load_n(r + j, width - j) - m, width - j);
        low = low + v_low(v) * v_low(v);
        high = high + v_high(v) * v_high(v);
    }
    return vd_sum(low + high) / (double)width;
}

static inline __attribute__((always_inline)) void scale_step(const struct norm_args *a, int64_t j,
                                                             const float *r, float *y, vf mean,
                                                             vf rstd, int64_t n)
{
    vf xhat = (v_get(r + j, n) - mean) * rstd,
       w = v_get(row(a->w, 0) + j, n) + plus_one(a->less_one);
    const float *b = vector_of(a->b);
    v_put(y + j, n, b ? v_fma(xhat, w, v_get(b + j, n)) : xhat * w);
}

static void norm_row(const struct norm_args *a, int64_t i)
{
    int64_t width = a->y.size[1], j = 0;
    const float *r = residual(a, i);
    float *y = row(a->y, i);
    double mean = a->kind == NORM_LAYER ? mean_of(r, width) : 0;
    double rest = mean - (double)(float)mean;
    double var = square_of(r, width, (float)mean) - rest * rest;
    double rstd = 1 / sqrt((var < 0 ? 0 : var) + (double)a->eps);
    vf m = v_set1((float)mean), s = v_set1((float)rstd);
    for (; j + VL <= width; j += VL)
        scale_step(a, j, r, y, m, s, VL);
    if (j < width)
        scale_step(a, j, r, y, m, s, width - j);
    if (a->kind == NORM_LAYER)
        row(a->mean, 0)[i] = (float)mean;
    row(a->rstd, 0)[i] = (float)rstd;
}

static void norm_task(void *arg, int task, int thread)
{
    const struct norm_args *a = arg;
    struct range r = grain_range(a->y.size[0], a->y.size[1], task);
    (void)thread;
    for (int64_t i = r.begin; i < r.end; i++)
        norm_row(a, i);
}

void FAST(norm)(struct ops *o, const void *args, void *scratch)
{
    struct norm_args a = *(const struct norm_args *)args;
    (void)scratch;
    pool_run(o->dev->pool, grain_tasks(a.y.size[0], a.y.size[1]), norm_task, &a);
}

/* ---- backward: blocks of rows with column sums of their own, then the blocks in order ----------
 */

struct job {
    const struct norm_bwd_args *a;
    int64_t rows, blocks;
    float *sums; /* [blocks][SUMS][width] */
};

/* A row in hand. */
struct line {
    const float *dy, *r;
    float *dr, *da;
    float mean, rstd, g_mean, gx_mean;
};

static int64_t block_rows(const struct norm_bwd_args *a)
{
    int64_t rows = grain_rows(a->dy.size[1]), even = pieces(a->dy.size[0], BLOCKS);
    return pieces(rows > even ? rows : even, GROUP) * GROUP;
}

size_t FAST(norm_bwd_scratch)(const struct dev_desc *d, const void *args)
{
    const struct norm_bwd_args *a = args;
    (void)d;
    return (size_t)(pieces(a->dy.size[0], block_rows(a)) * SUMS * a->dy.size[1]) * sizeof(float);
}

/* Fills in the means over the row of g = dy * w and of g * xhat. */
static void line_means(const struct norm_bwd_args *a, struct line *l)
{
    int64_t width = a->dy.size[1], j = 0;
    const float *w = row(a->w, 0);
    vf base = plus_one(a->less_one), mean = v_set1(l->mean), rstd = v_set1(l->rstd), g_sum[2],
       gx_sum[2];
    g_sum[0] = g_sum[1] = gx_sum[0] = gx_sum[1] = v_zero();
    for (; j + 2 * VL <= width; j += 2 * VL) {
        for (int k = 0; k < 2; k++) {
            int64_t at = j + k * VL;
            vf g = v_load(l->dy + at) * (v_load(w + at) + base);
            vf xhat = (v_load(l->r + at) - mean) * rstd;
            g_sum[k] = g_sum[k] + g;
            gx_sum[k] = v_fma(g, xhat, gx_sum[k]);
        }
    }
    for (; j < width; j += VL) {
        int64_t n = width - j;
        vf g = v_get(l->dy + j, n) * (v_get(w + j, n) + base);
        vf xhat = (v_get(l->r + j, n) - mean) * rstd;
        g_sum[0] = g_sum[0] + g;
        gx_sum[0] = v_fma(g, xhat, gx_sum[0]);
    }
    l->g_mean = a->kind == NORM_LAYER ? v_sum(g_sum[0] + g_sum[1]) / (float)width : 0;
    l->gx_mean = FAULT("norm_bwd") ? 0 : v_sum(gx_sum[0] + gx_sum[1]) / (float)width;
}

static struct line line_of(const struct norm_bwd_args *a, int64_t i)
{
    struct line l = {.dy = row(a->dy, i),
                     .r = row(a->r, i),
                     .dr = row(a->dr, i),
                     .da = tensor_none(a->da) ? NULL : row(a->da, i),
                     .mean = a->kind == NORM_LAYER ? row(a->mean, 0)[i] : 0,
                     .rstd = row(a->rstd, 0)[i]};
    line_means(a, &l);
    return l;
}

/* n columns from j on of some rows; c: the first column that `factor` holds. */
static inline __attribute__((always_inline)) void columns_step(const struct line *l, const int rows,
                                                               vf w, const float (*factor)[CHUNK],
                                                               int64_t c, float *const sum[SUMS],
                                                               int64_t j, int64_t n)
{
    vf dw = v_zero(), db = v_zero(), dbias = v_zero();
    for (int k = 0; k < rows; k++) {
        vf dy = v_get(l[k].dy + j, n), rstd = v_set1(l[k].rstd);
        vf xhat = (v_get(l[k].r + j, n) - v_set1(l[k].mean)) * rstd;
        vf d = dy * w - v_set1(l[k].g_mean) - xhat * v_set1(l[k].gx_mean);
        vf dr = v_fma(d, rstd, v_get(l[k].dr + j, n));
        v_put(l[k].dr + j, n, dr);
        dw = v_fma(dy, xhat, dw);
        db = db + dy;
        if (l[k].da) {
            vf da = factor ? dr * v_get(factor[k] + (j - c), n) : dr;
            v_put(l[k].da + j, n, da);
            dbias = dbias + da;
        }
    }
    v_put(sum[0] + j, n, v_get(sum[0] + j, n) + dw);
    if (sum[1])
        v_put(sum[1] + j, n, v_get(sum[1] + j, n) + db);
    if (sum[2])
        v_put(sum[2] + j, n, v_get(sum[2] + j, n) + dbias);
}

static inline __attribute__((always_inline)) void group(const struct norm_bwd_args *a, int64_t i,
                                                        const int rows, float *const sum[SUMS])
{
    int64_t width = a->dy.size[1];
    const float *w = row(a->w, 0);
    struct line l[GROUP];
    float space[GROUP][CHUNK];
    bool drop = a->drop.p > 0 && !tensor_none(a->da);
    vf base = plus_one(a->less_one);
    for (int k = 0; k < rows; k++)
        l[k] = line_of(a, i + k);
    for (int64_t c = 0; c < width; c += CHUNK) {
        int64_t end = norm_smaller(c + CHUNK, width), j = c;
        for (int k = 0; k < rows && drop; k++)
            factors(a->drop, i + k, width, c, end - c, space[k]);
        const float(*f)[CHUNK] = drop ? (const float(*)[CHUNK])space : NULL;
        for (; j + VL <= end; j += VL)
            columns_step(l, rows, v_load(w + j) + base, f, c, sum, j, VL);
        if (j < end)
            columns_step(l, rows, v_get(w + j, end - j) + base, f, c, sum, j, end - j);
    }
}

static void block_task(void *arg, int task, int thread)
{
    const struct job *job = arg;
    const struct norm_bwd_args *a = job->a;
    int64_t width = a->dy.size[1], i = task * job->rows;
    int64_t end = norm_smaller(i + job->rows, a->dy.size[0]);
    float *own = job->sums + task * SUMS * width;
    float *const sum[SUMS] = {own, tensor_none(a->db) ? NULL : own + width,
                              tensor_none(a->dbias) ? NULL : own + 2 * width};
    (void)thread;
    for (int s = 0; s < SUMS; s++)
        if (sum[s])
            memset(sum[s], 0, (size_t)width * sizeof(float));
    for (; i + GROUP <= end; i += GROUP)
        group(a, i, GROUP, sum);
    if (i < end)
        group(a, i, (int)(end - i), sum);
}

static void add_blocks(const struct job *job, int s, struct range cols, float *to)
{
    int64_t width = job->a->dy.size[1], n = cols.end - cols.begin;
    double sum[COLUMNS] = {0};
    for (int64_t b = 0; b < job->blocks; b++) {
        const float *from = job->sums + (b * SUMS + s) * width + cols.begin;
        for (int64_t j = 0; j < n; j++)
            sum[j] += (double)from[j];
    }
    for (int64_t j = 0; j < n; j++)
        to[cols.begin + j] += (float)sum[j];
}

/* Pieces of COLUMNS columns, as many as are worth a task. */
static void sums_task(void *arg, int task, int thread)
{
    const struct job *job = arg;
    const struct tensor to[SUMS] = {job->a->dw, job->a->db, job->a->dbias};
    int64_t width = job->a->dy.size[1];
    struct range r = grain_range(pieces(width, COLUMNS), job->blocks * SUMS * COLUMNS, task);
    (void)thread;
    for (int64_t p = r.begin; p < r.end; p++)
        for (int s = 0; s < SUMS; s++)
            if (!tensor_none(to[s]))
                add_blocks(job, s,
                           (struct range){p * COLUMNS, norm_smaller((p + 1) * COLUMNS, width)},
                           row(to[s], 0));
}

void FAST(norm_bwd)(struct ops *o, const void *args, void *scratch)
{
    const struct norm_bwd_args *a = args;
    int64_t n = a->dy.size[0], width = a->dy.size[1], rows = block_rows(a);
    struct job job = {a, rows, pieces(n, rows), scratch};
    if (n == 0 || width == 0)
        return;
    pool_run(o->dev->pool, (int)job.blocks, block_task, &job);
    pool_run(o->dev->pool, grain_tasks(pieces(width, COLUMNS), job.blocks * SUMS * COLUMNS),
             sums_task, &job);
}

/* ---- heads of queries and keys ------------------------------------------------------------------
 */

/* One head; pre may be NULL. Returns 1 / root. */
static float head_line(const struct head_norm_args *a, float *x, float *pre)
{
    const float *w = row(a->w, 0);
    int64_t dim = a->x.size[2];
    float eps = a->eps;
    vf base = plus_one(a->less_one);
    vd low = vd_zero(), high = vd_zero();
    for (int64_t j = 0; j < dim; j += VL) {
        int64_t n = dim - j < VL ? dim - j : VL;
        vf v = v_get(x + j, n);
        low = low + v_low(v) * v_low(v);
        high = high + v_high(v) * v_high(v);
        if (pre)
            v_put(pre + j, n, v);
    }
    float rstd = (float)(1 / sqrt(vd_sum(low + high) / (double)dim + (double)eps));
    vf s = v_set1(rstd);
    for (int64_t j = 0; j < dim; j += VL) {
        int64_t n = dim - j < VL ? dim - j : VL;
        v_put(x + j, n, v_get(x + j, n) * s * (v_get(w + j, n) + base));
    }
    return rstd;
}

static void head_norm_task(void *arg, int task, int thread)
{
    const struct head_norm_args *a = arg;
    int64_t heads = a->x.size[1], dim = a->x.size[2];
    struct range r = grain_range(a->x.size[0], heads * dim, task);
    (void)thread;
    for (int64_t i = r.begin; i < r.end; i++)
        for (int64_t h = 0; h < heads; h++) {
            float *pre = tensor_none(a->pre) ? NULL : row(a->pre, i) + h * dim;
            float rstd = head_line(a, row(a->x, i) + h * dim, pre);
            if (pre)
                row(a->rstd, i)[h] = rstd;
        }
}

void FAST(head_norm)(struct ops *o, const void *args, void *scratch)
{
    struct head_norm_args a = *(const struct head_norm_args *)args;
    (void)scratch;
    pool_run(o->dev->pool, grain_tasks(a.x.size[0], a.x.size[1] * a.x.size[2]), head_norm_task, &a);
}

/* ---- backward: each task has a sum of dw of its own, which are added up in their order ---------
 */

struct head_job {
    const struct head_norm_bwd_args *a;
    float *sums; /* [tasks, D] */
};

static int tasks_of(const struct head_norm_bwd_args *a)
{
    return grain_tasks(a->dx.size[0], a->dx.size[1] * a->dx.size[2]);
}

size_t FAST(head_norm_bwd_scratch)(const struct dev_desc *d, const void *args)
{
    const struct head_norm_bwd_args *a = args;
    (void)d;
    return (size_t)tasks_of(a) * (size_t)a->dx.size[2] * sizeof(float);
}

static void head_line_bwd(float *dx, const float *pre, const float *w, float *dw,
                          const struct head_norm_bwd_args *a, float rstd)
{
    int64_t dim = a->dx.size[2];
    vf s = v_set1(rstd), sum = v_zero(), base = plus_one(a->less_one);
    for (int64_t j = 0; j < dim; j += VL) {
        int64_t n = dim - j < VL ? dim - j : VL;
        vf t = v_get(dx + j, n) * (v_get(pre + j, n) * s);
        v_put(dw + j, n, v_get(dw + j, n) + t);
        sum = v_fma(t, v_get(w + j, n) + base, sum);
    }
    vf mean = v_set1(FAULT("head_norm_bwd") ? 0 : v_sum(sum) / (float)dim);
    for (int64_t j = 0; j < dim; j += VL) {
        int64_t n = dim - j < VL ? dim - j : VL;
        vf g = v_get(dx + j, n) * (v_get(w + j, n) + base);
        v_put(dx + j, n, (g - v_get(pre + j, n) * s * mean) * s);
    }
}

static void head_norm_bwd_task(void *arg, int task, int thread)
{
    const struct head_job *job = arg;
    const struct head_norm_bwd_args *a = job->a;
    int64_t heads = a->dx.size[1], dim = a->dx.size[2];
    struct range r = grain_range(a->dx.size[0], heads * dim, task);
    float *dw = job->sums + task * dim;
    (void)thread;
    memset(dw, 0, (size_t)dim * sizeof(float));
    for (int64_t i = r.begin; i < r.end; i++)
        for (int64_t h = 0; h < heads; h++)
            head_line_bwd(row(a->dx, i) + h * dim, row(a->pre, i) + h * dim, row(a->w, 0), dw, a,
                          row(a->rstd, i)[h]);
}

void FAST(head_norm_bwd)(struct ops *o, const void *args, void *scratch)
{
    const struct head_norm_bwd_args *a = args;
    struct head_job job = {a, scratch};
    int tasks = tasks_of(a);
    pool_run(o->dev->pool, tasks, head_norm_bwd_task, &job);
    for (int64_t j = 0; j < a->dx.size[2]; j++) {
        double sum = 0;
        for (int t = 0; t < tasks; t++)
            sum += (double)job.sums[t * a->dx.size[2] + j];
        row(a->dw, 0)[j] += (float)sum;
    }
}

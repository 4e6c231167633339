/* SPDX-License-Identifier: Apache-2.0 */
#include "train/ops/cpu/fast.h"

#include <string.h>

#include "base/core/fault.h"
#include "train/ops/cpu/vec_epilogue.h"
#include "train/ops/cpu/vec_gemm.h"
#include "train/ops/experts.h"

/*
 * y = op(a) op(b) by blocks: some rows of op(a) and some columns of op(b), over a part of k, are
 * packed by all threads into panels that the kernel reads in order; then the tiles of y's block are
 * shared out. Within a tile, k is cut once more, into slices that keep its panels in the cache. A
 * tile's last slice is followed by its epilogue.
 *
 * Few rows (a token being decoded) are not worth packing b for: they have a loop of their own.
 */

enum {
    SLICE = 384,       /* of k, at most */
    DEPTH = 4,         /* slices that are packed at a time, at most */
    FEW_ROWS = 4,      /* without packing, up to here */
    PACK_ROWS = 32,    /* of what is packed as it lies */
    A_BLOCK = 4 << 20, /* floats */
    B_BLOCK = 2 << 20,
    TILE_ROWS = 10, /* panels in a task, at most */
    TILE_COLS = 8,
    TASKS = 32,          /* wanted, */
    TASK_WORK = 4 << 20, /* while a task has at least so many multiply-adds */
};

/* How a call is cut; from sizes alone. */
struct cut {
    int64_t m, n, k;
    int64_t slice, depth; /* of k */
    int64_t rows, cols;   /* of a block: whole panels */
};

struct job {
    const struct matmul_args *a;
    struct cut cut;
    float *left, *right;        /* packed: panels of [depth][TILE_M] and [depth][TILE_N] */
    struct range rows, cols, k; /* the block in hand */
    int64_t left_tasks, right_tasks, tile_rows, tile_cols;
};

static int64_t length(struct range r)
{
    return r.end - r.begin;
}

static int64_t panels(int64_t n, int64_t each)
{
    return (n + each - 1) / each;
}

static int64_t matmul_smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static struct range piece(int64_t begin, int64_t size, int64_t n)
{
    return (struct range){begin, matmul_smaller(begin + size, n)};
}

static struct cut cut_of(const struct matmul_args *a)
{
    struct cut c = {.m = a->y.size[0], .n = a->y.size[1], .k = a->a.size[a->ta ? 0 : 1]};
    c.slice = at_least_one(panels(c.k, at_least_one(panels(c.k, SLICE))));
    c.depth = matmul_smaller(c.slice * DEPTH, at_least_one(c.k));
    c.rows = at_least_one(A_BLOCK / c.depth / TILE_M) * TILE_M;
    c.cols = at_least_one(B_BLOCK / c.depth / TILE_N) * TILE_N;
    c.rows = matmul_smaller(c.rows, panels(c.m, TILE_M) * TILE_M);
    c.cols = matmul_smaller(c.cols, panels(c.n, TILE_N) * TILE_N);
    return c;
}

static bool few_rows(const struct matmul_args *a)
{
    return a->y.size[0] <= FEW_ROWS && a->tb && !a->ta;
}

size_t FAST(matmul_scratch)(const struct dev_desc *d, const void *args)
{
    struct cut c = cut_of(args);
    (void)d;
    return few_rows(args) ? 0 : (size_t)((c.rows + c.cols) * c.depth) * sizeof(float);
}

/* rows and cols fall in steps where depth grows, so bounds: what a block takes at most. */
size_t FAST(matmul_most)(int64_t m, int64_t n, int64_t k)
{
    int64_t depth = matmul_smaller(at_least_one(k), (int64_t)SLICE * DEPTH);
    int64_t left = matmul_smaller(A_BLOCK, panels(m, TILE_M) * TILE_M * depth);
    int64_t right = matmul_smaller(B_BLOCK, panels(n, TILE_N) * TILE_N * depth);
    return (size_t)(left + right) * sizeof(float);
}

/* ---- packing --------------------------------------------------------------------------------- */

/* Sums of some columns of a, PACK_ROWS rows at a time, added to dbias. */
static void column_sums(const struct job *j, int64_t first, int64_t cols)
{
    const struct tensor a = j->a->a;
    vf sum = v_zero();
    for (int64_t p = j->k.begin; p < j->k.end; p += PACK_ROWS) {
        struct range rows = piece(p, PACK_ROWS, j->k.end);
        vf part = v_zero();
        for (int64_t i = rows.begin; i < rows.end; i++)
            part = part + v_load_n(row(a, i) + first, cols);
        sum = sum + part;
    }
    float *d = row(j->a->dbias, 0) + first;
    v_store_n(d, cols, FAULT("fast_matmul_dbias") ? sum : v_load_n(d, cols) + sum);
}

/*
 * Rows of an operand that is packed as it lies are read a few at a time through all panels, for
 * memory likes to be read on.
 */
static void pack_left(const struct job *j, int64_t task)
{
    const struct tensor a = j->a->a;
    int64_t k = length(j->k), m = length(j->rows);
    struct range r = even_range(panels(m, TILE_M), j->left_tasks, task);
    for (int64_t i = r.begin; i < r.end && !j->a->ta; i++)
        strip_along(row(a, j->rows.begin + i * TILE_M) + j->k.begin, a.stride, k,
                    matmul_smaller(TILE_M, m - i * TILE_M), TILE_M, j->left + i * TILE_M * k);
    for (int64_t p = 0; p < k && j->a->ta; p += PACK_ROWS)
        for (int64_t i = r.begin; i < r.end; i++)
            strip_across(row(a, j->k.begin + p) + j->rows.begin + i * TILE_M, a.stride,
                         matmul_smaller(PACK_ROWS, k - p), matmul_smaller(TILE_M, m - i * TILE_M),
                         j->left + (i * k + p) * TILE_M);
    for (int64_t i = r.begin; i < r.end && !tensor_none(j->a->dbias) && !j->cols.begin; i++)
        column_sums(j, j->rows.begin + i * TILE_M, matmul_smaller(TILE_M, m - i * TILE_M));
}

static void pack_right(const struct job *j, int64_t task)
{
    const struct tensor b = j->a->b;
    int64_t k = length(j->k), n = length(j->cols);
    struct range r = even_range(panels(n, TILE_N), j->right_tasks, task);
    for (int64_t i = r.begin; i < r.end && j->a->tb; i++)
        panel_along(row(b, j->cols.begin + i * TILE_N) + j->k.begin, b.stride, k,
                    matmul_smaller(TILE_N, n - i * TILE_N), j->right + i * TILE_N * k);
    for (int64_t p = 0; p < k && !j->a->tb; p += PACK_ROWS)
        for (int64_t i = r.begin; i < r.end; i++)
            panel_across(row(b, j->k.begin + p) + j->cols.begin + i * TILE_N, b.stride,
                         matmul_smaller(PACK_ROWS, k - p), matmul_smaller(TILE_N, n - i * TILE_N),
                         j->right + (i * k + p) * TILE_N);
}

static void pack_task(void *arg, int task, int thread)
{
    const struct job *j = arg;
    (void)thread;
    if (task < j->left_tasks)
        pack_left(j, task);
    else
        pack_right(j, task - j->left_tasks);
}

static int64_t pack_tasks(int64_t count, int64_t panel, int64_t k)
{
    return matmul_smaller(panels(count, panel), at_least_one(count * k / (2 * GRAIN)));
}

/* What is packed is not packed again: right for all rows, left if all rows are one block. */
static void pack(struct ops *o, struct job *j)
{
    bool right = j->rows.begin == 0, left = j->cols.begin == 0 || j->cut.rows < j->cut.m;
    j->left_tasks = left ? pack_tasks(length(j->rows), TILE_M, length(j->k)) : 0;
    j->right_tasks = right ? pack_tasks(length(j->cols), TILE_N, length(j->k)) : 0;
    pool_run(o->dev->pool, (int)(j->left_tasks + j->right_tasks), pack_task, j);
}

/* ---- tiles ----------------------------------------------------------------------------------- */

/* Panels `rows` x panels `cols` of y's block, over one slice of what is packed. */
static void multiply(const struct job *j, struct range rows, struct range cols, struct range slice)
{
    const struct matmul_args *a = j->a;
    struct tile t = {.k = length(slice),
                     .row = 1,
                     .col = TILE_M,
                     .ldb = TILE_N,
                     .ldc = a->y.stride,
                     .add = a->accumulate || j->k.begin + slice.begin > 0};
    for (int64_t q = cols.begin; q < cols.end; q++) {
        t.b = j->right + (q * length(j->k) + slice.begin) * TILE_N;
        t.cols = matmul_smaller(TILE_N, length(j->cols) - q * TILE_N);
        for (int64_t p = rows.begin; p < rows.end; p++) {
            t.a = j->left + (p * length(j->k) + slice.begin) * TILE_M;
            t.rows = matmul_smaller(TILE_M, length(j->rows) - p * TILE_M);
            t.c = row(a->y, j->rows.begin + p * TILE_M) + j->cols.begin + q * TILE_N;
            tile_run(&t);
        }
    }
}

static struct range of_panels(struct range r, int64_t each, struct range whole)
{
    return (struct range){whole.begin + r.begin * each,
                          matmul_smaller(whole.begin + r.end * each, whole.end)};
}

static void tile_task(void *arg, int task, int thread)
{
    const struct job *j = arg;
    int64_t high = panels(length(j->rows), TILE_M), wide = panels(length(j->cols), TILE_N);
    struct range rows = even_range(high, j->tile_rows, task / j->tile_cols);
    struct range cols = even_range(wide, j->tile_cols, task % j->tile_cols);
    int64_t p = 0, k = length(j->k);
    (void)thread;
    do {
        multiply(j, rows, cols, piece(p, j->cut.slice, k));
        p += j->cut.slice;
    } while (p < k);
    if (j->k.end == j->cut.k)
        epilogue(j->a, of_panels(rows, TILE_M, j->rows), of_panels(cols, TILE_N, j->cols));
}

/* How a block is shared out: tiles small enough for the cache, and enough of them. */
static void cut_tiles(struct job *j)
{
    int64_t high = panels(length(j->rows), TILE_M), wide = panels(length(j->cols), TILE_N);
    int64_t work = length(j->rows) * length(j->cols) * length(j->k);
    int64_t r = panels(high, TILE_ROWS), c = panels(wide, TILE_COLS);
    while (r * c < TASKS && work / (r * c) > TASK_WORK && (r < high || c < wide)) {
        if (r < high && (c == wide || high * TILE_M / r >= wide * TILE_N / c))
            r = matmul_smaller(2 * r, high);
        else
            c = matmul_smaller(2 * c, wide);
    }
    j->tile_rows = r;
    j->tile_cols = c;
}

static void run_block(struct ops *o, struct job *j)
{
    pack(o, j);
    cut_tiles(j);
    pool_run(o->dev->pool, (int)(j->tile_rows * j->tile_cols), tile_task, j);
}

static void run_blocks(struct ops *o, struct job *j)
{
    const struct cut *c = &j->cut;
    int64_t p = 0;
    do {
        j->k = piece(p, c->depth, c->k);
        for (int64_t col = 0; col < c->n; col += c->cols) {
            j->cols = piece(col, c->cols, c->n);
            for (int64_t first = 0; first < c->m; first += c->rows) {
                j->rows = piece(first, c->rows, c->m);
                run_block(o, j);
            }
        }
        p += c->depth;
    } while (p < c->k);
}

/* ---- few rows -------------------------------------------------------------------------------- */

static float dot(const float *x, const float *w, int64_t k)
{
    vf sum[4] = {v_zero(), v_zero(), v_zero(), v_zero()};
    int64_t p = 0;
    for (; p + 4 * VL <= k; p += 4 * VL)
        for (int i = 0; i < 4; i++)
            sum[i] = v_fma(v_load(x + p + i * VL), v_load(w + p + i * VL), sum[i]);
    for (; p < k; p += VL)
        sum[0] = v_fma(v_load_n(x + p, k - p), v_load_n(w + p, k - p), sum[0]);
    return v_sum((sum[0] + sum[1]) + (sum[2] + sum[3]));
}

static void few_rows_task(void *arg, int task, int thread)
{
    const struct matmul_args *a = ((const struct job *)arg)->a;
    int64_t k = a->a.size[1];
    struct range cols = grain_range(a->y.size[1], k, task);
    (void)thread;
    for (int64_t j = cols.begin; j < cols.end; j++)
        for (int64_t i = 0; i < a->y.size[0]; i++) {
            float v = dot(row(a->a, i), row(a->b, j), k);
            row(a->y, i)[j] = a->accumulate ? row(a->y, i)[j] + v : v;
        }
    epilogue(a, (struct range){0, a->y.size[0]}, cols);
}

void FAST(matmul)(struct ops *o, const void *args, void *scratch)
{
    const struct matmul_args *a = args;
    struct job j = {.a = a, .cut = cut_of(a), .left = scratch};
    if (few_rows(a)) {
        pool_run(o->dev->pool, grain_tasks(a->y.size[1], a->a.size[1]), few_rows_task, &j);
        return;
    }
    j.right = j.left + j.cut.rows * j.cut.depth;
    run_blocks(o, &j);
}

/*
 * A mixture of experts: products of groups of rows are those of matmul, one after the other; rows
 * of tokens and slots are shared out to threads. The router itself stays plain C: it is n * E
 * numbers beside products of n * C * F.
 */

static const int32_t *pairs(struct tensor slot, int64_t i)
{
    return (const int32_t *)slot.data + i * slot.stride;
}

/* ---- groups of rows ----------------------------------------------------------------------------
 */

/* Matrix g of w. */
static struct tensor matrix(struct tensor w, int64_t g)
{
    return tensor_2d((float *)w.data + g % w.size[0] * w.stride, DTYPE_F32, w.size[1], w.size[2]);
}

size_t FAST(grouped_scratch)(const struct dev_desc *d, const void *args)
{
    const struct grouped_args *a = args;
    (void)d;
    return FAST(matmul_most)(a->y.size[0], a->y.size[1], a->x.size[1]);
}

void FAST(grouped)(struct ops *o, const void *args, void *scratch)
{
    const struct grouped_args *a = args;
    for (int64_t g = 0; g + 1 < a->start.size[0]; g++) {
        int64_t begin = ints(a->start)[g], rows = ints(a->start)[g + 1] - begin;
        struct matmul_args m = {.y = tensor_rows(a->y, begin, rows),
                                .a = tensor_rows(a->x, begin, rows),
                                .b = matrix(a->w, g),
                                .tb = !a->backward};
        if (rows)
            FAST(matmul)(o, &m, scratch);
    }
}

size_t FAST(grouped_bwd_scratch)(const struct dev_desc *d, const void *args)
{
    const struct grouped_bwd_args *a = args;
    (void)d;
    return FAST(matmul_most)(a->dw.size[1], a->dw.size[2], a->x.size[0]);
}

void FAST(grouped_bwd)(struct ops *o, const void *args, void *scratch)
{
    const struct grouped_bwd_args *a = args;
    for (int64_t g = 0; g + 1 < a->start.size[0]; g++) {
        int64_t begin = ints(a->start)[g], rows = ints(a->start)[g + 1] - begin;
        struct matmul_args m = {.y = matrix(a->dw, g),
                                .a = tensor_rows(a->dy, begin, rows),
                                .b = tensor_rows(a->x, begin, rows),
                                .ta = true,
                                .accumulate = true};
        if (rows)
            FAST(matmul)(o, &m, scratch);
    }
}

/* ---- tokens and slots
 * ------------------------------------------------------------------------------------ */

static int row_tasks(struct tensor tokens, struct tensor slot)
{
    return grain_tasks(tokens.size[0], tokens.size[1] * (1 + slot.size[1]));
}

static struct range row_range(struct tensor tokens, struct tensor slot, int task)
{
    return grain_range(tokens.size[0], tokens.size[1] * (1 + slot.size[1]), task);
}

static void permute_task(void *arg, int task, int thread)
{
    const struct permute_args *a = arg;
    struct range r = row_range(a->x, a->slot, task);
    (void)thread;
    for (int64_t i = r.begin; i < r.end; i++)
        for (int64_t j = 0; j < a->slot.size[1]; j++)
            memcpy(row(a->to, pairs(a->slot, i)[j]), row(a->x, i),
                   (size_t)a->x.size[1] * sizeof(float));
}

void FAST(permute)(struct ops *o, const void *args, void *scratch)
{
    const struct permute_args *a = args;
    (void)scratch;
    pool_run(o->dev->pool, row_tasks(a->x, a->slot), permute_task, (void *)args);
}

/* y = sum of weight[j] from[slot[j]]; weight NULL: ones. */
static void sum_slots(float *y, struct tensor from, const int32_t *slot, const float *weight,
                      int64_t k)
{
    int64_t width = from.size[1];
    for (int64_t c = 0; c < width; c += VL) {
        int64_t n = width - c < VL ? width - c : VL;
        vf sum = v_zero();
        for (int64_t j = 0; j < k; j++)
            sum = v_fma(v_set1(weight ? weight[j] : 1), v_load_n(row(from, slot[j]) + c, n), sum);
        v_store_n(y + c, n, sum);
    }
}

static void permute_bwd_task(void *arg, int task, int thread)
{
    const struct permute_bwd_args *a = arg;
    struct range r = row_range(a->dx, a->slot, task);
    int64_t k = a->slot.size[1] - (FAULT("fast_permute_bwd") ? 1 : 0);
    (void)thread;
    for (int64_t i = r.begin; i < r.end; i++)
        sum_slots(row(a->dx, i), a->dto, pairs(a->slot, i), NULL, k);
}

void FAST(permute_bwd)(struct ops *o, const void *args, void *scratch)
{
    const struct permute_bwd_args *a = args;
    (void)scratch;
    pool_run(o->dev->pool, row_tasks(a->dx, a->slot), permute_bwd_task, (void *)args);
}

static void unpermute_task(void *arg, int task, int thread)
{
    const struct unpermute_args *a = arg;
    struct range r = row_range(a->y, a->slot, task);
    (void)thread;
    for (int64_t i = r.begin; i < r.end; i++)
        sum_slots(row(a->y, i), a->from, pairs(a->slot, i), row(a->weight, i), a->slot.size[1]);
}

void FAST(unpermute)(struct ops *o, const void *args, void *scratch)
{
    const struct unpermute_args *a = args;
    (void)scratch;
    pool_run(o->dev->pool, row_tasks(a->y, a->slot), unpermute_task, (void *)args);
}

/* dfrom = w dy; the product of dy and from. */
static float spread_slot(float *dfrom, const float *dy, const float *from, float w, int64_t width)
{
    vf sum = v_zero();
    for (int64_t c = 0; c < width; c += VL) {
        int64_t n = width - c < VL ? width - c : VL;
        vf d = v_load_n(dy + c, n);
        sum = v_fma(d, v_load_n(from + c, n), sum);
        v_store_n(dfrom + c, n, v_set1(w) * d);
    }
    return v_sum(sum);
}

static void unpermute_bwd_task(void *arg, int task, int thread)
{
    const struct unpermute_bwd_args *a = arg;
    struct range r = row_range(a->dy, a->slot, task);
    (void)thread;
    for (int64_t i = r.begin; i < r.end; i++)
        for (int64_t j = 0; j < a->slot.size[1]; j++) {
            int64_t at = pairs(a->slot, i)[j];
            row(a->dweight, i)[j] = spread_slot(row(a->dfrom, at), row(a->dy, i), row(a->from, at),
                                                row(a->weight, i)[j], a->dy.size[1]);
        }
}

void FAST(unpermute_bwd)(struct ops *o, const void *args, void *scratch)
{
    const struct unpermute_bwd_args *a = args;
    (void)scratch;
    pool_run(o->dev->pool, row_tasks(a->dy, a->slot), unpermute_bwd_task, (void *)args);
}

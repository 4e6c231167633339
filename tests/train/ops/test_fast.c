/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Every fast entry against its plain twin: odd sizes, gaps between rows, poisoned outputs, every
 * level that the processor has; the same bytes whatever the number of threads. With --bench the
 * same subjects, large: how much faster than the twin, and their share of what memcpy moves.
 */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "base/rng.h"
#include "tests/t.h"
#include "tests/train/ops/world.h"

enum { OUTS = 4, NUMBERS = 1 << 16, WORKSPACE = 8 << 20 };

/* One call: its arguments in some world, and what it writes. */
struct trial {
    struct world *w;
    int64_t n, width;
    unsigned mode; /* bits; what they mean is the subject's */
    bool bench;
    union {
        struct xent_stats_args xent_stats;
        struct xent_loss_args xent_loss;
        struct adamw_args adamw;
        struct sumsq_args sumsq;
        struct fill_args fill;
        struct copy_args copy;
    } a;
    int outs;
    struct out {
        struct tensor t;
        double relative, absolute; /* |fast - ref| <= relative * |ref| + absolute */
    } out[OUTS];
};

struct subject {
    enum op op;
    unsigned modes; /* 0 .. modes - 1 are tried; the last is measured */
    void (*make)(struct trial *t);
    struct {
        int64_t n, width;
    } bench[3];
};

/* The plain table: the subjects need one op to prepare another. */
static struct world ref;

/* ---- making arguments ------------------------------------------------------------------------ */

static void writes(struct trial *t, struct tensor out, double relative, double absolute)
{
    t->out[t->outs++] = (struct out){out, relative, absolute};
}

/* Normal numbers; in a benchmark the same few over and over, for they take long to make. */
static struct tensor numbers(struct trial *t, double scale, int64_t gap, int64_t rows, int64_t cols)
{
    if (!t->bench)
        return world_2d(t->w, scale, rows, cols, gap);
    struct tensor few = world_1d(t->w, scale, NUMBERS);
    struct tensor x = world_poisoned(t->w, DTYPE_F32, 0, 2, (const int64_t[]){rows, cols});
    for (int64_t i = 0, n = rows * cols; i < n; i += NUMBERS)
        memcpy((float *)x.data + i, few.data,
               (size_t)(n - i < NUMBERS ? n - i : NUMBERS) * sizeof(float));
    return x;
}

static struct tensor unknown(struct trial *t, enum dtype d, int64_t n)
{
    return world_poisoned(t->w, d, 0, 1, &n);
}

static struct tensor one(struct trial *t, enum dtype d, double value)
{
    struct tensor x = unknown(t, d, 1);
    world_set(x, 0, value);
    return x;
}

static struct tensor labels(struct trial *t, int64_t first)
{
    return world_ids(t->w, t->n, t->width + 2 * first);
}

/* mode: 1 max is given, 2 a slice of the vocabulary, 4 minus infinities in front, and a NaN */
static void make_xent_stats(struct trial *t)
{
    int64_t first = t->mode & 2 ? 5 : 0;
    struct xent_stats_args *a = &t->a.xent_stats;
    *a = (struct xent_stats_args){.logits = numbers(t, 4, t->mode & 2 ? 3 : 0, t->n, t->width),
                                  .label = labels(t, first),
                                  .max = unknown(t, DTYPE_F32, t->n),
                                  .sum = unknown(t, DTYPE_F32, t->n),
                                  .target = unknown(t, DTYPE_F32, t->n),
                                  .first = first,
                                  .max_given = t->mode & 1};
    for (int64_t i = 0; i < t->n && t->mode & 1; i++)
        world_set(a->max, i, 21);
    for (int64_t i = 0; i < t->n && t->mode & 4; i++) {
        int64_t low = i % 2 ? t->width : t->width - 1; /* every other row: nothing else */
        for (int64_t j = 0; j < low; j++)
            world_set(a->logits, i * t->width + j, -INFINITY);
        if (i % 3 == 2)
            world_set(a->logits, i * t->width, NAN);
    }
    writes(t, a->max, 0, 0);
    writes(t, a->sum, 2e-6, 0);
    writes(t, a->target, 0, 0);
}

/* mode: 1 gradient, 2 a slice of the vocabulary, 4 masked rows, with NaN in one */
static void make_xent_loss(struct trial *t)
{
    int64_t first = t->mode & 2 ? 5 : 0;
    struct xent_loss_args *a = &t->a.xent_loss;
    *a = (struct xent_loss_args){.logits = numbers(t, 4, t->mode & 2 ? 3 : 0, t->n, t->width),
                                 .label = labels(t, first),
                                 .max = unknown(t, DTYPE_F32, t->n),
                                 .sum = unknown(t, DTYPE_F32, t->n),
                                 .target = unknown(t, DTYPE_F32, t->n),
                                 .mask = unknown(t, DTYPE_F32, t->n),
                                 .loss = unknown(t, DTYPE_F32, t->n),
                                 .total = one(t, DTYPE_F64, 1.5),
                                 .first = first,
                                 .scale = 0.125f,
                                 .grad = t->mode & 1};
    for (int64_t i = 0; i < t->n; i++)
        world_set(a->mask, i, t->mode & 4 ? (double)(i % 3) * 0.5 : 1);
    if (t->mode & 4 && t->n)
        world_set(a->logits, t->width - 1, NAN);
    struct xent_stats_args stats = {.logits = a->logits,
                                    .label = a->label,
                                    .max = a->max,
                                    .sum = a->sum,
                                    .target = a->target,
                                    .first = first};
    op_xent_stats(&ref.ops, &stats);
    writes(t, a->logits, 3e-6, 1e-30);
    writes(t, a->loss, 1e-6, 1e-7);
    writes(t, a->total, 1e-12, 1e-12);
}

/* mode: 1 a factor, 2 not the first step, 4 skip is there, 8 and says so */
static void make_adamw(struct trial *t)
{
    struct adamw_args *a = &t->a.adamw;
    *a = (struct adamw_args){.p = numbers(t, 0.02, 0, t->n, t->width),
                             .g = numbers(t, 1e-3, 0, t->n, t->width),
                             .m = numbers(t, 1e-3, 0, t->n, t->width),
                             .v = numbers(t, 1e-6, 0, t->n, t->width),
                             .lr = 3e-4,
                             .beta1 = 0.9,
                             .beta2 = 0.999,
                             .eps = 1e-8,
                             .decay = 0.1,
                             .step = t->mode & 2 ? 12345 : 1};
    for (int64_t i = 0; i < t->n * t->width; i++)
        ((float *)a->v.data)[i] = fabsf(((float *)a->v.data)[i]);
    if (t->mode & 1)
        a->factor = one(t, DTYPE_F64, 0.37);
    if (t->mode & 4)
        a->skip = one(t, DTYPE_I32, t->mode & 8 ? 1 : 0);
    writes(t, a->p, 2e-7, 2e-9); /* steps of up to 0.01 */
    writes(t, a->m, 2e-7, 1e-10);
    writes(t, a->v, 5e-7, 1e-30);
}

static void make_sumsq(struct trial *t)
{
    t->a.sumsq = (struct sumsq_args){one(t, DTYPE_F64, 0.25), numbers(t, 3, 0, t->n, t->width)};
    writes(t, t->a.sumsq.total, 1e-12, 0);
}

static const enum dtype wide[] = {DTYPE_I32, DTYPE_F64, DTYPE_F32};

/* mode: type + 3 * gaps; without gaps in a benchmark */
static void make_fill(struct trial *t)
{
    struct tensor y = world_poisoned(t->w, wide[t->mode % 3], t->mode < 3 && !t->bench ? 3 : 0, 2,
                                     (const int64_t[]){t->n, t->width});
    t->a.fill = (struct fill_args){y, -3};
    writes(t, y, 0, 0);
}

/* mode: type + 3 * (gaps in y, gaps in x, neither; the last: float is added to) */
static void make_copy(struct trial *t)
{
    const int64_t size[] = {t->n, t->width};
    enum dtype d = wide[t->mode % 3];
    int64_t gap = t->bench ? 0 : 2;
    struct copy_args *a = &t->a.copy;
    *a = (struct copy_args){.accumulate = t->mode == 2 || t->mode == 8};
    a->y = world_poisoned(t->w, d, t->mode < 3 ? gap : 0, 2, size);
    if (a->accumulate)
        a->y = numbers(t, 1, t->mode < 3 ? gap : 0, t->n, t->width);
    a->x = world_poisoned(t->w, d, t->mode / 3 == 1 ? gap : 0, 2, size);
    for (int64_t i = 0; i < t->n * t->width; i++)
        world_set(a->x, i, (double)i - 7);
    writes(t, a->y, 0, 0);
}

static const struct subject subjects[] = {
    {OP_XENT_STATS, 8, make_xent_stats, {{2048, 2048}, {1024, 50257}, {512, 128256}}},
    {OP_XENT_LOSS, 6, make_xent_loss, {{2048, 2048}, {1024, 50257}, {512, 128256}}},
    {OP_ADAMW, 16, make_adamw, {{1, 1000}, {1000, 1000}, {4096, 8192}}},
    {OP_SUMSQ, 1, make_sumsq, {{1, 1000}, {1000, 1000}, {8192, 12288}}},
    {OP_FILL, 6, make_fill, {{1, 1000}, {1000, 1000}, {8192, 12288}}},
    {OP_COPY, 9, make_copy, {{1, 1000}, {1000, 1000}, {8192, 8192}}},
};
enum { SUBJECTS = sizeof(subjects) / sizeof(subjects[0]) };

static const struct subject *subject_of(enum op op)
{
    for (int i = 0; i < SUBJECTS; i++)
        if (subjects[i].op == op)
            return &subjects[i];
    BUG("no subject for %s", op_name(op));
}

static void make(const struct subject *s, struct trial *t)
{
    world_clear(t->w, 1000 + (uint64_t)t->mode);
    t->outs = 0;
    s->make(t);
}

/* ---- comparing ------------------------------------------------------------------------------- */

static const char *const levels[] = {"plain", "avx2", "avx512"};
static const int threads[] = {1, 2, 3, 7};
enum { LEVELS = 3, COUNTS = 4 };

/* Worlds stay open through all cases. */
static struct world fast[LEVELS][COUNTS];
static bool is_open;

static void open_worlds(void)
{
    if (is_open)
        return;
    is_open = true;
    world_open(&ref, DTYPE_F32, "ref", 1, WORKSPACE);
    for (int l = 0; l < LEVELS; l++)
        for (int i = 0; i < COUNTS; i++) {
            struct ops probe;
            struct err e;
            if (ops_cpu_init(&probe, NULL, NULL, DTYPE_F32, levels[l], &e) == 0)
                world_open(&fast[l][i], DTYPE_F32, levels[l], threads[i], WORKSPACE);
        }
}

static void close_worlds(void)
{
    if (!is_open)
        return;
    world_close(&ref);
    for (int l = 0; l < LEVELS; l++)
        for (int i = 0; i < COUNTS; i++)
            if (fast[l][i].dev.fn)
                world_close(&fast[l][i]);
}

/* A subject's name for messages. */
static const char *call(const struct subject *s, const struct trial *t, const char *level,
                        int n_threads)
{
    static char text[160];
    snprintf(text, sizeof(text), "%s [%lld,%lld] mode %u, %s, %d threads", op_name(s->op),
             (long long)t->n, (long long)t->width, t->mode, level, n_threads);
    return text;
}

static void compare(const char *what, int out, struct out got, struct tensor want)
{
    for (int64_t i = 0; i < tensor_count(want); i++) {
        double x = world_get(got.t, i), y = world_get(want, i);
        bool same = isfinite(y) ? fabs(x - y) <= got.relative * fabs(y) + got.absolute
                                : x == y || (isnan(x) && isnan(y));
        if (!same)
            t_fail(__FILE__, __LINE__, "%s: output %d at %lld is %.9g, not %.9g", what, out,
                   (long long)i, x, y);
    }
}

static void compare_bytes(const char *what, const struct trial *a, const struct trial *b)
{
    for (int i = 0; i < a->outs; i++) {
        char *x = world_bytes(a->out[i].t), *y = world_bytes(b->out[i].t);
        bool same = memcmp(x, y, tensor_bytes(a->out[i].t)) == 0;
        free(x);
        free(y);
        if (!same)
            t_fail(__FILE__, __LINE__, "%s: output %d has other bytes than with 1 thread", what, i);
    }
}

/* Twice in the same memory would show a call that leans on what it wrote: so each is made anew. */
static void run(const struct subject *s, struct trial *t)
{
    make(s, t);
    ops_run(&t->w->ops, s->op, &t->a);
    world_guarded(t->w);
}

static void compare_call(const struct subject *s, int64_t n, int64_t width, unsigned mode)
{
    struct trial want = {.w = &ref, .n = n, .width = width, .mode = mode};
    run(s, &want);
    for (int l = 0; l < LEVELS; l++) {
        struct trial first = {0};
        for (int i = 0; i < COUNTS && fast[l][0].dev.fn; i++) {
            struct trial t = {.w = &fast[l][i], .n = n, .width = width, .mode = mode};
            const char *what = call(s, &t, levels[l], threads[i]);
            run(s, &t);
            for (int k = 0; k < t.outs && i == 0; k++)
                compare(what, k, t.out[k], want.out[k].t);
            if (i == 0)
                first = t;
            else
                compare_bytes(what, &first, &t);
        }
    }
}

/* Every mode at sizes round the vectors' and blocks' own, then random ones; some have many tasks.
 */
static void compare_subject(enum op op)
{
    static const int64_t edge[][2] = {{0, 5},  {1, 1},   {5, 1},     {3, 15},    {2, 16},
                                      {2, 17}, {3, 63},  {1, 65},    {4, 2047},  {2, 2049},
                                      {9, 33}, {70, 97}, {5, 20001}, {50, 1031}, {1, 50257}};
    const struct subject *s = subject_of(op);
    open_worlds();
    for (int l = 0; l < LEVELS; l++)
        if (fast[l][0].dev.fn)
            T_CHECK(fast[l][0].ops.entry[op].run != ref.ops.entry[op].run);
    for (size_t i = 0; i < sizeof(edge) / sizeof(edge[0]); i++)
        for (unsigned mode = 0; mode < s->modes; mode++)
            if (i < 12 || mode < 2 || mode == s->modes - 1) /* large ones in three modes */
                compare_call(s, edge[i][0], edge[i][1], mode);
    for (uint64_t i = 0; i < 24; i++)
        compare_call(s, t_rand(op, 3 * i) % 40, 1 + t_rand(op, 3 * i + 1) % 700,
                     t_rand(op, 3 * i + 2) % s->modes);
}

static void xent_stats(void)
{
    compare_subject(OP_XENT_STATS);
}

static void xent_loss(void)
{
    compare_subject(OP_XENT_LOSS);
}

static void adamw(void)
{
    compare_subject(OP_ADAMW);
}

static void sumsq(void)
{
    compare_subject(OP_SUMSQ);
}

static void fill(void)
{
    compare_subject(OP_FILL);
}

static void copy(void)
{
    compare_subject(OP_COPY);
}

/*
 * Ten thousand steps towards nothing but decay: rounding 1 - lr decay, or 1 - beta, to float would
 * show here by hundreds of times the tolerance.
 */
static void adamw_decays_as_told(void)
{
    open_worlds();
    for (int l = 0; l < LEVELS && fast[l][0].dev.fn; l++) {
        struct trial t = {.w = &fast[l][0], .n = 1, .width = 19};
        make(subject_of(OP_ADAMW), &t);
        struct adamw_args *a = &t.a.adamw;
        a->lr = 1e-5;
        for (int i = 0; i < 19; i++) {
            world_set(a->g, i, 0);
            world_set(a->m, i, 0);
            world_set(a->v, i, 1);
        }
        double start = world_get(a->p, 7);
        a->decay = 1e-5 / a->lr * 3.3;
        for (a->step = 1; a->step <= 10000; a->step++)
            op_adamw(&t.w->ops, a);
        T_NEAR(log(world_get(a->p, 7) / start), 10000 * log(1 - 3.3e-5), 2e-4);
        T_NEAR(log(world_get(a->v, 7)), 10000 * log(0.999), 2e-4);
    }
}

/* ---- measuring ------------------------------------------------------------------------------- */

enum { ROUNDS = 5, COPY_BYTES = 256 << 20, COPY_TASK = 1 << 16 };

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

struct memcpy_job {
    char *to, *from;
};

static void memcpy_task(void *arg, int task, int thread)
{
    struct memcpy_job *j = arg;
    (void)thread;
    memcpy(j->to + (size_t)task * COPY_TASK, j->from + (size_t)task * COPY_TASK, COPY_TASK);
}

/* Seconds of one call: repeated until 10 ms have gone by. */
static double measure(const struct subject *s, struct trial *t)
{
    double start = now(), spent = 0;
    int calls = 0;
    do {
        ops_run(&t->w->ops, s->op, &t->a);
        calls++;
        spent = now() - start;
    } while (spent < 0.01);
    return spent / calls;
}

/* Interleaved, and the best of each. */
static void bench_call(const struct subject *s, int size, struct world *w, struct memcpy_job *job)
{
    struct trial t[2];
    double best[3] = {INFINITY, INFINITY, INFINITY};
    for (int i = 0; i < 2; i++) {
        t[i] = (struct trial){.w = i ? w : &ref,
                              .n = s->bench[size].n,
                              .bench = true,
                              .width = s->bench[size].width,
                              .mode = s->modes - 1};
        if (s->op == OP_XENT_STATS || s->op == OP_XENT_LOSS)
            t[i].mode = 1 - (s->op == OP_XENT_STATS); /* no maximum is given; gradients */
        if (s->op == OP_ADAMW)
            t[i].mode = 7;
        make(s, &t[i]);
    }
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < 2; i++)
            best[i] = fmin(best[i], measure(s, &t[i]));
        double start = now();
        pool_run(w->dev.pool, COPY_BYTES / COPY_TASK, memcpy_task, job);
        best[2] = fmin(best[2], now() - start);
    }
    double bytes = op_cost(s->op, &t[1].a).bytes, rate = bytes / best[1] * 1e-9;
    double copied = 2.0 * COPY_BYTES / best[2] * 1e-9;
    printf("%-10s [%5lld,%6lld] %-13s %10.2f us %7.2f GB/s  %6.2f x ref  memcpy %6.2f GB/s  %3.0f "
           "%%\n",
           op_name(s->op), (long long)t[1].n, (long long)t[1].width, w->ops.entry[s->op].filling,
           best[1] * 1e6, rate, best[0] / best[1], copied, 100 * rate / copied);
    fflush(stdout);
}

static void bench(void)
{
    struct memcpy_job job = {mem_new(COPY_BYTES, 1), mem_new(COPY_BYTES, 1)};
    struct world w;
    memset(job.to, 1, COPY_BYTES);
    memset(job.from, 1, COPY_BYTES);
    world_open(&ref, DTYPE_F32, "ref", 1, WORKSPACE);
    world_open(&w, DTYPE_F32, NULL, 0, WORKSPACE);
    printf("%d threads; ref has one; bytes as op_cost counts them\n", pool_threads(w.dev.pool));
    for (int i = 0; i < SUBJECTS; i++)
        for (int size = 0; size < 3; size++)
            bench_call(&subjects[i], size, &w, &job);
    world_close(&ref);
    world_close(&w);
    free(job.to);
    free(job.from);
}

int main(int argc, char **argv)
{
    static const struct t_case cases[] = {
        T_CASE(xent_stats), T_CASE(xent_loss), T_CASE(adamw), T_CASE(adamw_decays_as_told),
        T_CASE(sumsq),      T_CASE(fill),      T_CASE(copy)};
    static const struct t_case measured[] = {T_CASE(bench)};
    if (argc > 1 && strcmp(argv[1], "--bench") == 0)
        return t_run(measured, 1, 1, argv);
    int code = t_run(cases, sizeof(cases) / sizeof(cases[0]), argc, argv);
    close_worlds();
    return code;
}

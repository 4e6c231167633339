/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The vector backends of attention against the plain C that defines it: ragged rows, shared heads,
 * windows, caches, dropout; each width of vectors that the processor has, and the same bytes for
 * any number of threads.
 */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/t.h"
#include "tests/train/ops/world.h"

static const char *const level_names[] = {"plain", "avx2", "avx512"};
static const int thread_counts[] = {1, 2, 3, 7};
enum { LEVELS = 3, COUNTS = 4, SEQUENCES = 6 };

static struct world plain; /* owns the tensors too */
static struct world fast[LEVELS][COUNTS];
static bool here[LEVELS];

static void begin(uint64_t stream)
{
    struct ops o;
    struct err e;
    if (!plain.ops.call)
        world_open(&plain, DTYPE_F32, "ref", 1, 1 << 20);
    for (int l = 0; l < LEVELS; l++) {
        here[l] = ops_cpu_init(&o, NULL, NULL, DTYPE_F32, level_names[l], &e) == 0;
        for (int c = 0; c < COUNTS && here[l]; c++)
            if (!fast[l][c].ops.call)
                world_open(&fast[l][c], DTYPE_F32, level_names[l], thread_counts[c], 16 << 20);
    }
    T_CHECK(here[0]);
    world_clear(&plain, stream);
}

struct shape {
    int64_t heads, groups, dim, window;
    float p;
    int sequences;
    int32_t queries[SEQUENCES], past[SEQUENCES]; /* past: keys before the first query's own */
    bool part;                                   /* of the keys; then `past` is all there are */
    int32_t ahead[SEQUENCES];
};

static struct attention_args args_of(struct shape s)
{
    int32_t q_start[SEQUENCES + 1] = {0}, k_start[SEQUENCES], k_len[SEQUENCES], at = 2, longest = 1;
    for (int i = 0; i < s.sequences; i++) {
        q_start[i + 1] = q_start[i] + s.queries[i];
        k_len[i] = s.past[i] + (s.part ? 0 : s.queries[i]);
        k_start[i] = at;
        at += k_len[i] + i % 3; /* now and then, rows that belong to nobody */
        longest = k_len[i] > longest ? k_len[i] : longest;
    }
    int64_t n = q_start[s.sequences];
    struct attention_args a = {.q = world_3d(&plain, 1, n, s.heads, s.dim, 3),
                               .k = world_3d(&plain, 1, at, s.groups, s.dim, 1),
                               .v = world_3d(&plain, 1, at, s.groups, s.dim, 2),
                               .q_start = world_ints(&plain, s.sequences + 1, q_start),
                               .k_start = world_ints(&plain, s.sequences, k_start),
                               .k_len = world_ints(&plain, s.sequences, k_len),
                               .max_len = longest + 3,
                               .window = s.window,
                               .scale = (float)(1 / sqrt((double)s.dim)),
                               .drop = {.p = s.p, .seed = 5, .sub = 2, .row0 = 1000000007}};
    if (s.part) {
        a.ahead = world_ints(&plain, s.sequences, s.ahead);
        a.drop_row = world_ints(&plain, s.sequences, s.past);
        a.drop_key = world_ints(&plain, s.sequences, s.queries);
        a.head0 = 2;
        a.all_heads = s.heads + 5;
    }
    a.o = world_poisoned(&plain, DTYPE_F32, 1, 3, a.q.size);
    a.lse = world_poisoned(&plain, DTYPE_F32, 2, 2, (const int64_t[]){s.heads, n});
    return a;
}

static void same_numbers(const char *what, const char *level, struct tensor t, const float *want)
{
    for (int64_t i = 0; i < tensor_count(t); i++) {
        double a = world_get(t, i), b = (double)want[i];
        if (a != b && !(fabs(a - b) <= 2e-5 * fmax(1, fabs(b))))
            t_fail(__FILE__, __LINE__, "%s, %s: element %lld is %.8g, expected %.8g", level, what,
                   (long long)i, a, b);
    }
}

/* Output tensors of one op, and how the op is called. */
struct outputs {
    int n;
    struct tensor t[3];
    const char *name[3];
    void (*call)(struct ops *o, const void *args);
    const void *args;
};

static void compare_level(const struct outputs *x, int level, void *const want[])
{
    void *first[3];
    for (int c = 0; c < COUNTS; c++) {
        for (int i = 0; i < x->n; i++)
            if (tensor_count(x->t[i]) > 0)
                world_poison(x->t[i]);
        x->call(&fast[level][c].ops, x->args);
        for (int i = 0; i < x->n; i++) {
            void *bytes = world_bytes(x->t[i]);
            same_numbers(x->name[i], level_names[level], x->t[i], want[i]);
            if (c == 0)
                first[i] = bytes;
            else
                T_MEM(bytes, first[i], tensor_bytes(x->t[i]));
            if (c > 0)
                free(bytes);
        }
    }
    for (int i = 0; i < x->n; i++)
        free(first[i]);
}

/* Plain C last once more, so that what follows starts from its results. */
static void compare(const struct outputs *x)
{
    void *want[3];
    x->call(&plain.ops, x->args);
    for (int i = 0; i < x->n; i++)
        want[i] = world_bytes(x->t[i]);
    for (int level = 0; level < LEVELS; level++)
        if (here[level])
            compare_level(x, level, want);
    x->call(&plain.ops, x->args);
    world_guarded(&plain);
    for (int i = 0; i < x->n; i++)
        free(want[i]);
}

static void call_forward(struct ops *o, const void *args)
{
    op_attention(o, args);
}

static void call_backward(struct ops *o, const void *args)
{
    op_attention_bwd(o, args);
}

static void check(uint64_t stream, struct shape s, bool backward)
{
    begin(stream);
    struct attention_args a = args_of(s);
    compare(&(struct outputs){
        .n = 2, .t = {a.o, a.lse}, .name = {"o", "lse"}, .call = call_forward, .args = &a});
    if (!backward)
        return;
    struct attention_bwd_args b = {.fwd = a};
    b.dout = world_3d(&plain, 1, a.q.size[0], s.heads, s.dim, 1);
    b.dq = world_poisoned(&plain, DTYPE_F32, 2, 3, a.q.size);
    b.dk = world_poisoned(&plain, DTYPE_F32, 1, 3, a.k.size);
    b.dv = world_poisoned(&plain, DTYPE_F32, 5, 3, a.v.size);
    compare(&(struct outputs){.n = 3,
                              .t = {b.dq, b.dk, b.dv},
                              .name = {"dq", "dk", "dv"},
                              .call = call_backward,
                              .args = &b});
}

/* Sequences of every length, some empty, some behind a cache. */
static struct shape any_shape(uint64_t stream)
{
    static const int64_t dims[] = {64, 1, 4, 5, 16, 20, 32, 33, 80, 96, 128};
    static const int32_t lengths[] = {0, 1, 2, 5, 16, 31, 33, 64, 70};
    static const int32_t pasts[] = {0, 0, 0, 1, 7, 60, 130};
    struct shape s = {.dim = dims[t_rand(stream, 0) % 11], .groups = 1 + t_rand(stream, 1) % 3};
    s.heads = s.groups * (1 + t_rand(stream, 2) % 3);
    s.window = t_rand(stream, 3) % 3 ? 0 : 1 + t_rand(stream, 4) % 90;
    s.p = t_rand(stream, 5) % 3 ? 0 : 0.2f;
    s.sequences = 1 + (int)(t_rand(stream, 6) % SEQUENCES);
    for (int i = 0; i < s.sequences; i++) {
        uint64_t at = 7 + 2 * (uint64_t)i;
        s.queries[i] = lengths[t_rand(stream, at) % 9];
        s.past[i] = pasts[t_rand(stream, at + 1) % 7];
    }
    return s;
}

static void any_shapes(void)
{
    for (uint64_t stream = 100; stream < 140; stream++)
        check(stream, any_shape(stream), true);
}

/* Parts of the keys: no mask, a mask that is moved, keys and queries that see nothing. */
static void parts_of_keys(void)
{
    static const int32_t aheads[] = {0, 1000, 1, 5, 64, 70, -1, -3, -40, -1000};
    for (uint64_t stream = 300; stream < 350; stream++) {
        struct shape s = any_shape(stream);
        s.part = true;
        for (int i = 0; i < s.sequences; i++)
            s.ahead[i] = aheads[t_rand(stream, 40 + (uint64_t)i) % 10];
        check(stream, s, true);
    }
}

static void every_width_of_head(void)
{
    for (int64_t dim = 1; dim <= 70; dim += dim < 35 ? 1 : 5)
        check((uint64_t)dim,
              (struct shape){.heads = 2,
                             .groups = 2,
                             .dim = dim,
                             .sequences = 2,
                             .queries = {37, 9},
                             .past = {0, 3}},
              true);
}

/* Many blocks of keys, and one owner of them all: the keys are cut into parts. */
static void long_sequences(void)
{
    check(1, (struct shape){.heads = 2, .groups = 1, .dim = 64, .sequences = 1, .queries = {600}},
          true);
    check(2,
          (struct shape){.heads = 1,
                         .groups = 1,
                         .dim = 32,
                         .sequences = 2,
                         .p = 0.1f,
                         .queries = {300, 20},
                         .past = {0, 400}},
          true);
    check(3,
          (struct shape){.heads = 1,
                         .groups = 1,
                         .dim = 20,
                         .sequences = 2,
                         .window = 150,
                         .queries = {520, 5},
                         .past = {0, 300}},
          true);
}

/* A few queries at the end of a cache, with one sequence of more queries among them. */
static void decoding(void)
{
    static const int64_t dims[] = {64, 20, 128, 3};
    for (uint64_t i = 0; i < 16; i++)
        check(200 + i,
              (struct shape){.heads = 8,
                             .groups = i % 2 ? 8 : 2,
                             .dim = dims[i / 4],
                             .sequences = 5,
                             .window = i & 2 ? 100 : 0,
                             .p = i % 5 ? 0 : 0.1f,
                             .queries = {1, 3, 1, 4, 8},
                             .past = {300, 127, 128, 0, 40}},
              false);
    check(220,
          (struct shape){
              .heads = 40, .groups = 1, .dim = 64, .sequences = 1, .queries = {1}, .past = {200}},
          false);
}

static void nothing_to_do(void)
{
    check(1, (struct shape){.heads = 2, .groups = 1, .dim = 8, .sequences = 2, .past = {5, 0}},
          true);
    check(2, (struct shape){.heads = 2, .groups = 1, .dim = 8}, true);
}

/* Large scores neither overflow nor lose the small ones beside them. */
static void large_scores(void)
{
    begin(3);
    struct attention_args a = args_of((struct shape){
        .heads = 1, .groups = 1, .dim = 16, .sequences = 2, .queries = {70, 1}, .past = {0, 200}});
    for (int64_t i = 0; i < tensor_count(a.q); i++)
        world_set(a.q, i, 64 * round(world_get(a.q, i)));
    for (int64_t i = 0; i < tensor_count(a.k); i++)
        world_set(a.k, i, round(world_get(a.k, i)));
    a.scale = 1;
    compare(&(struct outputs){
        .n = 2, .t = {a.o, a.lse}, .name = {"o", "lse"}, .call = call_forward, .args = &a});
}

/* The same queries in two calls, behind their keys, have the same bits as in one. */
static void rows_do_not_depend_on_neighbours(void)
{
    enum { n = 90, first = 37 };
    begin(4);
    struct attention_args a = args_of((struct shape){.heads = 2,
                                                     .groups = 2,
                                                     .dim = 24,
                                                     .sequences = 1,
                                                     .window = 50,
                                                     .queries = {n},
                                                     .past = {100}});
    for (int level = 0; level < LEVELS; level++) {
        if (!here[level])
            continue;
        op_attention(&fast[level][0].ops, &a);
        void *whole = world_bytes(a.o);
        world_poison(a.o);
        for (int part = 0; part < 2; part++) {
            struct attention_args b = a;
            int32_t rows = part ? n - first : first;
            b.q = tensor_rows(a.q, part ? first : 0, rows);
            b.o = tensor_rows(a.o, part ? first : 0, rows);
            b.lse = (struct tensor){0};
            b.q_start = world_ints(&plain, 2, (const int32_t[]){0, rows});
            b.k_len = world_ints(&plain, 1, (const int32_t[]){100 + (part ? n : first)});
            op_attention(&fast[level][0].ops, &b);
        }
        void *parts = world_bytes(a.o);
        T_MEM(parts, whole, tensor_bytes(a.o));
        free(parts);
        free(whole);
    }
    world_guarded(&plain);
}

/* A workspace that is measured with the largest call does for all smaller ones. */
static void scratch_does_not_grow_as_calls_shrink(void)
{
    static const int64_t rows[] = {4096, 1024, 300, 40, 4, 1}, sequences[] = {1, 2, 4, 30, 300};
    begin(5);
    for (int level = 0; level < LEVELS; level++)
        for (int op = OP_ATTENTION; here[level] && op <= OP_ATTENTION_BWD; op++)
            for (int groups = 1; groups <= 64; groups *= 4) {
                size_t most[6] = {0};
                for (int i = 0; i < 30; i++) {
                    int64_t n = rows[i / 5], s = sequences[i % 5];
                    struct attention_bwd_args b = {
                        .fwd = {
                            .q = tensor_nd(NULL, DTYPE_F32, 3, (const int64_t[]){n, 64, 80}),
                            .k = tensor_nd(NULL, DTYPE_F32, 3, (const int64_t[]){4096, groups, 80}),
                            .k_len = tensor_1d(NULL, DTYPE_I32, s),
                            .max_len = n < 1024 ? n : 1024}};
                    const struct world *w = &fast[level][1];
                    size_t bytes = w->ops.entry[op].scratch(&w->dev.desc, &b);
                    T_CHECK(i < 5 || bytes <= most[i / 5 - 1]);
                    most[i / 5] = bytes > most[i / 5] || i % 5 == 0 ? bytes : most[i / 5];
                    T_CHECK(i % 5 == 0 || bytes == most[i / 5]);
                }
            }
}

T_MAIN(T_CASE(any_shapes), T_CASE(parts_of_keys), T_CASE(every_width_of_head),
       T_CASE(long_sequences), T_CASE(decoding), T_CASE(nothing_to_do), T_CASE(large_scores),
       T_CASE(rows_do_not_depend_on_neighbours), T_CASE(scratch_does_not_grow_as_calls_shrink))

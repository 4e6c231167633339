/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Every faster entry against its plain twin: sizes next to those of vectors and blocks, and random
 * ones, most of them odd; rows with gaps, poisoned outputs and scratch, guards round every tensor;
 * and the same bytes with any number of threads.
 */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/t.h"
#include "tests/train/ops/twins.h"

enum { DRAWS = 30, WORKSPACE = 48 << 20, THREADS = 4 };
static const int threads[THREADS] = {1, 2, 3, 7};

static struct world w; /* its table is the plain one, which also makes the inputs of backwards */
static struct {
    struct dev dev;
    struct ops ops;
} fast[THREADS];

static bool open_level(const char *level)
{
    struct err e;
    world_open(&w, DTYPE_F32, "ref", 1, WORKSPACE);
    for (int i = 0; i < THREADS; i++) {
        T_OK(dev_host_open(&fast[i].dev, threads[i], &e), &e);
        if (ops_cpu_init(&fast[i].ops, &fast[i].dev, &w.workspace, DTYPE_F32, level, &e))
            return false;
    }
    return true;
}

static void close_level(void)
{
    for (int i = 0; i < THREADS; i++)
        dev_close(&fast[i].dev);
    world_close(&w);
}

/* Scratch is nobody's: whatever lies there must not matter. */
static void poison_scratch(struct ops *o, const struct call *c)
{
    const struct op_entry *entry = &o->entry[c->op];
    size_t bytes = entry->scratch ? entry->scratch(&o->dev->desc, &c->u) : 0;
    T_CHECK(bytes <= w.workspace.size);
    memset(w.workspace.base, 0xff, bytes);
}

struct outcome {
    void *bytes[CALL_OUTS];
};

static struct outcome save(const struct call *c)
{
    struct outcome o = {{NULL}};
    for (int i = 0; i < c->outs; i++)
        o.bytes[i] = world_bytes(c->out[i]);
    return o;
}

static void put_back(const struct call *c, const struct outcome *o)
{
    for (int i = 0; i < c->outs; i++)
        world_restore(c->out[i], o->bytes[i]);
}

static void drop(struct outcome *o)
{
    for (int i = 0; i < CALL_OUTS; i++)
        free(o->bytes[i]);
}

static void run(struct ops *o, const struct call *c, const struct outcome *before,
                struct outcome *ret)
{
    put_back(c, before);
    poison_scratch(o, c);
    call_run(o, c);
    world_guarded(&w);
    *ret = save(c);
}

static double at(enum dtype d, const void *bytes, int64_t i)
{
    if (d == DTYPE_F64)
        return ((const double *)bytes)[i];
    return d == DTYPE_F32 ? (double)((const float *)bytes)[i] : ((const int32_t *)bytes)[i];
}

/* The limit of output k. */
static struct limit limit_of(const struct call *c, int k, const void *ref)
{
    if (c->limit[k].own)
        return c->limit[k];
    int64_t n = tensor_count(c->out[k]);
    double square = 0;
    for (int64_t i = 0; i < n; i++)
        square += pow(at(c->out[k].dtype, ref, i), 2);
    double rms = sqrt(square / (n ? (double)n : 1));
    return (struct limit){true, c->tolerance, c->tolerance * (rms + c->floor)};
}

static bool alike(double a, double b, struct limit l)
{
    if (isfinite(b))
        return fabs(a - b) <= l.relative * fabs(b) + l.absolute;
    return a == b || (isnan(a) && isnan(b));
}

static void near(const char *name, const struct call *c, const struct outcome *ref,
                 const struct outcome *have)
{
    for (int k = 0; k < c->outs; k++) {
        enum dtype d = c->out[k].dtype;
        struct limit l = limit_of(c, k, ref->bytes[k]);
        for (int64_t i = 0; i < tensor_count(c->out[k]); i++) {
            double a = at(d, have->bytes[k], i), b = at(d, ref->bytes[k], i);
            if (!alike(a, b, l))
                t_fail(__FILE__, __LINE__, "%s: output %d [%lld] is %.9g, plain twin %.9g", name, k,
                       (long long)i, a, b);
        }
    }
}

static void same_bytes(const char *name, const struct call *c, const struct outcome *a,
                       const struct outcome *b, int more)
{
    for (int k = 0; k < c->outs; k++)
        if (memcmp(a->bytes[k], b->bytes[k], tensor_bytes(c->out[k])) != 0)
            t_fail(__FILE__, __LINE__, "%s: output %d differs between 1 and %d threads", name, k,
                   more);
}

static void compare(const struct twin *t, const int64_t *d, uint32_t bits)
{
    struct call c = {0};
    struct outcome ref, one, more;
    char name[256];
    int n = snprintf(name, sizeof(name), "%s bits %u, %s =", t->name, bits, t->what);
    for (int i = 0; i < TWIN_SIZES && t->most[i]; i++)
        n += snprintf(name + n, sizeof(name) - (size_t)n, " %lld", (long long)d[i]);
    world_clear(&w, bits);
    t->make(&w, &c, d, bits);
    T_CHECK(fast[0].ops.entry[c.op].run != w.ops.entry[c.op].run);
    struct outcome before = save(&c);
    run(&w.ops, &c, &before, &ref);
    run(&fast[0].ops, &c, &before, &one);
    near(name, &c, &ref, &one);
    for (int i = 1; i < THREADS; i++) {
        run(&fast[i].ops, &c, &before, &more);
        same_bytes(name, &c, &one, &more, threads[i]);
        drop(&more);
    }
    drop(&before);
    drop(&ref);
    drop(&one);
}

/* Half of the sizes are drawn evenly, half are next to the widths of vectors and tiles. */
static int64_t draw_size(uint64_t stream, uint64_t i, int64_t most)
{
    static const int64_t edges[] = {1, 2, 3, 4, 5, 7, 8, 15, 16, 17, 31, 32, 33, 63, 64, 65, 128};
    uint32_t r = t_rand(stream, 2 * i), s = t_rand(stream, 2 * i + 1);
    int64_t edge = edges[s % (sizeof(edges) / sizeof(edges[0]))];
    return r & 1 && edge <= most ? edge : 1 + (int64_t)(s % (uint64_t)most);
}

static uint32_t draw_bits(int k, uint64_t i)
{
    return t_rand((uint64_t)k + 5000, i) & ((1u << TWIN_BITS) - 1);
}

static void at_random(int k)
{
    for (uint64_t i = 0; i < DRAWS; i++) {
        int64_t d[TWIN_SIZES] = {0};
        for (uint64_t j = 0; j < TWIN_SIZES && twins[k].most[j]; j++)
            d[j] = draw_size((uint64_t)k * 1000 + i, j, twins[k].most[j]);
        compare(&twins[k], d, draw_bits(k, i));
    }
}

/* Small ones in many forms, large ones in a few. One size is the product, a third is drawn. */
static void at_edges(int k)
{
    static const int64_t edge[][2] = {{0, 5},  {1, 1},   {5, 1},     {3, 15},    {2, 16},
                                      {2, 17}, {3, 63},  {1, 65},    {4, 2047},  {2, 2049},
                                      {9, 33}, {70, 97}, {5, 20001}, {50, 1031}, {1, 50257}};
    const struct twin *t = &twins[k];
    for (uint64_t i = 0; i < sizeof(edge) / sizeof(edge[0]); i++)
        for (uint64_t form = 0; form < (i < 12 ? 12 : 3); form++) {
            int64_t d[TWIN_SIZES] = {edge[i][0], edge[i][1]};
            if (!t->most[1])
                d[0] *= d[1];
            if (t->most[2])
                d[2] = draw_size((uint64_t)k * 1000 + i, form, t->most[2]);
            compare(t, d, draw_bits(k, 100 * i + form));
        }
}

static void level(const char *name)
{
    if (!open_level(name)) {
        close_level();
        t_skip("the processor has no %s", name);
    }
    for (int k = 0; k < twin_count; k++) {
        at_random(k);
        if (twins[k].edges)
            at_edges(k);
    }
    close_level();
}

static void plain(void)
{
    level("plain");
}

static void avx2(void)
{
    level("avx2");
}

static void avx512(void)
{
    level("avx512");
}

T_MAIN(T_CASE(plain), T_CASE(avx2), T_CASE(avx512))

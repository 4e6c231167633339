/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Every faster entry against its plain twin: random sizes, most of them odd, rows with gaps,
 * poisoned outputs and scratch, guards round every tensor; and the same bytes with any number of
 * threads.
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

static void near(const char *name, const struct call *c, const struct outcome *ref,
                 const struct outcome *have)
{
    for (int k = 0; k < c->outs; k++) {
        enum dtype d = c->out[k].dtype;
        int64_t n = tensor_count(c->out[k]);
        double square = 0;
        for (int64_t i = 0; i < n; i++)
            square += at(d, ref->bytes[k], i) * at(d, ref->bytes[k], i);
        double rms = sqrt(square / (n ? (double)n : 1));
        for (int64_t i = 0; i < n; i++) {
            double a = at(d, have->bytes[k], i), b = at(d, ref->bytes[k], i);
            if (!(fabs(a - b) <= c->tolerance * (fabs(b) + rms + c->floor)))
                t_fail(__FILE__, __LINE__, "%s: output %d [%lld] is %.9g, plain twin %.9g", name,
                       k, (long long)i, a, b);
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

static void level(const char *name)
{
    if (!open_level(name)) {
        close_level();
        t_skip("the processor has no %s", name);
    }
    for (int k = 0; k < twin_count; k++) {
        const struct twin *t = &twins[k];
        for (uint64_t i = 0; i < DRAWS; i++) {
            int64_t d[TWIN_SIZES] = {0};
            for (uint64_t j = 0; j < TWIN_SIZES && t->most[j]; j++)
                d[j] = draw_size((uint64_t)k * 1000 + i, j, t->most[j]);
            compare(t, d, t_rand((uint64_t)k + 5000, i) & 0x1ff);
        }
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

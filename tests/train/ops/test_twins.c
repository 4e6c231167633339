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
#include "tests/train/ops/compare.h"
#include "tests/train/ops/twins.h"

enum { WORKSPACE = 48 << 20, THREADS = 4 };
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

static void run(struct ops *o, const struct call *c, const struct outcome *before,
                struct outcome *ret)
{
    outcome_put_back(c, before);
    poison_scratch(o, c);
    call_run(o, c);
    world_guarded(&w);
    *ret = outcome_save(c);
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
    struct outcome before = outcome_save(&c);
    run(&w.ops, &c, &before, &ref);
    run(&fast[0].ops, &c, &before, &one);
    outcome_near(name, &c, &ref, &one);
    for (int i = 1; i < THREADS; i++) {
        run(&fast[i].ops, &c, &before, &more);
        same_bytes(name, &c, &one, &more, threads[i]);
        outcome_drop(&more);
    }
    outcome_drop(&before);
    outcome_drop(&ref);
    outcome_drop(&one);
}

static void level(const char *name)
{
    if (!open_level(name)) {
        close_level();
        t_skip("the processor has no %s", name);
    }
    for (int k = 0; k < twin_count; k++)
        if (!twins[k].apart)
            draw_calls(k, compare);
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

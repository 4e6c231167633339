/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/train/ops/world.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/mem.h"
#include "base/core/rng.h"
#include "tests/t.h"

enum { GUARD = 256 };
static const uint32_t poison = 0x7fd7e57e;

void world_open(struct world *w, enum dtype real, const char *level, int threads, size_t workspace)
{
    struct err e;
    memset(w, 0, sizeof(*w));
    T_OK(dev_host_open(&w->dev, threads, &e), &e);
    slab_init(&w->workspace, "workspace", PLACE_HOST);
    slab_bytes(&w->workspace, workspace);
    T_OK(slab_bind(&w->workspace, &w->dev, &e), &e);
    T_OK(ops_cpu_init(&w->ops, &w->dev, &w->workspace, real, level, &e), &e);
}

void world_clear(struct world *w, uint64_t stream)
{
    for (int i = 0; i < w->pieces; i++)
        free(w->piece[i].memory);
    w->pieces = 0;
    w->stream = stream;
}

void world_close(struct world *w)
{
    world_clear(w, 0);
    slab_release(&w->workspace, &w->dev);
    dev_close(&w->dev);
}

static void fill_poison(void *p, size_t bytes)
{
    for (size_t i = 0; i < bytes; i += 4)
        memcpy((char *)p + i, &poison, 4);
}

static int64_t inner(struct tensor t)
{
    int64_t n = 1;
    for (int i = 1; i < t.rank; i++)
        n *= t.size[i];
    return n;
}

static char *element(struct tensor t, int64_t i)
{
    int64_t n = inner(t);
    return (char *)t.data + (size_t)(i / n * t.stride + i % n) * dtype_size(t.dtype);
}

struct tensor world_poisoned(struct world *w, enum dtype d, int64_t gap, int rank,
                             const int64_t *size)
{
    struct tensor t = tensor_nd(NULL, d, rank, size);
    t.stride += rank > 1 ? gap : 0;
    T_CHECK(w->pieces < WORLD_PIECES);
    struct piece *p = &w->piece[w->pieces++];
    p->bytes = 2 * GUARD + (size_t)(t.size[0] * t.stride) * dtype_size(d);
    p->bytes = (p->bytes + 63) / 64 * 64;
    p->memory = aligned_alloc(64, p->bytes);
    T_CHECK(p->memory != NULL);
    fill_poison(p->memory, p->bytes);
    t.data = p->memory + GUARD;
    p->t = t;
    return t;
}

void world_poison(struct tensor t)
{
    for (int64_t i = 0; i < t.size[0]; i++)
        fill_poison(element(t, i * inner(t)), (size_t)inner(t) * dtype_size(t.dtype));
}

double world_get(struct tensor t, int64_t i)
{
    const char *p = element(t, i);
    if (t.dtype == DTYPE_F64)
        return *(const double *)p;
    return t.dtype == DTYPE_F32 ? (double)*(const float *)p : (double)*(const int32_t *)p;
}

void world_set(struct tensor t, int64_t i, double v)
{
    char *p = element(t, i);
    if (t.dtype == DTYPE_F64)
        *(double *)p = v;
    else if (t.dtype == DTYPE_F32)
        *(float *)p = (float)v;
    else
        *(int32_t *)p = (int32_t)v;
}

struct tensor world_random(struct world *w, double scale, int64_t gap, int rank,
                           const int64_t *size)
{
    struct tensor t = world_poisoned(w, w->ops.real, gap, rank, size);
    int64_t n = tensor_count(t);
    struct rng4 r = {{0}};
    for (int64_t i = 0; i < n; i++) {
        if (i % 4 == 0)
            r = rng_block(w->stream, RNG_TEST, 1, (uint64_t)i / 4);
        double even = (double)r.v[i % 4] * 0x1p-31 - 1;
        world_set(t, i, scale * 1.7320508075688772 * even);
    }
    w->stream++;
    return t;
}

struct tensor world_1d(struct world *w, double scale, int64_t n)
{
    return world_random(w, scale, 0, 1, &n);
}

struct tensor world_2d(struct world *w, double scale, int64_t rows, int64_t cols, int64_t gap)
{
    return world_random(w, scale, gap, 2, (const int64_t[]){rows, cols});
}

struct tensor world_3d(struct world *w, double scale, int64_t n, int64_t heads, int64_t dim,
                       int64_t gap)
{
    return world_random(w, scale, gap, 3, (const int64_t[]){n, heads, dim});
}

struct tensor world_ids(struct world *w, int64_t n, int64_t below)
{
    struct tensor t = world_poisoned(w, DTYPE_I32, 0, 1, &n);
    for (int64_t i = 0; i < n; i++)
        ((int32_t *)t.data)[i] = (int32_t)(t_rand(w->stream, (uint64_t)i) % (uint32_t)below);
    w->stream++;
    return t;
}

struct tensor world_values(struct world *w, struct step_values v)
{
    struct tensor t = world_poisoned(w, DTYPE_F64, 0, 1, (const int64_t[]){STEP_VALUES});
    memcpy(t.data, &v, sizeof(v));
    return t;
}

struct tensor world_ints(struct world *w, int64_t n, const int32_t *value)
{
    struct tensor t = world_poisoned(w, DTYPE_I32, 0, 1, &n);
    memcpy(t.data, value, (size_t)n * sizeof(*value));
    return t;
}

/* Rows of types of 16 bits may end in the middle of a poison. */
static bool poisoned(const struct piece *p, const char *from, const char *to)
{
    for (; from < to; from++)
        if (*from != ((const char *)&poison)[(from - p->memory) % 4])
            return false;
    return true;
}

void world_guarded(const struct world *w)
{
    for (int i = 0; i < w->pieces; i++) {
        const struct piece *p = &w->piece[i];
        const char *at = p->memory;
        size_t length = (size_t)inner(p->t) * dtype_size(p->t.dtype);
        for (int64_t r = 0; r < p->t.size[0] && length; r++) {
            const char *row = element(p->t, r * inner(p->t));
            if (!poisoned(p, at, row))
                t_fail(__FILE__, __LINE__, "tensor %d was written outside, before row %lld", i,
                       (long long)r);
            at = row + length;
        }
        if (!poisoned(p, at, p->memory + p->bytes))
            t_fail(__FILE__, __LINE__, "tensor %d was written outside, behind its end", i);
    }
}

void *world_bytes(struct tensor t)
{
    size_t size = dtype_size(t.dtype);
    int64_t n = inner(t);
    char *copy = mem_new((size_t)tensor_count(t) + 1, size);
    for (int64_t i = 0; i < t.size[0] && n; i++)
        memcpy(copy + (size_t)(i * n) * size, element(t, i * n), (size_t)n * size);
    return copy;
}

void world_restore(struct tensor t, const void *bytes)
{
    size_t size = dtype_size(t.dtype);
    int64_t n = inner(t);
    for (int64_t i = 0; i < t.size[0] && n; i++)
        memcpy(element(t, i * n), (const char *)bytes + (size_t)(i * n) * size, (size_t)n * size);
}

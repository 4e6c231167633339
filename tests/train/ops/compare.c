/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/train/ops/compare.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/t.h"

enum { DRAWS = 30 };

struct outcome outcome_save(const struct call *c)
{
    struct outcome o = {{NULL}};
    for (int i = 0; i < c->outs; i++)
        o.bytes[i] = world_bytes(c->out[i]);
    return o;
}

void outcome_put_back(const struct call *c, const struct outcome *o)
{
    for (int i = 0; i < c->outs; i++)
        world_restore(c->out[i], o->bytes[i]);
}

void outcome_drop(struct outcome *o)
{
    for (int i = 0; i < CALL_OUTS; i++)
        free(o->bytes[i]);
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

void outcome_near(const char *name, const struct call *c, const struct outcome *ref,
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

static void at_random(int k, twin_compare *compare)
{
    for (uint64_t i = 0; i < DRAWS; i++) {
        int64_t d[TWIN_SIZES] = {0};
        for (uint64_t j = 0; j < TWIN_SIZES && twins[k].most[j]; j++)
            d[j] = draw_size((uint64_t)k * 1000 + i, j, twins[k].most[j]);
        compare(&twins[k], d, draw_bits(k, i));
    }
}

/* Small ones in many forms, large ones in a few. One size is the product, a third is drawn. */
static void at_edges(int k, twin_compare *compare)
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

void draw_calls(int k, twin_compare *compare)
{
    at_random(k, compare);
    if (twins[k].edges)
        at_edges(k, compare);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "train/tensor/box_ops.h"

#include <string.h>

#include "base/core/err.h"

enum { RUN = 1024 }; /* elements of a row that are calculated with at once */

/* The address of the element [row, col] of the tensor. */
static char *at(struct box_mem m, int64_t row, int64_t col)
{
    int64_t i = (row - m.box.begin[0]) * m.stride + (col - m.box.begin[1]);
    return (char *)m.data + i * (int64_t)dtype_size(m.dtype);
}

/* ---- order ---------------------------------------------------------------------------------- */

static struct box turned(struct box b)
{
    return (struct box){{b.begin[1], b.begin[0]}, {b.count[1], b.count[0]}};
}

static void copy_elements(char *to, int64_t to_step, const char *from, int64_t from_step,
                          size_t size, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        memcpy(to + i * to_step, from + i * from_step, size);
}

/* The tile b of `to`, by way of one of its own where types differ. */
static void transpose_tile(struct box_mem to, struct box_mem from, struct box b)
{
    size_t size = dtype_size(from.dtype);
    for (int64_t r = 0; r < b.count[0]; r++) {
        char row[64 * 8];
        int64_t y = b.begin[0] + r;
        copy_elements(row, (int64_t)size, at(from, b.begin[1], y), from.stride * (int64_t)size,
                      size, b.count[1]);
        box_cast(at(to, y, b.begin[1]), to.dtype, row, from.dtype, b.count[1]);
    }
}

int64_t box_copy_transposed(struct box_mem to, struct box_mem from)
{
    enum { TILE = 64 }; /* a tile of both sides stays in the first cache */
    struct box b;
    if (!box_intersect(to.box, turned(from.box), &b))
        return 0;
    for (int64_t r = 0; r < b.count[0]; r += TILE)
        for (int64_t c = 0; c < b.count[1]; c += TILE) {
            struct box tile = {{b.begin[0] + r, b.begin[1] + c},
                               {b.count[0] - r < TILE ? b.count[0] - r : TILE,
                                b.count[1] - c < TILE ? b.count[1] - c : TILE}};
            transpose_tile(to, from, tile);
        }
    return box_count(b);
}

/* ---- values --------------------------------------------------------------------------------- */

/* Calls fn for each run of at most RUN elements of a row, as floats that it may change. */
static void for_runs(struct box_mem m,
                     void (*fn)(float *v, int64_t row, int64_t col, int64_t n, const void *arg),
                     const void *arg)
{
    float v[RUN];
    for (int64_t r = 0; r < m.box.count[0]; r++)
        for (int64_t c = 0; c < m.box.count[1]; c += RUN) {
            int64_t y = m.box.begin[0] + r, x = m.box.begin[1] + c;
            int64_t n = m.box.count[1] - c < RUN ? m.box.count[1] - c : RUN;
            box_cast(v, DTYPE_F32, at(m, y, x), m.dtype, n);
            fn(v, y, x, n, arg);
            box_cast(at(m, y, x), m.dtype, v, DTYPE_F32, n);
        }
}

static void add_value(float *v, int64_t row, int64_t col, int64_t n, const void *arg)
{
    (void)row;
    (void)col;
    for (int64_t i = 0; i < n; i++)
        v[i] += *(const float *)arg;
}

void box_add(struct box_mem m, float v)
{
    for_runs(m, add_value, &v);
}

struct low_rank {
    const float *b, *a;
    int64_t rank, columns;
    float scale;
};

static void add_product(float *v, int64_t row, int64_t col, int64_t n, const void *arg)
{
    const struct low_rank *u = arg;
    float sum[RUN] = {0};
    for (int64_t k = 0; k < u->rank; k++) {
        const float *a = u->a + k * u->columns + col;
        float b = u->b[row * u->rank + k];
        for (int64_t i = 0; i < n; i++)
            sum[i] += b * a[i];
    }
    for (int64_t i = 0; i < n; i++)
        v[i] += u->scale * sum[i];
}

void box_add_low_rank(struct box_mem m, const float *b, const float *a, int64_t rank,
                      int64_t columns, float scale)
{
    struct low_rank u = {b, a, rank, columns, scale};
    for_runs(m, add_product, &u);
}

struct weighted {
    const struct box_mem *from;
    const float *weight;
    size_t n;
};

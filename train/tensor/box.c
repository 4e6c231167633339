/* SPDX-License-Identifier: Apache-2.0 */
#include "train/tensor/box.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"

struct box box_whole(int rank, const int64_t *size)
{
    BUG_ON(rank < 1 || rank > 2, "a box of rank %d", rank);
    return (struct box){.begin = {0, 0}, .count = {size[0], rank == 2 ? size[1] : 1}};
}

int64_t box_count(struct box b)
{
    return b.count[0] * b.count[1];
}

static bool range_inside(int64_t begin, int64_t count, int64_t low, int64_t n)
{
    /* by differences: begin + count could overflow when they come from a file */
    return count >= 0 && begin >= low && begin - low <= n && count <= n - (begin - low);
}

bool box_inside(struct box b, struct box whole)
{
    return range_inside(b.begin[0], b.count[0], whole.begin[0], whole.count[0]) &&
           range_inside(b.begin[1], b.count[1], whole.begin[1], whole.count[1]);
}

bool box_equal(struct box a, struct box b)
{
    return a.begin[0] == b.begin[0] && a.begin[1] == b.begin[1] && a.count[0] == b.count[0] &&
           a.count[1] == b.count[1];
}

static int64_t end_of(struct box b, int dim)
{
    return b.begin[dim] + b.count[dim];
}

bool box_intersect(struct box a, struct box b, struct box *ret)
{
    struct box r = {{0, 0}, {0, 0}};
    for (int d = 0; d < 2; d++) {
        int64_t end = end_of(a, d) < end_of(b, d) ? end_of(a, d) : end_of(b, d);
        r.begin[d] = a.begin[d] > b.begin[d] ? a.begin[d] : b.begin[d];
        r.count[d] = end > r.begin[d] ? end - r.begin[d] : 0;
    }
    bool some = r.count[0] > 0 && r.count[1] > 0;
    if (!some)
        r.count[0] = r.count[1] = 0;
    *ret = r;
    return some;
}

/* ---- coverage ------------------------------------------------------------------------------ */

static int by_begin(const void *a, const void *b)
{
    const struct box *x = a, *y = b;
    for (int d = 0; d < 2; d++)
        if (x->begin[d] != y->begin[d])
            return x->begin[d] < y->begin[d] ? -1 : 1;
    /* an empty part before the one that begins at the same place, so that neighbours can meet */
    return (box_count(*x) > 0) - (box_count(*y) > 0);
}

/* The first part that has an element in common with an earlier one; n if none has. */
static size_t find_overlap(const struct box *parts, size_t n)
{
    struct box common;
    size_t first = n;
    for (size_t i = 0; i < n; i++) {
        if (box_count(parts[i]) == 0)
            continue;
        for (size_t j = i + 1; j < first && parts[j].begin[0] < end_of(parts[i], 0); j++)
            if (box_intersect(parts[i], parts[j], &common))
                first = j;
    }
    return first;
}

enum box_flaw box_cover(struct box whole, struct box *parts, size_t n, size_t *at)
{
    *at = n;
    if (n > BOX_PARTS_MAX)
        return BOX_TOO_MANY;
    if (n)
        qsort(parts, n, sizeof(*parts), by_begin);
    int64_t sum = 0; /* may wrap only after an overlap, which is found first */
    for (size_t i = 0; i < n; i++) {
        if (!box_inside(parts[i], whole)) {
            *at = i;
            return BOX_OUTSIDE;
        }
    }
    *at = find_overlap(parts, n);
    if (*at < n)
        return BOX_OVERLAP;
    for (size_t i = 0; i < n; i++)
        sum += box_count(parts[i]);
    return sum == box_count(whole) ? BOX_COVERED : BOX_HOLE;
}

/* ---- casts --------------------------------------------------------------------------------- */

static float bits_float(uint32_t u)
{
    float f;
    memcpy(&f, &u, sizeof(f));
    return f;
}

static uint32_t float_bits(float f)
{
    uint32_t u;
    memcpy(&u, &f, sizeof(u));
    return u;
}

static float from_bf16(uint16_t h)
{
    return bits_float((uint32_t)h << 16);
}

static uint16_t to_bf16(float f)
{
    uint32_t u = float_bits(f);
    if ((u & 0x7fffffff) > 0x7f800000) /* keep a NaN one, and quiet */
        return (uint16_t)(u >> 16 | 0x40);
    return (uint16_t)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}

static float from_f16(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000) << 16, exp = h >> 10 & 31, man = h & 1023;
    if (exp == 31)
        return bits_float(sign | 0x7f800000 | man << 13);
    if (exp == 0) { /* subnormal: man x 2^-24 is exact */
        float f = (float)man * 0x1p-24f;
        return sign ? -f : f;
    }
    return bits_float(sign | (exp + 112) << 23 | man << 13);
}

static uint16_t to_f16(float f)
{
    uint32_t u = float_bits(f), sign = u >> 16 & 0x8000, abs = u & 0x7fffffff;
    if (abs > 0x7f800000)
        return (uint16_t)(sign | 0x7e00);
    if (abs >= 0x477ff000) /* 65520: half way between the largest number and 2^16 */
        return (uint16_t)(sign | 0x7c00);
    if (abs < 0x38800000) { /* below 2^-14: let the FPU round at the last bit, which is 2^-24 */
        float t = bits_float(abs) + 0.5f;
        return (uint16_t)(sign | (float_bits(t) - 0x3f000000));
    }
    abs += 0xfff + (abs >> 13 & 1);
    return (uint16_t)(sign | ((abs - 0x38000000) >> 13));
}

/*
 * A double becomes a float rounded to odd, so that the next rounding, to 16 bits, sees on which
 * side of a tie it was.
 */
static float odd_float(double d)
{
    float f = (float)d;
    double back = (double)f;
    uint32_t u = float_bits(f);
    if (back == d || d != d || (u & 0x7f800000) == 0x7f800000)
        return f;
    if (u & 1)
        return f;
    bool away = d > 0 ? back > d : back < d;
    return bits_float(away ? u - 1 : u + 1);
}

bool box_can_cast(enum dtype from, enum dtype to)
{
    return from == to || (from != DTYPE_I32 && to != DTYPE_I32);
}

static double load(const char *p, enum dtype t)
{
    float f;
    double d;
    uint16_t h;
    switch (t) {
    case DTYPE_F64:
        memcpy(&d, p, sizeof(d));
        return d;
    case DTYPE_F32:
        memcpy(&f, p, sizeof(f));
        return (double)f;
    default:
        memcpy(&h, p, sizeof(h));
        return (double)(t == DTYPE_BF16 ? from_bf16(h) : from_f16(h));
    }
}

static void store(char *p, enum dtype t, double d)
{
    float f = (float)d;
    uint16_t h;
    switch (t) {
    case DTYPE_F64:
        memcpy(p, &d, sizeof(d));
        return;
    case DTYPE_F32:
        memcpy(p, &f, sizeof(f));
        return;
    default:
        f = odd_float(d);
        h = t == DTYPE_BF16 ? to_bf16(f) : to_f16(f);
        memcpy(p, &h, sizeof(h));
    }
}

void box_cast(void *to, enum dtype to_type, const void *from, enum dtype from_type, int64_t n)
{
    BUG_ON(!box_can_cast(from_type, to_type), "a cast from %s to %s", dtype_name(from_type),
           dtype_name(to_type));
    size_t from_size = dtype_size(from_type), to_size = dtype_size(to_type);
    if (from_type == to_type) {
        if (n)
            memcpy(to, from, (size_t)n * to_size);
        return;
    }
    const char *s = from;
    char *d = to;
    for (int64_t i = 0; i < n; i++, s += from_size, d += to_size)
        store(d, to_type, load(s, from_type));
}

static char *at_row(struct box_mem m, int64_t row, int64_t col)
{
    int64_t i = (row - m.box.begin[0]) * m.stride + (col - m.box.begin[1]);
    return (char *)m.data + i * (int64_t)dtype_size(m.dtype);
}

int64_t box_copy(struct box_mem to, struct box_mem from)
{
    struct box b;
    if (!box_intersect(to.box, from.box, &b))
        return 0;
    int64_t rows = b.count[0], cols = b.count[1];
    if (to.stride == cols && from.stride == cols) { /* whole rows on both sides: one run */
        cols *= rows;
        rows = 1;
    }
    for (int64_t r = 0; r < rows; r++)
        box_cast(at_row(to, b.begin[0] + r, b.begin[1]), to.dtype,
                 at_row(from, b.begin[0] + r, b.begin[1]), from.dtype, cols);
    return box_count(b);
}

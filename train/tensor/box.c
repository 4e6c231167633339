/* SPDX-License-Identifier: Apache-2.0 */
#include "train/tensor/box.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/err.h"

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

/* ---- copies -------------------------------------------------------------------------------- */

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

/* ---- ranges ---------------------------------------------------------------------------------- */

size_t box_of_range(struct box whole, int64_t begin, int64_t end, struct box ret[3])
{
    int64_t cols = whole.count[1];
    BUG_ON(begin < 0 || end < begin || end > box_count(whole), "elements %lld to %lld of %lld",
           (long long)begin, (long long)end, (long long)box_count(whole));
    size_t n = 0;
    while (begin < end) { /* what is left of a row, whole rows, the beginning of a row */
        int64_t row = begin / cols, col = begin % cols, left = end - begin;
        struct box b = {{whole.begin[0] + row, whole.begin[1] + col}, {1, cols - col}};
        if (col == 0 && left >= cols)
            b.count[0] = left / cols;
        else if (left < b.count[1])
            b.count[1] = left;
        ret[n++] = b;
        begin += box_count(b);
    }
    return n;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "train/ops/check.h"

#include <stdio.h>

#include "train/ops/values.h"

static void shape_text(char *ret, size_t n, enum dtype d, int rank, const int64_t *size)
{
    int at = snprintf(ret, n, "%s [", dtype_name(d));
    for (int i = 0; i < rank; i++)
        at += snprintf(ret + at, n - (size_t)at, "%s%lld", i ? "," : "", (long long)size[i]);
    snprintf(ret + at, n - (size_t)at, "]");
}

void ops_need(struct check c, const char *what, struct tensor t, enum dtype d, int rank,
              const int64_t *size)
{
    bool same = rank >= 1 && t.dtype == d && t.rank == rank;
    int64_t inner = 1;
    for (int i = 0; same && i < rank; i++) {
        same = t.size[i] == size[i];
        inner *= i ? size[i] : 1;
    }
    if (same && t.stride >= inner && (t.data || !tensor_count(t)))
        return;
    char have[128], want[128];
    shape_text(have, sizeof(have), t.dtype, t.rank, t.size);
    shape_text(want, sizeof(want), d, rank, size);
    BUG("%s: %s is %s at %p with stride %lld, expected %s", op_name(c.op), what, have, t.data,
        (long long)t.stride, want);
}

void ops_need_1d(struct check c, const char *what, struct tensor t, enum dtype d, int64_t n)
{
    ops_need(c, what, t, d, 1, &n);
}

void ops_need_2d(struct check c, const char *what, struct tensor t, enum dtype d, int64_t rows,
                 int64_t cols)
{
    ops_need(c, what, t, d, 2, (const int64_t[]){rows, cols});
}

void ops_need_3d(struct check c, const char *what, struct tensor t, int64_t n, int64_t heads,
                 int64_t dim)
{
    ops_need(c, what, t, c.o->real, 3, (const int64_t[]){n, heads, dim});
}

void ops_need_none(struct check c, const char *what, struct tensor t, const char *why)
{
    BUG_ON(!tensor_none(t), "%s: %s is given %s", op_name(c.op), what, why);
}

void ops_need_host(const struct ops *o, enum op op, const char *form)
{
    BUG_ON(o->workspace->base && !o->dev->desc.host, "%s: %s is not implemented for %s",
           op_name(op), form, o->dev->desc.name);
}

void ops_need_drop(struct check c, struct dropout d, int64_t n)
{
    BUG_ON(!(d.p >= 0 && d.p < 1), "%s: dropout of %g", op_name(c.op), (double)d.p);
    if (!tensor_none(d.origin))
        ops_need_1d(c, "origin", d.origin, DTYPE_I32, DROP_ORIGIN);
    if (tensor_none(d.rows))
        return;
    ops_need_host(c.o, c.op, "a part of the sequence");
    ops_need_1d(c, "rows", d.rows, DTYPE_I32, n);
}

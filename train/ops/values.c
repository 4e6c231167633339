/* SPDX-License-Identifier: Apache-2.0 */
#include "train/ops/values.h"

#include "train/ops/check.h"

void op_select(struct ops *o, const struct select_args *a)
{
    struct check c = CHECK_OF(OP_SELECT);
    int64_t n = a->y.size[0];
    ops_need_1d(c, "y", a->y, DTYPE_F64, n);
    ops_need_2d(c, "x", a->x, DTYPE_F64, 2, n);
    ops_need_1d(c, "skip", a->skip, DTYPE_I32, 1);
    BUG_ON(n > 1024 || !tensor_contiguous(a->x), "select: rows of %lld", (long long)n);
    o->call(o, OP_SELECT, a);
}

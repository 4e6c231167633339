/* SPDX-License-Identifier: Apache-2.0 */
#include "train/ops/rounding.h"

#include "train/ops/check.h"

void ops_need_rounding(struct check c, struct rounding r)
{
    if (tensor_none(r.runs))
        return;
    ops_need_2d(c, "runs", r.runs, DTYPE_I32, r.runs.size[0], RUN_INTS);
    ops_need_1d(c, "number", r.number, DTYPE_F64, 1);
    BUG_ON(r.first < 0 || !r.runs.size[0] || !tensor_contiguous(r.runs), "%s: %lld runs from %lld",
           op_name(c.op), (long long)r.runs.size[0], (long long)r.first);
}

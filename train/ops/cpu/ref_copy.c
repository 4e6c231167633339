/* SPDX-License-Identifier: Apache-2.0 */
#include "train/ops/cpu/ref.h"

#include <string.h>

/* Elements of one row, and the address of row i, of a tensor of any type. */
static int64_t row_length(struct tensor t)
{
    return t.size[0] ? tensor_count(t) / t.size[0] : 0;
}

static char *row_bytes(struct tensor t, int64_t i)
{
    return (char *)t.data + (size_t)(i * t.stride) * dtype_size(t.dtype);
}

static void fill_run(void *at, enum dtype d, int64_t n, double value)
{
    for (int64_t i = 0; i < n; i++) {
        if (d == DTYPE_F32)
            ((float *)at)[i] = (float)value;
        else if (d == DTYPE_F64)
            ((double *)at)[i] = value;
        else
            ((int32_t *)at)[i] = (int32_t)value;
    }
}

void REF(fill)(struct ops *o, const void *args, void *scratch)
{
    const struct fill_args *a = args;
    (void)o;
    (void)scratch;
    if (tensor_contiguous(a->y)) {
        fill_run(a->y.data, a->y.dtype, tensor_count(a->y), a->value);
        return;
    }
    for (int64_t i = 0; i < a->y.size[0]; i++)
        fill_run(row_bytes(a->y, i), a->y.dtype, row_length(a->y), a->value);
}

void REF(copy)(struct ops *o, const void *args, void *scratch)
{
    const struct copy_args *a = args;
    int64_t length = row_length(a->y);
    (void)o;
    (void)scratch;
    for (int64_t i = 0; i < a->y.size[0]; i++) {
        if (a->accumulate)
            for (int64_t j = 0; j < length; j++)
                row(a->y, i)[j] += row(a->x, i)[j];
        else
            memcpy(row_bytes(a->y, i), row_bytes(a->x, i), (size_t)length * dtype_size(a->y.dtype));
    }
}

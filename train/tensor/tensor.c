/* SPDX-License-Identifier: Apache-2.0 */
#include "train/tensor/tensor.h"

#include "base/core/err.h"

struct tensor tensor_nd(void *data, enum dtype d, int rank, const int64_t *size)
{
    BUG_ON(rank < 1 || rank > 4, "tensor of rank %d", rank);
    struct tensor t = {.data = data, .dtype = d, .rank = rank, .stride = 1};
    for (int i = 0; i < rank; i++) {
        BUG_ON(size[i] < 0, "size %lld", (long long)size[i]);
        t.size[i] = size[i];
        if (i)
            t.stride *= size[i];
    }
    return t;
}

struct tensor tensor_1d(void *data, enum dtype d, int64_t n)
{
    return tensor_nd(data, d, 1, &n);
}

struct tensor tensor_2d(void *data, enum dtype d, int64_t rows, int64_t cols)
{
    return tensor_nd(data, d, 2, (const int64_t[]){rows, cols});
}

static int64_t inner(struct tensor t)
{
    int64_t n = 1;
    for (int i = 1; i < t.rank; i++)
        n *= t.size[i];
    return n;
}

int64_t tensor_count(struct tensor t)
{
    return t.rank ? t.size[0] * inner(t) : 0;
}

size_t tensor_bytes(struct tensor t)
{
    return (size_t)tensor_count(t) * dtype_size(t.dtype);
}

bool tensor_contiguous(struct tensor t)
{
    return t.stride == inner(t) || t.size[0] <= 1;
}

/* Addresses of an unbound slab are numbers, not memory, so they are moved as numbers. */
static void *shift(void *p, int64_t elements, enum dtype d)
{
    return (void *)((uintptr_t)p + (uintptr_t)elements * dtype_size(d));
}

struct tensor tensor_rows(struct tensor t, int64_t begin, int64_t n)
{
    BUG_ON(begin < 0 || n < 0 || begin + n > t.size[0], "rows %lld + %lld of %lld",
           (long long)begin, (long long)n, (long long)t.size[0]);
    t.data = shift(t.data, begin * t.stride, t.dtype);
    t.size[0] = n;
    return t;
}

struct tensor tensor_cols(struct tensor t, int64_t begin, int64_t n)
{
    BUG_ON(t.rank != 2 || begin < 0 || n < 0 || begin + n > t.size[1],
           "columns %lld + %lld of %lld, rank %d", (long long)begin, (long long)n,
           (long long)t.size[1], t.rank);
    t.data = shift(t.data, begin, t.dtype);
    t.size[1] = n;
    return t;
}

struct tensor tensor_heads(struct tensor t, int64_t heads)
{
    BUG_ON(t.rank != 2 || heads < 1 || t.size[1] % heads, "%lld columns as %lld heads",
           (long long)t.size[1], (long long)heads);
    t.rank = 3;
    t.size[2] = t.size[1] / heads;
    t.size[1] = heads;
    return t;
}

struct tensor tensor_flat(struct tensor t)
{
    BUG_ON(!tensor_contiguous(t), "a tensor with gaps has no flat form");
    struct tensor f = tensor_1d(t.data, t.dtype, tensor_count(t));
    f.scale = t.scale;
    return f;
}

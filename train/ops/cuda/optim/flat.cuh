/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_OPS_CUDA_OPTIM_FLAT_CUH
#define TRAIN_OPS_CUDA_OPTIM_FLAT_CUH

/*
 * Tensors of the optimizer: any rank, no gaps, each of a type of its own. The type is looked at
 * while the kernel runs, the same in all threads, because every combination as a kernel would be
 * dozens of them; what they cost is the memory that they read.
 */

#include "train/ops/cuda/device.cuh"

/* F32, BF16 or F16; p NULL: none. */
struct flat {
    void *p;
    dtype type;
};

static inline flat flat_of(tensor t)
{
    return {t.data, t.dtype};
}

/* Four numbers at a time may be read from it. */
static inline bool flat_aligned(tensor t)
{
    return (uintptr_t)t.data % (4 * dtype_size(t.dtype)) == 0;
}

/* VEC: 1 or 4 */
template <int VEC> static __device__ void flat_load(float (&v)[VEC], const flat &f, int64_t i)
{
    if (f.type == DTYPE_BF16)
        load(v, (const bf16 *)f.p + i);
    else if (f.type == DTYPE_F16)
        load(v, (const f16 *)f.p + i);
    else
        load(v, (const float *)f.p + i);
}

template <int VEC>
static __device__ void flat_store(const flat &f, int64_t i, const float (&v)[VEC])
{
    if (f.type == DTYPE_BF16)
        store((bf16 *)f.p + i, v);
    else if (f.type == DTYPE_F16)
        store((f16 *)f.p + i, v);
    else
        store((float *)f.p + i, v);
}

#endif

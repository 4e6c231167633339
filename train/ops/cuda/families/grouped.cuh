/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_OPS_CUDA_FAMILIES_GROUPED_CUH
#define TRAIN_OPS_CUDA_FAMILIES_GROUPED_CUH

/* What the two kinds of grouped products share: the one for every type (grouped.cu), and the tensor
 * cores' for types of 16 bits (grouped_mma.cu). */

#include "train/ops/cuda/device.cuh"

extern "C" {
#include "train/ops/experts.h"
}

template <class T> struct grouped_job {
    mat_in<T> y, x; /* of a weight gradient: dy, x */
    const T *w;     /* [E,O,I], matrices w_stride apart */
    void *dw;       /* or this, in a type of gradients */
    int64_t w_stride;
    const int32_t *start;
    int groups, matrices;
    int64_t O, I;
};

/* Rows of one group. */
struct group_rows {
    int group, rows; /* rows of the tile */
    int64_t first;
};

/* Tile number `tile` of all groups' tiles of `most` rows; false past the last. For whole warps. */
static __device__ inline bool group_tile(const int32_t *start, int groups, int64_t tile, int most,
                                         group_rows *ret)
{
    const int lane = (int)threadIdx.x % 32;
    for (int base = 0; base < groups; base += 32) {
        const int g = base + lane;
        const int begin = g < groups ? start[g] : 0, length = g < groups ? start[g + 1] - begin : 0;
        const int own = (length + most - 1) / most;
        int sum = own;
        for (int k = 1; k < 32; k *= 2) {
            int before = __shfl_up_sync(~0u, sum, k);
            sum += lane >= k ? before : 0;
        }
        const unsigned found = __ballot_sync(~0u, tile < sum);
        if (found) {
            const int at = __ffs((int)found) - 1;
            const int number = (int)tile - __shfl_sync(~0u, sum - own, at);
            const int left = __shfl_sync(~0u, length, at) - number * most;
            ret->group = base + at;
            ret->first = (int64_t)__shfl_sync(~0u, begin, at) + (int64_t)number * most;
            ret->rows = left < most ? left : most;
            return true;
        }
        tile -= __shfl_sync(~0u, sum, 31);
    }
    return false;
}

/* Without the matrices. */
template <class T>
static grouped_job<T> rows_job_of(tensor y, tensor x, tensor start, tensor matrices)
{
    grouped_job<T> j = {};
    j.y = mat_in_of<T>(y);
    j.x = mat_in_of<T>(x);
    j.w_stride = matrices.stride;
    j.start = ints_of(start);
    j.groups = (int)start.size[0] - 1;
    j.matrices = (int)matrices.size[0];
    j.O = matrices.size[1];
    j.I = matrices.size[2];
    return j;
}

template <class T> static grouped_job<T> grouped_job_of(const grouped_args *a)
{
    grouped_job<T> j = rows_job_of<T>(a->y, a->x, a->start, a->w);
    j.w = (const T *)a->w.data;
    return j;
}

template <class T> static grouped_job<T> grouped_job_of(const grouped_bwd_args *a)
{
    grouped_job<T> j = rows_job_of<T>(a->dy, a->x, a->start, a->dw);
    j.dw = a->dw.data;
    return j;
}

/* False: the call is not of a form that the tensor cores' kernels take. */
bool grouped_mma(ops *o, const grouped_args *a);
bool grouped_mma_bwd(ops *o, const grouped_bwd_args *a);

#endif

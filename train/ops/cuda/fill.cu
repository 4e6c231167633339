/* SPDX-License-Identifier: Apache-2.0 */
#include <cstddef>
#include <cuda_runtime.h>

/* y[i] = v: one thread per element. */
static __global__ void fill_f32(float *y, size_t n, float v)
{
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = v;
}

extern "C" void cuda_fill_f32(float *y, size_t n, float v, cudaStream_t stream)
{
    if (n)
        fill_f32<<<(unsigned)((n + 255) / 256), 256, 0, stream>>>(y, n, v);
}

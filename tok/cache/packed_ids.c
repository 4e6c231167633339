/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/cache/packed_ids.h"

#include "tok/cache/kernels.h"

size_t ids_unpack_plain(const uint64_t *ids, size_t n, enum ids_form bits, int32_t *to)
{
    const uint64_t mask = ~(uint64_t)0 >> (64 - bits);
    int32_t *end = to;
    for (size_t i = 0; i < n; i++)
        for (unsigned k = 0; k < 64 / bits; k++) {
            uint64_t id = ids[i] >> k * bits & mask;
            *end = (int32_t)(id - 2);
            end += id > 1;
        }
    return (size_t)(end - to);
}

size_t ids_unpack(const uint64_t *ids, size_t n, enum ids_form bits, int32_t *to)
{
    return cache_kernels[simd_best()].ids_unpack(ids, n, bits, to);
}

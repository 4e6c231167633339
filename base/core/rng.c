/* SPDX-License-Identifier: Apache-2.0 */
#include "base/core/rng.h"

#include <math.h>

double rng_uniform(uint64_t seed, uint32_t purpose, uint32_t sub, uint64_t index)
{
    struct rng4 r = rng_block(seed, purpose, sub, index);
    uint64_t bits = ((uint64_t)r.v[0] << 32 | r.v[1]) >> 11;
    return (double)bits * 0x1p-53;
}

static void normal_pair(struct rng4 r, double ret[2])
{
    const double two_pi = 6.283185307179586476925286766559;
    double u = ((double)(((uint64_t)r.v[0] << 32 | r.v[1]) >> 11) + 0.5) * 0x1p-53;
    double w = (double)(((uint64_t)r.v[2] << 32 | r.v[3]) >> 11) * 0x1p-53;
    double radius = sqrt(-2.0 * log(u));
    ret[0] = radius * cos(two_pi * w);
    ret[1] = radius * sin(two_pi * w);
}

void rng_normal(uint64_t seed, uint32_t purpose, uint32_t sub, uint64_t index, uint64_t n,
                float *ret)
{
    for (uint64_t i = 0; i < n;) {
        double pair[2];
        normal_pair(rng_block(seed, purpose, sub, (index + i) / 2), pair);
        for (uint64_t k = (index + i) % 2; k < 2 && i < n; k++, i++)
            ret[i] = (float)pair[k];
    }
}

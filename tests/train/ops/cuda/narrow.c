/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/train/ops/cuda/narrow.h"

#include <math.h>

double narrow_value(enum dtype type, uint16_t u)
{
    int digits = type == DTYPE_BF16 ? 7 : 10, bias = type == DTYPE_BF16 ? 127 : 15;
    int top = type == DTYPE_BF16 ? 0xff : 0x1f, exponent = u >> digits & top;
    int rest = u & ((1 << digits) - 1);
    double x = exponent ? ldexp(1 + ldexp(rest, -digits), exponent - bias)
                        : ldexp(rest, 1 - bias - digits);
    if (exponent == top)
        x = rest ? NAN : INFINITY;
    return u & 0x8000 ? -x : x;
}

uint16_t narrow_bits(enum dtype type, double x)
{
    int digits = type == DTYPE_BF16 ? 7 : 10, bias = type == DTYPE_BF16 ? 127 : 15, exponent;
    uint16_t sign = x < 0 ? 0x8000 : 0;
    double part = frexp(fabs(x), &exponent); /* in [0.5, 1) */
    if (part == 0 || exponent - 1 < 1 - bias)
        return (uint16_t)(sign | (int)nearbyint(ldexp(fabs(x), digits + bias - 1)));
    int whole = (int)nearbyint(ldexp(part, digits + 1)); /* [2^digits, 2^(digits + 1)] */
    return (uint16_t)(sign | ((exponent - 1 + bias - 1) * (1 << digits) + whole));
}

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_OPS_CPU_VEC_MATH_H
#define TRAIN_OPS_CPU_VEC_MATH_H

/*
 * exp, the logistic function and GELU on vectors. NaN goes through. The polynomials are fits of
 * our own: least relative error by iterated weights over Chebyshev points. Errors in units of 2^-23
 * of the true value, demanded by tests/train/ops/test_math.c: exp 1, x times the logistic function
 * 2, GELU 4 (8 below -1), its tanh form 4 (24 below -1), slopes 2 of 1.
 */

#include "train/ops/cpu/vec.h"

/* exp(x) = 2^n exp(r), |r| <= log(2) / 2; 0 below -104, infinite above 88.7 */
static inline vf v_exp(vf x)
{
    x = v_min(v_set1(89), v_max(v_set1(-105), x));
    vf n = v_round(x * v_set1(1.44269504f));
    vf r = v_fma(n, v_set1(-0.693359375f), x); /* log(2) in two parts, the first of 12 bits */
    r = v_fma(n, v_set1(2.12194440e-4f), r);
    vf p = v_set1(0x1.6a23ccp-10f);
    p = v_fma(p, r, v_set1(0x1.123a2p-7f));
    p = v_fma(p, r, v_set1(0x1.5558f2p-5f));
    p = v_fma(p, r, v_set1(0x1.555492p-3f));
    p = v_fma(p, r, v_set1(0x1.fffffcp-2f));
    p = v_fma(p * r, r, r);
    return v_scale2(p + v_set1(1), n);
}

static inline vf v_clamp(float least, float most, vf x)
{
    return v_min(v_set1(most), v_max(v_set1(least), x));
}

/* s = 1 / (1 + exp(-x)) and c = 1 - s, each with its own small relative error */
static inline void v_sigmoid(vf x, vf *ret_s, vf *ret_c)
{
    vf t = v_exp(v_zero() - v_clamp(-85, 85, x));
    vf s = v_set1(1) / (v_set1(1) + t);
    *ret_s = s;
    *ret_c = t * s;
}

/* tanh(x): near 0, where 1 - 2 (1 - s) would cancel, by its series. */
static inline vf v_tanh(vf x)
{
    vf s, c, square = x * x, a = v_max(x, v_zero() - x);
    v_sigmoid(x + x, &s, &c);
    vf p = v_fma(square, v_set1(0.0218694885f), v_set1(-0.0539682540f));
    p = v_fma(p, square, v_set1(0.133333333f));
    p = v_fma(p, square, v_set1(-0.333333333f));
    return v_where_less(a, v_set1(0.3f), v_fma(x * square, p, x), s - c);
}

/*
 * The tanh form of GELU is x s(z) with the logistic function s and
 * z = 2 sqrt(2 / pi) (x + 0.044715 x^3), for (1 + tanh(z / 2)) / 2 = s(z). Here and below an
 * argument is bounded where its factor has become nothing, lest a huge one makes something of it.
 */
static inline vf v_gelu_tanh(vf x)
{
    vf s, c, m = v_clamp(-12, 12, x);
    v_sigmoid(m * v_fma(m * m, v_set1(0.0713548163f), v_set1(1.59576912f)), &s, &c);
    return v_max(v_set1(-12), x) * s;
}

static inline vf v_gelu_tanh_slope(vf x)
{
    vf s, c, m = v_clamp(-12, 12, x);
    vf dz = v_fma(m * m, v_set1(0.214064449f), v_set1(1.59576912f));
    v_sigmoid(m * v_fma(m * m, v_set1(0.0713548163f), v_set1(1.59576912f)), &s, &c);
    return v_fma(m * s * c, dz, s);
}

/*
 * The normal distribution P(X <= x), and e = exp(-x^2 / 2). For a = |x|, P(X <= -a) = e t R(t) with
 * t = 1 / (1 + a / 4) and R of degree 9, fitted for a <= 14; at 15 e is 0. The square is taken in
 * two parts, lest its rounding be enlarged by the exponential.
 */
static inline vf v_normal(vf x, vf *ret_e)
{
    static const float r[] = {0.0165796937f, -0.0627923733f, 0.0516527748f, 0.028435408f,
                              0.0127120488f, 0.0866568705f,  0.07199939f,   0.095515734f,
                              0.0994925537f, 0.0997479037f};
    vf m = v_clamp(-15, 15, x), a = v_max(m, v_zero() - m);
    vf square = a * a, rest = v_fma(a, a, v_zero() - square);
    vf e = v_exp(v_set1(-0.5f) * square);
    e = v_fma(e, v_set1(-0.5f) * rest, e);
    vf t = v_set1(1) / v_fma(a, v_set1(0.25f), v_set1(1));
    vf p = v_set1(r[0]);
    for (int i = 1; i < 10; i++)
        p = v_fma(p, t, v_set1(r[i]));
    vf tail = e * t * p;
    *ret_e = e;
    return v_where_less(x, v_zero(), tail, v_set1(1) - tail);
}

static inline vf v_gelu_erf(vf x)
{
    vf e;
    return v_max(v_set1(-15), x) * v_normal(x, &e);
}

static inline vf v_gelu_erf_slope(vf x)
{
    vf e, normal = v_normal(x, &e);
    return v_fma(v_clamp(-15, 15, x) * v_set1(0.398942280f), e, normal);
}

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#include "base/core/rng.h"

#include <math.h>
#include <string.h>

#include "tests/t.h"

/* Known answers that come with Random123 (kat_vectors: philox4x32, seven and ten rounds). */
static void random123_known_answers(void)
{
    static const struct {
        int rounds;
        uint32_t ctr[4], key[2], want[4];
    } kat[] = {
        {10, {0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {10, {~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}, {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {10,
         {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
         {0xa4093822, 0x299f31d0},
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
        {7, {0, 0, 0, 0}, {0, 0}, {0x5f6fb709, 0x0d893f64, 0x4f121f81, 0x4f730a48}},
        {7, {~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}, {0x5207ddc2, 0x45165e59, 0x4d8ee751, 0x8c52f662}},
        {7,
         {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
         {0xa4093822, 0x299f31d0},
         {0x4dfccaba, 0x190a87f0, 0xc47362ba, 0xb6b5242a}},
    };
    for (size_t i = 0; i < sizeof(kat) / sizeof(*kat); i++) {
        struct rng4 r = philox4x32_rounds(kat[i].ctr, kat[i].key, kat[i].rounds);
        for (int j = 0; j < 4; j++)
            T_EQ(r.v[j], kat[i].want[j]);
    }
}

static void counter_and_key_in_their_places(void)
{
    struct rng4 a = rng_block(0x299f31d0a4093822, 0x03707344, 0x13198a2e, 0x85a308d3243f6a88);
    T_EQ(a.v[0], 0xd16cfe09);
    T_EQ(a.v[3], 0x24126ea1);
}

static void units(void)
{
    T_CHECK(rng_unit(0) == 0.0f);
    T_CHECK(rng_unit(~0u) < 1.0f);
    T_CHECK(rng_unit(1u << 31) == 0.5f);
}

static void uniform_fills_the_unit(void)
{
    enum { N = 100000 };
    double sum = 0, squares = 0, least = 1, most = 0;
    for (uint64_t i = 0; i < N; i++) {
        double u = rng_uniform(7, RNG_TEST, 1, i);
        T_CHECK(u >= 0 && u < 1);
        sum += u;
        squares += u * u;
        least = u < least ? u : least;
        most = u > most ? u : most;
    }
    T_NEAR(sum / N, 0.5, 0.005);
    T_NEAR(squares / N, 1.0 / 3, 0.005);
    T_CHECK(least < 1e-3 && most > 1 - 1e-3);
}

static void normal_has_its_moments(void)
{
    enum { N = 200000 };
    static float x[N];
    double m[5] = {0};
    int beyond = 0;
    rng_normal(1234, RNG_TEST, 0, 0, N, x);
    for (int i = 0; i < N; i++) {
        for (int k = 1; k < 5; k++)
            m[k] += pow(x[i], k) / N;
        beyond += fabsf(x[i]) > 1.959964f;
    }
    T_NEAR(m[1], 0, 0.01);
    T_NEAR(m[2], 1, 0.015);
    T_NEAR(m[3], 0, 0.03);
    T_NEAR(m[4], 3, 0.03);
    T_NEAR((double)beyond / N, 0.05, 0.002);
}

/* Any range of a stream holds the same numbers, also beyond 2^32 and from odd places. */
static void ranges_agree(void)
{
    enum { N = 1001 };
    static const uint64_t bases[] = {0, 1, (1ull << 32) - 500, (1ull << 33) - 501};
    float whole[N], part[N];
    for (size_t b = 0; b < 4; b++) {
        rng_normal(9, RNG_INIT, 3, bases[b], N, whole);
        for (uint64_t at = 0, n; at < N; at += n) {
            n = 1 + t_rand(b, at) % 17;
            if (n > N - at)
                n = N - at;
            rng_normal(9, RNG_INIT, 3, bases[b] + at, n, part);
            T_MEM(part, whole + at, n * sizeof(float));
        }
    }
    rng_normal(9, RNG_INIT, 3, 5, 0, NULL);
}

/* What the processor offers gives the C library's numbers, bit for bit. */
static void fast_equals_plain(void)
{
    enum { N = 1 << 16, ROUNDS = 32 };
    static float fast[N], plain[N];
    for (uint64_t i = 0; i < ROUNDS; i++) {
        uint64_t seed = (uint64_t)t_rand(0, i) << 32 | t_rand(1, i), n = N - i % 9;
        uint64_t at = ((uint64_t)t_rand(2, i) << 32 | t_rand(3, i)) >> (i % 4 * 16);
        rng_normal(seed, RNG_INIT, (uint32_t)i, at, n, fast);
        rng_normal_plain(seed, RNG_INIT, (uint32_t)i, at, n, plain);
        T_MEM(fast, plain, n * sizeof(float));
    }
    /* next to the middle between two floats */
    rng_normal(1, RNG_INIT, 7, 614483320, 16, fast);
    rng_normal_plain(1, RNG_INIT, 7, 614483320, 16, plain);
    T_MEM(fast, plain, 16 * sizeof(float));
}

static void streams_differ(void)
{
    float base[8], other[8];
    rng_normal(1, RNG_INIT, 2, 0, 8, base);
    rng_normal(2, RNG_INIT, 2, 0, 8, other);
    T_CHECK(memcmp(base, other, sizeof(base)) != 0);
    rng_normal(1, RNG_DROPOUT, 2, 0, 8, other);
    T_CHECK(memcmp(base, other, sizeof(base)) != 0);
    rng_normal(1, RNG_INIT, 3, 0, 8, other);
    T_CHECK(memcmp(base, other, sizeof(base)) != 0);
    rng_normal(1, RNG_INIT, 2, 8, 8, other);
    T_CHECK(memcmp(base, other, sizeof(base)) != 0);
    rng_normal(1ull << 32 | 1, RNG_INIT, 2, 0, 8, other);
    T_CHECK(memcmp(base, other, sizeof(base)) != 0);
}

T_MAIN(T_CASE(random123_known_answers), T_CASE(counter_and_key_in_their_places), T_CASE(units),
       T_CASE(uniform_fills_the_unit), T_CASE(normal_has_its_moments), T_CASE(ranges_agree),
       T_CASE(fast_equals_plain), T_CASE(streams_differ))

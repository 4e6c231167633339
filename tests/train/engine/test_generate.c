/* SPDX-License-Identifier: Apache-2.0 */
#include "train/engine/generate.h"

#include <math.h>
#include <string.h>

#include "tests/t.h"

enum { N = 5, DRAWS = 20000 };

static const double logits[N] = {0.0, 1.0, -1.0, 2.0, 1.0};

static void count(const struct sampling *s, int ret[N])
{
    memset(ret, 0, N * sizeof(*ret));
    for (uint64_t i = 0; i < DRAWS; i++) {
        double l[N];
        int32_t order[N];
        memcpy(l, logits, sizeof(l));
        ret[sample_id(l, N, order, s, i)]++;
    }
}

static void temperature_zero_takes_the_likeliest(void)
{
    int n[N];
    count(&(struct sampling){.temperature = 0, .top_p = 1}, n);
    T_EQ(n[3], DRAWS);
}

/* Frequencies against softmax(logits / temperature), within five standard deviations. */
static void frequencies_are_the_softmax(void)
{
    int n[N];
    double sum = 0, t = 0.7;
    count(&(struct sampling){.temperature = t, .top_p = 1, .seed = 7}, n);
    for (int i = 0; i < N; i++)
        sum += exp(logits[i] / t);
    for (int i = 0; i < N; i++) {
        double p = exp(logits[i] / t) / sum;
        T_CHECK(fabs(n[i] - p * DRAWS) < 5 * sqrt(p * (1 - p) * DRAWS));
    }
}

static void top_k_keeps_k(void)
{
    int n[N];
    count(&(struct sampling){.temperature = 1, .top_p = 1, .top_k = 2}, n);
    T_CHECK(n[3] > 0 && n[1] > 0); /* of the equal 1 and 4 the smaller id */
    T_EQ(n[0] + n[2] + n[4], 0);
}

static void top_p_keeps_the_fewest_that_reach_it(void)
{
    int n[N];
    /* softmax: id 3 has 0.53, ids 1 and 4 0.195 each */
    count(&(struct sampling){.temperature = 1, .top_p = 0.6}, n);
    T_CHECK(n[3] > 0 && n[1] > 0);
    T_EQ(n[0] + n[2] + n[4], 0);
    count(&(struct sampling){.temperature = 1, .top_p = 0.5}, n);
    T_EQ(n[3], DRAWS);
}

static void same_seed_same_draws(void)
{
    for (uint64_t i = 0; i < 100; i++) {
        double a[N], b[N];
        int32_t order[N];
        struct sampling s = {.temperature = 1, .top_p = 1, .seed = 3};
        memcpy(a, logits, sizeof(a));
        memcpy(b, logits, sizeof(b));
        T_EQ(sample_id(a, N, order, &s, i), sample_id(b, N, order, &s, i));
    }
}

T_MAIN(T_CASE(temperature_zero_takes_the_likeliest), T_CASE(frequencies_are_the_softmax),
       T_CASE(top_k_keeps_k), T_CASE(top_p_keeps_the_fewest_that_reach_it),
       T_CASE(same_seed_same_draws))

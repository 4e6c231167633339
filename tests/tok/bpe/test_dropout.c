/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/bpe/dropout.h"

#include <math.h>
#include <string.h>

#include "tests/t.h"

enum { A, B, C, AB, BC, ABC };

static const struct bpe_pair pairs[] = {
    {A, B, 0, AB}, {AB, C, 1, ABC}, {B, C, 2, BC}, {A, B, 0, AB}};

/* How often a b c ends as these, of `draws`. */
static void count(const struct bpe_drop *d, size_t draws, size_t seen[4])
{
    memset(seen, 0, 4 * sizeof(*seen));
    for (uint64_t i = 0; i < draws; i++) {
        uint32_t sym[] = {A, B, C};
        struct bpe_draws key = {i, 0};
        size_t n = bpe_drop_merge(d, &key, sym, 3, NULL, NULL);
        if (n == 1)
            seen[0] += sym[0] == ABC;
        else if (n == 2)
            seen[sym[0] == AB ? 1 : 2] += sym[0] == AB ? sym[1] == C : sym[1] == BC;
        else
            seen[3] += sym[0] == A && sym[1] == B && sym[2] == C;
    }
}

static void near(const size_t seen[4], const double share[4], size_t draws)
{
    for (int i = 0; i < 4; i++) {
        double want = share[i] * (double)draws, spread = sqrt(want * (1 - share[i]));
        if (!(fabs((double)seen[i] - want) < 4.5 * spread + 1e-9))
            t_fail(__FILE__, __LINE__, "outcome %d: %zu times, not %g", i, seen[i], want);
    }
}

/* Every pair is drawn once when it becomes possible: with 0.3 it is left out for good. */
static void passed_over_for_good(void)
{
    struct bpe_drop *d = bpe_drop_create(pairs, 4, 0.3, false);
    size_t draws = 100000, seen[4];
    count(d, draws, seen);
    near(seen, (const double[]){0.49, 0.21, 0.21, 0.09}, draws);
    bpe_drop_destroy(d);
}

/* (ab, c) is left out, then (b, c), which no longer exists, is drawn: (ab, c) comes back. */
static void passed_over_for_now(void)
{
    struct bpe_drop *d = bpe_drop_create(pairs, 4, 0.3, true);
    size_t draws = 100000, seen[4];
    count(d, draws, seen);
    near(seen, (const double[]){0.7 * 0.847, 0.7 * 0.153, 0.21, 0.09}, draws);
    bpe_drop_destroy(d);
}

static void none_and_all(void)
{
    struct bpe_drop *none = bpe_drop_create(pairs, 4, 0, false);
    struct bpe_drop *all = bpe_drop_create(pairs, 4, 1, false);
    size_t seen[4];
    count(none, 100, seen);
    T_EQ(seen[0], 100);
    count(all, 100, seen);
    T_EQ(seen[3], 100);
    bpe_drop_destroy(none);
    bpe_drop_destroy(all);
}

static void hear(void *arg, uint32_t left, uint32_t right, uint32_t id)
{
    (void)left;
    (void)right;
    *(uint64_t *)arg = *(uint64_t *)arg * 10 + id;
}

static void pairs_are_heard_of(void)
{
    struct bpe_drop *d = bpe_drop_create(pairs, 4, 0, false);
    struct bpe_draws key = {0};
    uint32_t sym[] = {A, B, C};
    uint64_t heard = 0;
    bpe_drop_merge(d, &key, sym, 3, hear, &heard);
    T_EQ(heard, 345); /* ab, bc, then abc */
    bpe_drop_destroy(d);
}

T_MAIN(T_CASE(passed_over_for_good), T_CASE(passed_over_for_now), T_CASE(none_and_all),
       T_CASE(pairs_are_heard_of))

/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/learn/weight.h"

#include <stdlib.h>

#include "base/core/mem.h"
#include "tests/t.h"

enum { MOST = 4000 };

/* Words of random lengths: each slot has its word's count. */
static void check(uint64_t seed, int counts)
{
    struct learn_weights w = {0};
    uint64_t *want = mem_new(MOST, sizeof(*want));
    size_t n = 1;
    for (uint64_t i = 0; n + 300 < MOST; i++) {
        uint64_t count = 1 + t_rand(seed, 2 * i) % (uint64_t)counts;
        count = count == 3 ? (uint64_t)1 << 40 : count;
        size_t length = 1 + t_rand(seed, 2 * i + 1) % (i % 20 ? 5 : 300);
        learn_weights_add(&w, n, count);
        while (length--)
            want[n++] = count;
    }
    learn_weights_index(&w, n);
    for (size_t i = 0; i < n; i++)
        T_EQ(learn_weight_at(&w, i), (int64_t)want[i]);
    learn_weights_finish(&w);
    free(want);
}

static void each_slot_has_its_word_s_count(void)
{
    for (uint64_t seed = 0; seed < 40; seed++)
        check(seed, 1 + (int)seed);
}

static void no_words(void)
{
    struct learn_weights w = {0};
    learn_weights_index(&w, 1);
    T_EQ(learn_weight_at(&w, 0), 0);
    learn_weights_finish(&w);
}

T_MAIN(T_CASE(each_slot_has_its_word_s_count), T_CASE(no_words))

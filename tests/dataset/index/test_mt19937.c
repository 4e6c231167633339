/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "base/core/mem.h"
#include "dataset/index/mt19937.h"
#include "tests/dataset/corpus.h"
#include "tests/t.h"

/* All expected numbers are numpy's. */

static void draws_are_numpys(void)
{
    static const uint32_t a[] = {822569775, 2137449171, 2671936806u, 3512589365u, 1880026316};
    static const uint32_t b[] = {2357136044u, 2546248239u, 3071714933u};
    struct mt19937 m;
    mt_seed(&m, 1234);
    for (int i = 0; i < 5; i++)
        T_EQ(mt_u32(&m), a[i]);
    mt_seed(&m, 0);
    for (int i = 0; i < 3; i++)
        T_EQ(mt_u32(&m), b[i]);
}

static void two_shuffles_in_a_row(void)
{
    static const uint32_t want[2][10] = {{7, 2, 9, 1, 0, 8, 4, 5, 6, 3},
                                         {7, 3, 5, 1, 4, 8, 0, 2, 6, 9}};
    struct mt19937 m;
    mt_seed(&m, 1234);
    for (int round = 0; round < 2; round++) {
        uint32_t a[10];
        for (uint32_t i = 0; i < 10; i++)
            a[i] = i;
        mt_shuffle32(&m, a, 10);
        T_MEM(a, want[round], sizeof(a));
    }
}

static void item_size_changes_nothing(void)
{
    static const uint64_t want[16] = {0, 1, 5, 14, 13, 11, 8, 9, 2, 15, 4, 7, 10, 12, 3, 6};
    uint64_t a[16];
    struct mt19937 m;
    mt_seed(&m, 42);
    for (uint64_t i = 0; i < 16; i++)
        a[i] = i;
    mt_shuffle64(&m, a, 16);
    T_MEM(a, want, sizeof(a));
}

static void a_million(void)
{
    static const struct {
        uint32_t seed;
        const char *md5;
    } c[] = {{1234, "4175d3cd479cc665cf0927dd1b6caca3"}, {42, "62f9ce7f18122404ae6a7d9169ffd6bb"}};
    enum { N = 1000003 };
    uint32_t *a = mem_new(N, sizeof(*a));
    for (int k = 0; k < 2; k++) {
        struct mt19937 m;
        char got[33];
        mt_seed(&m, c[k].seed);
        for (uint32_t i = 0; i < N; i++)
            a[i] = i;
        mt_shuffle32(&m, a, N);
        md5_text(a, N * sizeof(*a), got);
        T_STR(got, c[k].md5);
    }
    free(a);
}

static void one_or_none_draw_nothing(void)
{
    struct mt19937 m;
    uint32_t a[1] = {7};
    mt_seed(&m, 1234);
    mt_shuffle32(&m, a, 0);
    mt_shuffle32(&m, a, 1);
    T_EQ(mt_interval(&m, 0), 0);
    T_EQ(mt_u32(&m), 822569775);
}

/* From any word of a block, and past sizes at which the mask changes. */
static void skipped_is_as_shuffled(void)
{
    static const uint64_t n[] = {0,    1,    2,     3,     7,      8,      9,      624,    625,
                                 2000, 4096, 65536, 65537, 131072, 700001, 700004, 3000000};
    uint32_t *a = mem_new(3000000, sizeof(*a));
    struct mt19937 m, twin;
    mt_seed(&m, 1234);
    for (size_t i = 0; i < sizeof(n) / sizeof(n[0]); i++) {
        twin = m;
        mt_shuffle32(&m, a, n[i]);
        mt_skip(&twin, n[i]);
        T_EQ(twin.pos, m.pos);
        T_MEM(twin.key, m.key, sizeof(m.key));
        T_EQ(mt_u32(&twin), mt_u32(&m));
    }
    free(a);
}

/* Above 2^32 - 1 two words are drawn, the high one first. */
static void wide_intervals(void)
{
    struct mt19937 m, twin;
    mt_seed(&m, 1234);
    mt_seed(&twin, 1234);
    for (int i = 0; i < 1000; i++) {
        uint64_t max = (UINT64_C(1) << 32) + 100000, v;
        do {
            v = (uint64_t)mt_u32(&twin) << 32;
            v |= mt_u32(&twin);
            v &= (UINT64_C(1) << 33) - 1;
        } while (v > max);
        T_EQ(mt_interval(&m, max), v);
    }
    T_EQ(m.pos, twin.pos);
}

T_MAIN(T_CASE(draws_are_numpys), T_CASE(two_shuffles_in_a_row), T_CASE(item_size_changes_nothing),
       T_CASE(a_million), T_CASE(one_or_none_draw_nothing), T_CASE(skipped_is_as_shuffled),
       T_CASE(wide_intervals))

/* SPDX-License-Identifier: Apache-2.0 */
#include "base/core/arena.h"

#include <stdint.h>
#include <string.h>

#include "tests/t.h"

static void pieces_are_zeroed_and_aligned(void)
{
    struct arena a = {0};
    for (size_t round = 0; round < 2; round++) {
        for (size_t n = 1; n < 100000; n = n * 3 + 1) {
            unsigned char *p = arena_take(&a, n, 1);
            T_EQ((uintptr_t)p % 16, 0);
            for (size_t i = 0; i < n; i++)
                T_EQ(p[i], 0);
            memset(p, 0xaa, n);
        }
        arena_reset(&a);
    }
    arena_finish(&a);
    arena_finish(&a);
}

/* Thousands of small pieces, each with its own contents, none overlapping another. */
static void pieces_do_not_overlap(void)
{
    enum { N = 5000 };
    static uint32_t *piece[N];
    struct arena a = {0};
    for (uint32_t i = 0; i < N; i++) {
        size_t n = 1 + t_rand(1, i) % 40;
        piece[i] = arena_take(&a, n, sizeof(uint32_t));
        for (size_t k = 0; k < n; k++)
            piece[i][k] = i;
    }
    for (uint32_t i = 0; i < N; i++)
        for (size_t k = 0; k < 1 + t_rand(1, i) % 40; k++)
            T_EQ(piece[i][k], i);
    arena_finish(&a);
}

static void nothing_is_something(void)
{
    struct arena a = {0};
    arena_reset(&a);
    T_CHECK(arena_take(&a, 0, 8) != NULL);
    T_CHECK(arena_take(&a, 8, 0) != NULL);
    arena_finish(&a);
}

static void texts(void)
{
    struct arena a = {0};
    char *s = arena_strdup(&a, "shard"), *t = arena_strndup(&a, "shards", 3);
    T_STR(arena_printf(&a, "%s-%05d", s, 12), "shard-00012");
    T_STR(s, "shard");
    T_STR(t, "sha");
    char *big = arena_printf(&a, "%0200000d", 7);
    T_EQ(strlen(big), 200000);
    T_EQ(big[199999], '7');
    arena_finish(&a);
}

T_MAIN(T_CASE(pieces_are_zeroed_and_aligned), T_CASE(pieces_do_not_overlap),
       T_CASE(nothing_is_something), T_CASE(texts))

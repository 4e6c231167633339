/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/mem.h"
#include "tests/t.h"

static void new_memory_is_zeroed(void)
{
    unsigned char *p = mem_new(100, 7);
    for (int i = 0; i < 700; i++)
        T_EQ(p[i], 0);
    free(p);
}

static void hostile_sizes_are_refused(void)
{
    struct err e;
    void *p = NULL;
    T_ERR(mem_try(SIZE_MAX / 2, 16, "ids of x.model", &p, &e), &e, ERR_RESOURCE, "ids of x.model");
    T_CHECK(p == NULL);
}

static void printf_into_fresh_memory(void)
{
    char *s = mem_printf("%s-%d", "shard", 12);
    T_STR(s, "shard-12");
    free(s);
}

static void arena_pieces_are_zeroed_and_aligned(void)
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
    T_STR(arena_printf(&a, "%s", "x"), "x");
    arena_finish(&a);
    arena_finish(&a);
}

static void buf_grows_and_keeps(void)
{
    struct buf b = {0};
    for (int i = 0; i < 1000; i++)
        buf_addf(&b, "%d,", i);
    T_EQ(b.len, 3890);
    T_EQ(memcmp(b.data, "0,1,2,", 6), 0);
    buf_str(&b);
    T_EQ(strlen(b.data), b.len);
    buf_finish(&b);
}

T_MAIN(T_CASE(new_memory_is_zeroed), T_CASE(hostile_sizes_are_refused),
       T_CASE(printf_into_fresh_memory), T_CASE(arena_pieces_are_zeroed_and_aligned),
       T_CASE(buf_grows_and_keeps))

/* SPDX-License-Identifier: Apache-2.0 */
#include "base/core/buf.h"

#include <string.h>

#include "tests/t.h"

static void grows_and_keeps(void)
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

static void every_way_in(void)
{
    struct buf b = {0};
    buf_adds(&b, "");
    T_EQ(b.len, 0);
    T_STR(buf_str(&b), "");
    buf_addc(&b, 'a');
    buf_adds(&b, "bc");
    buf_add(&b, "d\0e", 3);
    buf_add(&b, NULL, 0);
    buf_addf(&b, "%d%%", 7);
    T_EQ(b.len, 8);
    T_MEM(buf_str(&b), "abcd\0e7%", 9);
    T_EQ(b.len, 8); /* the NUL after it is not counted */
    memcpy(buf_reserve(&b, 4), "wxyz", 4);
    T_EQ(b.len, 8);
    b.len += 4;
    T_MEM(b.data + 8, "wxyz", 4);
    buf_finish(&b);
    T_CHECK(!b.data && !b.len && !b.cap);
    buf_finish(&b);
}

static void reset_keeps_memory(void)
{
    struct buf b = {0};
    buf_reserve(&b, 100000);
    char *p = b.data;
    buf_adds(&b, "old");
    buf_reset(&b);
    T_EQ(b.len, 0);
    buf_adds(&b, "new text");
    T_CHECK(b.data == p);
    T_STR(buf_str(&b), "new text");
    buf_finish(&b);
}

/* Growing by ones moves the bytes some dozens of times, not once a byte. */
static void growth_is_geometric(void)
{
    struct buf b = {0};
    int moves = 0;
    size_t cap = 0;
    for (int i = 0; i < 1000000; i++) {
        buf_addc(&b, (char)i);
        moves += b.cap != cap;
        cap = b.cap;
    }
    T_CHECK(moves < 40);
    for (int i = 0; i < 1000000; i++)
        T_CHECK(b.data[i] == (char)i);
    buf_finish(&b);
}

T_MAIN(T_CASE(grows_and_keeps), T_CASE(every_way_in), T_CASE(reset_keeps_memory),
       T_CASE(growth_is_geometric))

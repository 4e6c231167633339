/* SPDX-License-Identifier: Apache-2.0 */
#include "base/core/array.h"

#include <stdint.h>
#include <stdlib.h>

#include "tests/t.h"

static void elements_stay_while_it_grows(void)
{
    struct {
        uint32_t *item;
        size_t n, cap;
    } s = {0};
    size_t times = 0;
    for (uint32_t i = 0; i < 5000; i++) {
        size_t cap = s.cap;
        ARRAY_GROW(s.item, s.n, s.cap);
        times += s.cap != cap;
        T_CHECK(s.cap > s.n);
        s.item[s.n++] = i * 7;
    }
    T_EQ(times, 8); /* 64, doubled up to 8192 */
    for (uint32_t i = 0; i < 5000; i++)
        T_EQ(s.item[i], i * 7);
    free(s.item);
}

static void a_number_alone_tells_how_many_fit(void)
{
    uint64_t *item = NULL;
    for (size_t n = 0; n < 5000; n++) {
        item = array_more(item, n, sizeof(*item));
        item[n] = n;
    }
    for (size_t n = 0; n < 5000; n++)
        T_EQ(item[n], n);
    free(item);
}

T_MAIN(T_CASE(elements_stay_while_it_grows), T_CASE(a_number_alone_tells_how_many_fit))

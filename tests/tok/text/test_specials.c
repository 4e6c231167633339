/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/text/specials.h"

#include <stdio.h>
#include <string.h>

#include "tests/t.h"

static void check(const struct specials *s, const char *text, const char *want)
{
    char got[256] = "";
    size_t at = 0;
    const struct special *p;
    for (size_t i = 0; (p = specials_find(s, text, strlen(text), i, &at)); i = at + p->length) {
        char one[32];
        snprintf(one, sizeof(one), "%zu:%d ", at, p->id);
        strcat(got, one);
    }
    T_STR(got, want);
}

static void leftmost_then_first_added(void)
{
    struct specials s = {0};
    check(&s, "<a>", "");
    specials_add(&s, "<a>", 1, false);
    specials_add(&s, "<ab>", 2, false);
    specials_add(&s, "<a", 3, false);
    specials_add(&s, "<a>", 4, false); /* there already */
    check(&s, "x<ab> <a><a", "1:2 6:1 9:3 ");
    check(&s, "<<a>", "1:1 ");
    check(&s, "nothing < here", "");
    specials_finish(&s);
}

static void other_first_bytes(void)
{
    struct specials s = {0};
    specials_add(&s, "[end]", 1, false);
    specials_add(&s, "<end>", 2, false);
    check(&s, "<end>[end]<[end]", "0:2 5:1 11:1 ");
    specials_finish(&s);
}

T_MAIN(T_CASE(leftmost_then_first_added), T_CASE(other_first_bytes))

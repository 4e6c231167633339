/* SPDX-License-Identifier: Apache-2.0 */
#include "train/report/skips.h"

#include <string.h>

#include "tests/t.h"

static void has(const struct skips *s, int64_t row, int64_t spikes, int64_t line, int64_t nan)
{
    T_EQ(s->n[SKIP_IN_A_ROW], row);
    T_EQ(s->n[SKIP_SPIKES], spikes);
    T_EQ(s->n[SKIP_LINE], line);
    T_EQ(s->n[SKIP_NAN], nan);
}

static void steps_in_a_row_and_since_a_line(void)
{
    struct skips s = {0};
    skips_step(&s, false, false, false);
    has(&s, 0, 0, 0, 0);
    skips_step(&s, true, false, true);
    skips_step(&s, true, true, false);
    has(&s, 2, 1, 2, 1);
    skips_line(&s);
    has(&s, 2, 1, 0, 0);
    skips_step(&s, true, true, false);
    has(&s, 3, 2, 1, 0);
    skips_step(&s, false, false, false);
    has(&s, 0, 0, 1, 0);
}

static void a_rewind_leaves_the_number_of_rewinds(void)
{
    struct skips s = {.n[SKIP_REWINDS] = 3};
    skips_step(&s, true, true, true);
    skips_rewind(&s);
    has(&s, 0, 0, 0, 0);
    T_EQ(s.n[SKIP_REWINDS], 4);
}

static void names_differ(void)
{
    for (enum skip i = 0; i < SKIPS; i++)
        for (enum skip k = 0; k < i; k++)
            T_CHECK(strcmp(skips_name(i), skips_name(k)) != 0);
}

T_MAIN(T_CASE(steps_in_a_row_and_since_a_line), T_CASE(a_rewind_leaves_the_number_of_rewinds),
       T_CASE(names_differ))

/* SPDX-License-Identifier: Apache-2.0 */
#include "train/report/timers.h"

#include <string.h>

#include "base/io/path.h"
#include "tests/t.h"

static const char *const two[] = {"whole", "detail"};
static const struct timer_names names = {two, 2, 1};

static void spans_are_written(void)
{
    struct timers t;
    struct err e;
    struct buf b = {0};
    T_OK(timers_open(&t, names, 2, 3, t_path("spans"), &e), &e);
    for (int step = 1; step <= 2; step++) {
        timers_mark(&t, 0, true);
        timers_mark(&t, 1, true);
        timers_mark(&t, 1, false);
        timers_mark(&t, 0, false);
        T_OK(timers_step(&t, step, &e), &e);
    }
    T_CHECK(t.sum[0] >= t.sum[1] && t.sum[1] >= 0);
    timers_close(&t);
    timers_close(&t);
    T_OK(file_read(t_path("spans/rank_0003.jsonl"), 1 << 20, &b, &e), &e);
    char *second =
        strstr(buf_str(&b), "{\"iteration\": 2, \"rank\": 3, \"spans\": [[\"detail\", 1");
    T_CHECK(second && strstr(second, "], [\"whole\", 1"));
    buf_finish(&b);
}

static void levels(void)
{
    struct timers t;
    struct err e;
    struct buf b = {0};
    T_OK(timers_open(&t, names, 1, 0, NULL, &e), &e);
    timers_mark(&t, 1, true);
    timers_mark(&t, 1, false);
    T_EQ(t.sum[1], 0);
    timers_close(&t);
    T_OK(timers_open(&t, names, 0, 0, t_path("none"), &e), &e);
    timers_mark(&t, 0, true);
    timers_mark(&t, 0, false);
    T_EQ(t.sum[0], 0);
    timers_lines(&t, TIMER_MINMAX, t.sum, 1, 1, &b);
    T_EQ(b.len, 0);
    T_CHECK(!file_exists(t_path("none")));
    timers_close(&t);
    buf_finish(&b);
}

/* The bytes that scripts look for. */
static void lines(void)
{
    struct timers t;
    struct err e;
    double sum[2 * TIMERS_MOST] = {[0] = 1, [TIMERS_MOST] = 3};
    struct buf b = {0};
    T_OK(timers_open(&t, names, 2, 0, NULL, &e), &e);
    timers_lines(&t, TIMER_MINMAX, sum, 2, 2, &b);
    T_STR(buf_str(&b), "(min, max) time across ranks (ms):\n"
                       "    whole ..........................................: (500.00, 1500.00)\n");
    buf_reset(&b);
    timers_lines(&t, TIMER_MAX, sum, 2, 2, &b);
    T_STR(buf_str(&b), "max time across ranks (ms):\n"
                       "    whole ..........................................: 1500.00\n");
    buf_reset(&b);
    timers_lines(&t, TIMER_ALL, sum, 2, 2, &b);
    T_STR(buf_str(&b), "times across ranks (ms):\n"
                       "  whole:\n"
                       "     rank  0: 500.00\n"
                       "     rank  1: 1500.00\n");
    buf_finish(&b);
    timers_close(&t);
}

T_MAIN(T_CASE(spans_are_written), T_CASE(levels), T_CASE(lines))

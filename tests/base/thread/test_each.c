/* SPDX-License-Identifier: Apache-2.0 */
#include "base/thread/each.h"

#include <stdatomic.h>
#include <stddef.h>

#include "tests/t.h"

enum { N = 1000 };

struct seen {
    atomic_int times[N];
    size_t fail_from; /* N: none */
};

static int touch(void *arg, size_t i, struct err *e)
{
    struct seen *s = arg;
    atomic_fetch_add(&s->times[i], 1);
    return i >= s->fail_from ? err_set(e, ERR_DATA, "piece %zu", i) : 0;
}

static void each_piece_once(void)
{
    for (int threads = 0; threads < 6; threads++) {
        struct seen s = {.fail_from = N};
        struct err e;
        T_OK(each_run(N, threads, touch, &s, &e), &e);
        for (int i = 0; i < N; i++)
            T_EQ(atomic_load(&s.times[i]), 1);
    }
    T_EQ(each_run(0, 3, touch, NULL, NULL), 0);
    T_EQ(each_threads(3), 3);
    T_EQ(each_threads(1000), EACH_MOST);
    T_CHECK(each_threads(0) >= 1);
}

static void a_failure_ends_it(void)
{
    struct seen s = {.fail_from = 0};
    struct err e;
    T_ERR(each_run(N, 1, touch, &s, &e), &e, ERR_DATA, "piece 0");
    T_EQ(atomic_load(&s.times[1]), 0);
    for (int threads = 2; threads < 5; threads++) {
        struct seen t = {.fail_from = 500};
        int done = 0;
        T_ERR(each_run(N, threads, touch, &t, &e), &e, ERR_DATA, "piece 5");
        for (int i = 0; i < N; i++)
            done += atomic_load(&t.times[i]);
        T_CHECK(done >= 501 && done <= 500 + threads);
        T_EQ(each_run(N, threads, touch, &t, NULL), ERR_DATA);
    }
}

T_MAIN(T_CASE(each_piece_once), T_CASE(a_failure_ends_it))

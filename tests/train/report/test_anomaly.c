/* SPDX-License-Identifier: Apache-2.0 */
#include "train/report/anomaly.h"

#include <math.h>

#include "tests/t.h"

static void a_limit_needs_some_losses(void)
{
    struct anomaly a = {.factor = 2};
    for (int i = 0; i < ANOMALY_LEAST; i++) {
        T_EQ(anomaly_limit(&a), 0);
        anomaly_note(&a, 3);
    }
    T_NEAR(anomaly_limit(&a), 6, 1e-12);
    a.factor = 0;
    T_EQ(anomaly_limit(&a), 0);
}

static void the_window_moves(void)
{
    struct anomaly a = {.factor = 1.5};
    for (int i = 0; i < 10 * ANOMALY_WINDOW + 3; i++)
        anomaly_note(&a, 100);
    for (int i = 0; i < ANOMALY_WINDOW / 2; i++)
        anomaly_note(&a, 50);
    T_NEAR(anomaly_limit(&a), 1.5 * 75, 1e-9);
    for (int i = 0; i < ANOMALY_WINDOW / 2; i++)
        anomaly_note(&a, 50);
    T_NEAR(anomaly_limit(&a), 75, 1e-9);
}

static void what_is_not_finite_does_not_count(void)
{
    struct anomaly a = {.factor = 2};
    for (int i = 0; i < ANOMALY_LEAST; i++) {
        anomaly_note(&a, 1);
        anomaly_note(&a, (double)NAN);
        anomaly_note(&a, (double)INFINITY);
    }
    T_NEAR(anomaly_limit(&a), 2, 1e-12);
}

/* A window that was written and read back gives the same limits ever after. */
static void a_resumed_run_has_the_window(void)
{
    static const long steps[] = {0, 5, ANOMALY_WINDOW, 3 * ANOMALY_WINDOW + 7};
    for (size_t k = 0; k < sizeof(steps) / sizeof(steps[0]); k++) {
        struct anomaly a = {.factor = 2}, b = {.factor = 2, .n = 3};
        char text[ANOMALY_TEXT];
        for (long i = 0; i < steps[k]; i++)
            anomaly_note(&a, -1e-300 / (double)(i + 3) * 1e299);
        T_EQ(anomaly_write(&a, text), steps[k] > 0);
        anomaly_read(&b, text);
        for (int i = 0; i < 2 * ANOMALY_WINDOW; i++) {
            T_NEAR(anomaly_limit(&a), anomaly_limit(&b), 1e-15);
            anomaly_note(&a, i);
            anomaly_note(&b, i);
        }
    }
}

static void a_text_that_is_none_is_no_window(void)
{
    struct anomaly a = {.factor = 2};
    char text[ANOMALY_TEXT];
    for (int i = 0; i < 3; i++)
        anomaly_note(&a, 1);
    anomaly_read(&a, NULL);
    T_EQ(a.n, 0);
    anomaly_read(&a, "1 2 losses");
    T_EQ(a.n, 2);
    a.factor = 0;
    T_CHECK(!anomaly_write(&a, text));
}

T_MAIN(T_CASE(a_limit_needs_some_losses), T_CASE(the_window_moves),
       T_CASE(what_is_not_finite_does_not_count), T_CASE(a_resumed_run_has_the_window),
       T_CASE(a_text_that_is_none_is_no_window))

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

T_MAIN(T_CASE(a_limit_needs_some_losses), T_CASE(the_window_moves),
       T_CASE(what_is_not_finite_does_not_count))

/* SPDX-License-Identifier: Apache-2.0 */
#include "train/report/anomaly.h"

#include <math.h>

void anomaly_note(struct anomaly *a, double loss)
{
    if (isfinite(loss))
        a->loss[a->n++ % ANOMALY_WINDOW] = loss;
}

double anomaly_limit(const struct anomaly *a)
{
    double sum = 0;
    long n = a->n < ANOMALY_WINDOW ? a->n : ANOMALY_WINDOW;
    for (long i = 0; i < n; i++)
        sum += a->loss[i];
    return a->factor > 0 && n >= ANOMALY_LEAST ? a->factor * sum / (double)n : 0;
}

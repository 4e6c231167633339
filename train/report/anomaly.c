/* SPDX-License-Identifier: Apache-2.0 */
#include "train/report/anomaly.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

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

bool anomaly_write(const struct anomaly *a, char ret[ANOMALY_TEXT])
{
    long n = a->n < ANOMALY_WINDOW ? a->n : ANOMALY_WINDOW;
    size_t at = 0;
    ret[0] = 0;
    for (long i = a->n - n; i < a->n && a->factor > 0; i++)
        at += (size_t)snprintf(ret + at, ANOMALY_TEXT - at, "%s%.17g", at ? " " : "",
                               a->loss[i % ANOMALY_WINDOW]);
    return at > 0;
}

void anomaly_read(struct anomaly *a, const char *text)
{
    char *end;
    a->n = 0;
    for (double v; text && *text; text = end) {
        v = strtod(text, &end);
        if (end == text)
            break;
        anomaly_note(a, v);
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_REPORT_ANOMALY_H
#define TRAIN_REPORT_ANOMALY_H

/*
 * What is too high a loss (--loss-spike-factor): one above so many times the mean of the last
 * ANOMALY_WINDOW steps that counted. Plain numbers, so that all ranks, which know the same losses,
 * come to the same limit.
 */

#include <stdbool.h>

enum { ANOMALY_WINDOW = 64, ANOMALY_LEAST = 16 }; /* with fewer losses there is no limit */

enum { ANOMALY_TEXT = ANOMALY_WINDOW * 25 }; /* bytes of anomaly_write, with the end */

enum anomaly_policy { ANOMALY_SKIP, ANOMALY_STOP, ANOMALY_REWIND };

struct anomaly {
    double factor; /* 0: no loss is too high */
    double loss[ANOMALY_WINDOW];
    long n; /* losses noted since the beginning */
};

/* The loss of a step that was taken. */
void anomaly_note(struct anomaly *a, double loss);

/* The limit of the next step's; 0: none. */
double anomaly_limit(const struct anomaly *a);

/* The losses of the window as a text for a checkpoint, the oldest first; false: there are none, or
 * no loss is too high. */
bool anomaly_write(const struct anomaly *a, char ret[ANOMALY_TEXT]);

/* Back from such a text; NULL, or one that is none: no losses. */
void anomaly_read(struct anomaly *a, const char *text);

#endif

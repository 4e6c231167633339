/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_REPORT_MEMORY_H
#define TRAIN_REPORT_MEMORY_H

#include <stdbool.h>

/* Bytes of this process in memory, now and at most so far. False if the system does not say. */
bool memory_of_process(double *ret_now, double *ret_most);

#endif

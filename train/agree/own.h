/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_AGREE_OWN_H
#define TRAIN_AGREE_OWN_H

/*
 * Options of `train run` that each process of a job may have in its own way: names of files, whose
 * contents are compared, and what belongs to one machine or to what is printed there. All others,
 * new ones too, must be the same on all (agree.h).
 */

#include <stdbool.h>

/* Ended by NULL. */
extern const char *const agree_own_options[];

bool agree_is_own(const char *option);

#endif

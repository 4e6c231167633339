/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_REPORT_CONTROL_H
#define TRAIN_REPORT_CONTROL_H

/* A file by which people steer a run: echo save >RUN/control. */

enum control { CONTROL_NOTHING, CONTROL_SAVE, CONTROL_STOP };

/*
 * What the file says, which is removed. Nothing if it is missing, or still empty. Words that mean
 * nothing are warned of; "stop" counts before "save". A file that cannot be removed would be obeyed
 * again after each step: it says nothing, with a warning.
 */
enum control control_read(const char *path);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_STOP_H
#define TRAIN_STOP_H

#include <stdint.h>

#include "base/core/err.h"

/*
 * Signals that ask a run to end: SIGINT, SIGTERM and SIGUSR1 set a flag that the loop looks at
 * between steps, so that it saves first; a line on stderr says so at once. SIGUSR2 asks for a
 * checkpoint. A second SIGINT ends the
 * process at once. The flag is one of the few mutable globals.
 */

/* Installs the handlers. */
void stop_listen(void);

/* The signal that came, 0 if none. */
int stop_asked(void);

/* How often SIGUSR2 came. */
int stop_saves(void);

/* The end of a run that a signal asked to stop: says where it stands and how to resume. The code
 * that is returned has no sentence of its own. */
int stop_tell(int number, const char *save, int64_t iteration, struct err *e);

#endif

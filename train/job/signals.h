/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_JOB_SIGNALS_H
#define TRAIN_JOB_SIGNALS_H

#include <stdint.h>

#include "base/core/err.h"

/*
 * Signals that ask a run to end: SIGINT, SIGTERM and SIGUSR1 set a flag that the loop looks at
 * between steps, so that it saves first; a line on stderr says so at once. SIGUSR2 asks for a
 * checkpoint. A second SIGINT ends the
 * process at once. The flag is one of the few mutable globals.
 */

/* Installs the handlers. */
void signals_listen(void);

/* The signal that came, 0 if none. */
int signals_stop_asked(void);

/* How often SIGUSR2 came. */
int signals_saves_asked(void);

/* What is to be done after a step, the later the more pressing; from STOP_SIGNAL on, less that, the
 * number of the signal by which somebody asked this process to end. */
enum {
    STOP_NOT,
    STOP_TO_SAVE,  /* a checkpoint, and on */
    STOP_INTERVAL, /* --exit-interval */
    STOP_MINUTES,  /* --exit-duration-in-mins */
    STOP_CONTROL,  /* the control file */
    STOP_SIGNAL,
    STOP_FAILED = 0x100 /* an error that leaves the weights as they were */
};

/* The end of a run that was stopped: says by what, where it stands and how to resume. The exit
 * code, which has no sentence of its own: 0 by an option, for the command line asked for it. */
int signals_tell_stop(int what, const char *save, int64_t iteration, struct err *e);

#endif

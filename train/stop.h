/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_STOP_H
#define TRAIN_STOP_H

/*
 * Signals that ask a run to end: SIGINT, SIGTERM and SIGUSR1 set a flag that the loop looks at
 * between steps, so that it saves first; a line on stderr says so at once. A second SIGINT ends the
 * process at once. The flag is one of the few mutable globals.
 */

/* Installs the handlers. */
void stop_listen(void);

/* The signal that came, 0 if none. */
int stop_asked(void);

#endif

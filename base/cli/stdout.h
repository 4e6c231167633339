/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_CLI_STDOUT_H
#define BASE_CLI_STDOUT_H

/* Setup and final flush of a program's standard streams. */

#include <stdbool.h>

#include "base/core/err.h"

/*
 * First in main(). A stream that the parent closed is opened so that its use fails with EBADF:
 * otherwise the next file that is opened would get its descriptor, and log lines would go into it.
 * SIGXFSZ is ignored, so that a write beyond `ulimit -f` fails with EFBIG. With `quiet_pipe` the
 * program dies of SIGPIPE when its reader exits (head), even if the parent ignored the signal.
 */
void stdio_begin(bool quiet_pipe);

/* After a write to stdout that failed: what it still holds is forgotten, and so is the failure. */
void stdout_drop(void);

/* Flushes stdout. ERR_IO if any output to it was lost, now or before. Keeps errno. */
int stdout_finish(struct err *e);

#endif

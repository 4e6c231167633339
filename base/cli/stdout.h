/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_CLI_STDOUT_H
#define BASE_CLI_STDOUT_H

/* The beginning and the end of a program's standard streams. */

#include <stdbool.h>

#include "base/core/err.h"

/*
 * First in main(). A stream that the parent closed is opened in such a way that its use fails with
 * EBADF: else the next file that is opened would take its number, and log lines would go into it.
 * SIGXFSZ is ignored, so that a write beyond `ulimit -f` fails with EFBIG. With `quiet_pipe` a
 * reader that has seen enough (head) ends the program by SIGPIPE, even where the parent ignored it.
 */
void stdio_begin(bool quiet_pipe);

/*
 * Writes out what stdout still holds. ERR_IO if any of what was ever printed there was lost. Keeps
 * errno.
 */
int stdout_finish(struct err *e);

#endif

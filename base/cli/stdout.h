/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_CLI_STDOUT_H
#define BASE_CLI_STDOUT_H

/* The end of a program's standard output. */

#include "base/core/err.h"

/*
 * Writes out what stdout still holds. ERR_IO if any of what was ever printed there was lost. Keeps
 * errno.
 */
int stdout_finish(struct err *e);

#endif

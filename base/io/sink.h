/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_IO_SINK_H
#define BASE_IO_SINK_H

/*
 * A verb's output: a file that appears whole at the end, or a stream that is written to directly:
 * standard output, a device, a named pipe.
 */

#include <stdbool.h>
#include <stddef.h>

#include "base/core/err.h"
#include "base/io/file.h"

struct sink {
    struct outfile file;
    bool to_file;
    int fd; /* if not to_file */
    char *name;
};

/* `path` NULL or "-" is standard output. */
int sink_open(struct sink *s, const char *path, struct err *e);
int sink_write(struct sink *s, const void *p, size_t n, struct err *e);

/* Closes it; after an earlier failure (code is not 0) the file is not created. Returns
 * the code. */
int sink_close(struct sink *s, int code, struct err *e);

#endif

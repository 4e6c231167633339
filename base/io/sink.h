/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_IO_SINK_H
#define BASE_IO_SINK_H

/*
 * Where a verb's output goes: a file that appears whole at the end, or at once to what is not a
 * file: standard output, a device, a named pipe.
 */

#include <stdbool.h>
#include <stddef.h>

#include "base/core/err.h"
#include "base/io/file.h"

struct sink {
    struct outfile file;
    bool to_file;
    int fd; /* else */
    char *name;
};

/* `path` NULL or "-" is standard output. */
int sink_open(struct sink *s, const char *path, struct err *e);
int sink_write(struct sink *s, const void *p, size_t n, struct err *e);

/* Ends it; after an earlier failure (code is not 0) nothing is left under the file's name. Returns
 * the code. */
int sink_close(struct sink *s, int code, struct err *e);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PREP_INPUT_JSONARRAY_H
#define PREP_INPUT_JSONARRAY_H

/*
 * One JSON array of records over a whole stream, turned into lines in place: a comma between two
 * elements becomes a newline; the outer brackets, and newlines outside of strings, become blanks.
 * So the length does not change, and elements are validated by the parser of the lines: only the
 * array's own structure is checked here. (A newline inside a string, which JSON forbids, becomes a
 * carriage return, which it forbids, too.)
 *
 * Constant memory; one thread at a time.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/core/err.h"

struct jsonarray {
    int state;
    bool any;       /* bytes of the current element, or of a byte order mark, were seen */
    bool comma;     /* there was an element before it */
    bool escaped;   /* inside a string: the next byte is escaped */
    uint64_t depth; /* of brackets and braces open inside the element */
    uint64_t at;    /* bytes consumed */
};

/* A zeroed struct is the initial state. */

/* The next n bytes, changed in place. ERR_DATA, "byte N: reason". */
int jsonarray_feed(struct jsonarray *a, char *p, size_t n, struct err *e);

/* At the end of the stream. */
int jsonarray_end(const struct jsonarray *a, struct err *e);

#endif

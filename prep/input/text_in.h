/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PREP_INPUT_TEXT_IN_H
#define PREP_INPUT_TEXT_IN_H

/*
 * Plain text as documents: each line is one, or the text between two separators. The line end (LF
 * or CRLF) or separator is not part of the document, unless newlines are kept. White space after
 * the last separator is not a document; a blank line is an empty one.
 */

#include <stdbool.h>
#include <stddef.h>

#include "base/core/err.h"
#include "base/io/spill.h"
#include "prep/input/lines.h"

struct text_form {
    const char *sep; /* nsep bytes; a newline stands for lines, LF or CRLF */
    size_t nsep;
    const char *written; /* the separator as the user wrote it, for the manifest */
    bool keep_newlines;  /* of lines: each document ends with its own */
};

/*
 * The document at *p (before `end`, where a block of prep/input/lines.h ends): *ret_n bytes from
 * the old *p on; *p then is after its separator. False if there is none left.
 */
bool text_next(const struct text_form *f, const char **p, const char *end, size_t *ret_n);

/*
 * Moves a document too long for a block, whose beginning is in `b`, into a spill, and its raw bytes
 * into `line` unless that is closed. For invalid UTF-8 ERR_DATA and *ret_bad, with the reason; any
 * other failure is one of the input.
 */
int text_long(const struct text_form *f, struct lines *l, struct buf *b, struct spill *to,
              struct spill *line, bool *ret_bad, struct err *e);

/* "byte N: invalid UTF-8" for the first invalid byte of p[0 .. n). */
int text_check(const char *p, size_t n, struct err *e);

/*
 * Parses a separator of the command line: \n \r \t \f \0 \\ and \xHH stand for bytes. `ret` has
 * space for LINES_SEPARATOR bytes; ERR_USAGE.
 */
int text_separator(const char *written, char *ret, size_t *ret_n, struct err *e);

#endif

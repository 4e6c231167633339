/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PREP_INPUT_TEXT_IN_H
#define PREP_INPUT_TEXT_IN_H

/*
 * Plain text as documents: each line is one, or what lies between two separators. The line's end
 * (LF or CRLF) or the separator is not part of the document, unless newlines are kept. White space
 * alone behind the last separator is no document; a blank line is an empty one.
 */

#include <stdbool.h>
#include <stddef.h>

#include "base/core/err.h"
#include "base/io/spill.h"
#include "prep/input/lines.h"

struct text_form {
    const char *sep; /* nsep bytes; a newline stands for lines, LF or CRLF */
    size_t nsep;
    const char *written; /* the separator as text_separator takes it, for the manifest */
    bool keep_newlines;  /* of lines: each document ends with its own */
};

/*
 * The document at *p (before `end`, where a block of prep/input/lines.h ends): *ret_n bytes from
 * the old *p on, which then stands behind its separator. false: what is left is none.
 */
bool text_next(const struct text_form *f, const char **p, const char *end, size_t *ret_n);

/*
 * A document too long for a block, whose beginning is in `b`, goes into a spill, and its bytes as
 * they come into `line` unless that is closed. A text that is not UTF-8 gives ERR_DATA and
 * *ret_bad: the reason; any other failure is one of the input.
 */
int text_long(const struct text_form *f, struct lines *l, struct buf *b, struct spill *to,
              struct spill *line, bool *ret_bad, struct err *e);

/* "byte N: not UTF-8" for the first byte of p[0 .. n) that is not. */
int text_check(const char *p, size_t n, struct err *e);

/*
 * A separator as it is written on a command line: \n \r \t \f \0 \\ and \xHH stand for bytes. In
 * `ret`, which has room for LINES_SEPARATOR; ERR_USAGE.
 */
int text_separator(const char *written, char *ret, size_t *ret_n, struct err *e);

#endif

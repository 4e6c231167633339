/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_JINJA_CASE_H
#define TOK_JINJA_CASE_H

/* White space, case and classes of strings, as Python's str has them. */

#include "tok/jinja/context.h"

/* White space as str.isspace() and the \s of re: length of the character at p, 0 if it is none. */
size_t case_space(const char *p, const char *end);

/* The character may be printed by repr(). */
bool case_is_printable(uint32_t c);

enum case_form { CASE_UPPER, CASE_LOWER, CASE_CAPITALIZE, CASE_TITLE, CASE_SWAP };

/* str.upper() and the like: writes to the output, each character with the origin of what it was. */
bool case_write(struct jinja_context *c, const struct value *v, enum case_form f);

/* Python's str.isX(). */
enum case_class { CASE_IS_SPACE, CASE_IS_DIGIT, CASE_IS_ALPHA, CASE_IS_LOWER, CASE_IS_UPPER };
bool case_is(const struct value *v, enum case_class k);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_JINJA_FORMAT_H
#define TOK_JINJA_FORMAT_H

/* Formats: Python's % on strings, and strftime(). */

#include "tok/jinja/context.h"

bool format_percent(struct jinja_context *c, const struct value *format, const struct value *v,
                    struct value *ret);

/* A date by a format; false: the context has no date, or the format is refused, which is told. */
bool format_date(struct jinja_context *c, const struct value *format, struct value *ret);

#endif

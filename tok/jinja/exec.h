/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_JINJA_EXEC_H
#define TOK_JINJA_EXEC_H

/* Statements executed: they write to the context's output. */

#include "tok/jinja/context.h"
#include "tok/jinja/node.h"

/* What a macro writes, as a string; false has been told. */
bool exec_macro(struct jinja_context *c, const struct macro *m, const struct args *a,
                struct value *ret);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_JINJA_EVAL_H
#define TOK_JINJA_EVAL_H

/* Expressions evaluated. A false return has been told. */

#include "tok/jinja/context.h"
#include "tok/jinja/node.h"

bool eval(struct jinja_context *c, const struct node *n, struct value *ret);

/* Assigns to a target: a name, a namespace's attribute, or a tuple of targets. */
bool eval_assign(struct jinja_context *c, const struct node *target, const struct value *v);

/* Calls a value. */
bool eval_call(struct jinja_context *c, const struct value *f, const struct args *a,
               struct value *ret);

/* The arguments of a call, filter or test, from its child `first` on. */
bool eval_arguments(struct jinja_context *c, const struct node *n, struct args *ret);

/* A filter, method or function with its arguments put in the order of its parameters. */
bool eval_builtin(struct jinja_context *c, const struct builtin *def, const struct value *self,
                  const struct args *a, struct value *ret);

/* Filters of a block, the innermost of which has no operand, applied to `v`. */
bool eval_filters(struct jinja_context *c, const struct node *n, const struct value *v,
                  struct value *ret);

#endif

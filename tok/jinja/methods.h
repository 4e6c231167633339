/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_JINJA_METHODS_H
#define TOK_JINJA_METHODS_H

/* Methods of Python's types. All names are known, as templates ask whether they are there; those
 * without a function are refused when they are called. A false return has been told. */

#include "tok/jinja/context.h"

/* The table of a value's methods, NULL: it has none. */
const struct builtin *methods_of(const struct value *v);

/* Stands for methods that change a list or dict, which jinja2's sandbox withholds. */
bool method_withheld(struct jinja_context *c, const struct value *self, const struct args *a,
                     struct value *ret);

enum method_sides { METHOD_LEFT = 1, METHOD_RIGHT = 2, METHOD_BOTH = 3 };

/* str.strip(): `chars` a string, or V_NONE or missing for white space. */
bool method_strip(struct jinja_context *c, const struct value *s, const struct value *chars,
                  enum method_sides sides, struct value *ret);

/* str.replace(); count -1: all. */
bool method_replace(struct jinja_context *c, const struct value *s, const struct value *old,
                    const struct value *new, int64_t count, struct value *ret);

/* str.splitlines(). */
bool method_lines(struct jinja_context *c, const struct value *s, bool keep_ends,
                  const struct value **ret, size_t *ret_n);

#endif

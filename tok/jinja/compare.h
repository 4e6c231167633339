/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_JINJA_COMPARE_H
#define TOK_JINJA_COMPARE_H

/* Equality, order and membership as Python has them. A false return of the functions that take a
 * context has been told. */

#include "tok/jinja/context.h"
#include "tok/jinja/node.h"

/* Of values that can be keys: numbers, strings, None, tuples of these. */
bool compare_plain_equal(const struct value *a, const struct value *b);

bool compare_equal(struct jinja_context *c, const struct value *a, const struct value *b,
                   bool *ret);

/* *ret below, at or above 0; false: the two have no order. */
bool compare_order(struct jinja_context *c, const struct value *a, const struct value *b, int *ret);

/* Is a in b? */
bool compare_in(struct jinja_context *c, const struct value *a, const struct value *b, bool *ret);

bool compare_by(struct jinja_context *c, enum comparison op, const struct value *a,
                const struct value *b, bool *ret);

/* Python's sorted(): `key` has the place i of a value in `order`, which is sorted by it. */
bool compare_sort(struct jinja_context *c, const struct value *key, size_t *order, size_t n,
                  bool reverse);

#endif

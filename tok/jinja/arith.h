/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_JINJA_ARITH_H
#define TOK_JINJA_ARITH_H

/* Python's arithmetic: integers of 64 bits, beyond which it is refused, reals, strings, lists. */

#include "tok/jinja/context.h"
#include "tok/jinja/node.h"

bool arith_binary(struct jinja_context *c, enum binary op, const struct value *a,
                  const struct value *b, struct value *ret);
bool arith_negate(struct jinja_context *c, const struct value *v, struct value *ret);
bool arith_plus(struct jinja_context *c, const struct value *v, struct value *ret);

/* int(text, base) and float(text), both with white space around; false: it is no number. *ret_wide:
 * it is one, of more than 64 bits. */
bool arith_read_int(const struct value *text, int64_t base, int64_t *ret, bool *ret_wide);
bool arith_read_real(const struct value *text, double *ret);

/* int(d) of a finite number; false: more than 64 bits, which is told. */
bool arith_truncate(struct jinja_context *c, double d, struct value *ret);

#endif

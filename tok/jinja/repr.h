/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_JINJA_REPR_H
#define TOK_JINJA_REPR_H

/* Values as Python's str() and repr() spell them, and as json.dumps() does. */

#include "tok/jinja/text.h"

/* Both write to the output; false for what Python spells with an address, which is told. */
bool repr_write_str(struct jinja_context *c, const struct value *v);
bool repr_write(struct jinja_context *c, const struct value *v);

/* str() as a value. */
bool repr_str(struct jinja_context *c, const struct value *v, struct value *ret);

/* repr() of a float; returns its length. */
enum { REPR_REAL = 40 };
size_t repr_real(double d, char ret[REPR_REAL]);

struct json_style {
    bool ascii, sorted;
    struct value indent;    /* NULL bytes of V_STRING; V_NONE: all on one line */
    struct value item, key; /* separators; V_NONE: json.dumps()'s own */
};

bool repr_json(struct jinja_context *c, const struct value *v, const struct json_style *s,
               struct value *ret);

#endif

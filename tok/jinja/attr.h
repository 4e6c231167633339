/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_JINJA_ATTR_H
#define TOK_JINJA_ATTR_H

/*
 * Attributes, items and slices. What a value lacks is V_UNDEFINED, and so are attributes that
 * Python has and its sandbox withholds: names that begin with '_' and methods that change a list or
 * dict. A false return has been told.
 */

#include "tok/jinja/context.h"

bool attr_get(struct jinja_context *c, const struct value *of, const struct value *name,
              struct value *ret);
bool attr_item(struct jinja_context *c, const struct value *of, const struct value *index,
               struct value *ret);

/* bound[0] to [2]: start, stop and step, V_NONE where absent. */
bool attr_slice(struct jinja_context *c, const struct value *of, const struct value bound[3],
                struct value *ret);

/* The value at a path of names and numbers with dots between, as filters take it; `otherwise`,
 * which may be NULL, stands for what is undefined on the way. */
bool attr_path(struct jinja_context *c, const struct value *of, const struct value *path,
               const struct value *otherwise, struct value *ret);

/* The attribute alone, no item: what |attr() gives. */
bool attr_own(struct jinja_context *c, const struct value *of, const struct value *name,
              struct value *ret);

#endif

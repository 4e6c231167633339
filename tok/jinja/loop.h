/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_JINJA_LOOP_H
#define TOK_JINJA_LOOP_H

/* The state of a `for`: its items, filtered as they are asked for, and the variable `loop`. */

#include "tok/jinja/context.h"
#include "tok/jinja/node.h"

struct loop {
    const struct value *item; /* of what is iterated */
    size_t n, at;             /* at: the next one that is to be looked at */
    const struct node *node;  /* a test of it, or NULL, is sub[2] */
    struct scope *scope;      /* what the test sees */
    struct value *ahead;      /* items found ahead of their turn, from `taken` on */
    size_t nahead, cap_ahead, taken;
    size_t index; /* of the item that has its turn, from 0 */
    bool began;
    struct value now, before;
    struct value changed; /* the tuple that loop.changed() was called with */
    unsigned depth;
};

/* The next item; *ret_more is false at the end. */
bool loop_next(struct jinja_context *c, struct loop *l, struct value *ret, bool *ret_more);

/* One that follows, without taking it. */
bool loop_peek(struct jinja_context *c, struct loop *l, struct value *ret, bool *ret_more);

size_t loop_length(struct jinja_context *c, struct loop *l);

/* An attribute of `loop`; V_UNDEFINED: it has none of this name. */
bool loop_attribute(struct jinja_context *c, struct loop *l, const struct value *name,
                    struct value *ret);

extern const struct builtin jinja_loop_methods[];

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_JINJA_TEXT_H
#define TOK_JINJA_TEXT_H

/*
 * Texts with the origins of their bytes. What is written goes to the context's output; between
 * text_begin and text_end it is collected and becomes a string instead, so that all strings are
 * made in one way. A false return has been told.
 */

#include <string.h>

#include "tok/jinja/context.h"

bool text_write(struct jinja_context *c, const char *p, size_t n, uint32_t tag);
bool text_write_value(struct jinja_context *c, const struct value *v); /* a string */

/* Where a collection began, and what it put aside. */
struct text_mark {
    size_t at;
    uint32_t generated;
};

struct text_mark text_begin(struct jinja_context *c);
bool text_end(struct jinja_context *c, struct text_mark m, struct value *ret);
void text_drop(struct jinja_context *c, struct text_mark m);

/* The origin of byte `at`; *cursor is 0 at first and speeds up rising places. */
uint32_t text_tag(const struct jinja_context *c, const struct value *v, size_t at, size_t *cursor);

/* The origin that the text of a value has; of a string, of its first byte. */
uint32_t text_tag_of(const struct jinja_context *c, const struct value *v);

/* Bytes from .. to of a string, not copied. */
struct value text_slice(struct jinja_context *c, const struct value *v, size_t from, size_t to);

bool text_concat(struct jinja_context *c, const struct value *a, const struct value *b,
                 struct value *ret);

/* Markup of text that is not: &, <, >, ' and " escaped. */
bool text_escape(struct jinja_context *c, const struct value *v, struct value *ret);

/* Characters of a string; the byte at which character k begins, at most the end. */
size_t text_length(const struct value *v);
size_t text_byte(const struct value *v, size_t k);

/* The first, or last, place of a string in bytes from .. to of another; SIZE_MAX: none. */
size_t text_find(const struct value *v, const struct value *what, size_t from, size_t to);
size_t text_find_last(const struct value *v, const struct value *what, size_t from, size_t to);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_UNICODE_CHARSET_H
#define TOK_UNICODE_CHARSET_H

/*
 * Sets of code points, for the classes of patterns: one bit each (136 KiB), since patterns are few.
 * A zeroed struct is an empty set that owns nothing. For one thread.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/core/buf.h"

struct charset {
    uint64_t *bit;
};

void charset_finish(struct charset *s);
void charset_add(struct charset *s, uint32_t first, uint32_t last);
bool charset_has(const struct charset *s, uint32_t c);
void charset_invert(struct charset *s);

/* Union; intersection. */
void charset_join(struct charset *s, const struct charset *with);
void charset_meet(struct charset *s, const struct charset *with);

/* Appends its ranges in the syntax of a PCRE2 class, without surrogates; returns their number. */
size_t charset_put(const struct charset *s, struct buf *out);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_TEXT_BASE64_H
#define TOK_TEXT_BASE64_H

/* RFC 4648, with padding. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/core/buf.h"

void base64_put(struct buf *b, const void *p, size_t n);

/*
 * Decodes n characters to `ret`, which holds n / 4 * 3 bytes; returns the number of bytes, or -1 if
 * the text is not base64. With `exact`, unused bits must be 0.
 */
ptrdiff_t base64_get(const char *p, size_t n, bool exact, uint8_t *ret);

#endif

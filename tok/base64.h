/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_BASE64_H
#define TOK_BASE64_H

/* RFC 4648, with padding. */

#include <stddef.h>

#include "base/buf.h"

void base64_put(struct buf *b, const void *p, size_t n);

#endif

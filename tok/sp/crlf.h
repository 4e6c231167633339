/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_SP_CRLF_H
#define TOK_SP_CRLF_H

/* CR LF in a text is LF, as JapaneseSentencePiece has it. No state. */

#include <stdbool.h>
#include <stddef.h>

#include "base/core/buf.h"

/* Appends a text with each CR LF as LF. `cr`: one CR comes before; true if one stands at the end
 * that is not last, and waits. */
bool sp_put_lines(struct buf *out, const char *text, size_t n, bool cr, bool last);

/* For each byte of a whole text that went through it, where it stood in these n bytes; one more
 * entry for the end. To free. */
size_t *sp_lines_from(const char *text, size_t n);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_SP_CRLF_H
#define TOK_SP_CRLF_H

/* CR LF in a text counts as LF, for JapaneseSentencePiece. No state. */

#include <stdbool.h>
#include <stddef.h>

#include "base/core/buf.h"

/* Appends a text with each CR LF as LF. `cr`: a CR precedes. Returns whether the text ends in a CR
 * that is held back because it is not the last part. */
bool sp_put_lines(struct buf *out, const char *text, size_t n, bool cr, bool last);

/* For each byte of a whole text after that conversion, its offset in these n bytes; one more entry
 * for the end. The caller frees it. */
size_t *sp_lines_from(const char *text, size_t n);

#endif

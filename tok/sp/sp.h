/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_SP_SP_H
#define TOK_SP_SP_H

/* SentencePiece models as engines; the opener has the signature of tok/formats/formats.h. */

#include <stddef.h>

#include "base/core/err.h"
#include "tok/core/engine.h"

int sp_engine_open(const struct tok_options *o, const char *p, size_t n, struct tok_engine *ret,
                   struct tok_info *info, struct err *e);

#endif

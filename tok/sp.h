/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_SP_H
#define TOK_SP_H

/* SentencePiece models as engines; an opener as those of formats.h. */

#include <stddef.h>

#include "base/err.h"
#include "tok/engine.h"

int sp_engine_open(const struct tok_options *o, const char *p, size_t n, struct tok_engine *ret,
                   struct tok_info *info, struct err *e);

#endif

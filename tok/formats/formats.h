/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_FORMATS_FORMATS_H
#define TOK_FORMATS_FORMATS_H

/*
 * Tokenizer files into engines. An opener fills `ret`, and in `info` the type, the sizes and the
 * ids; o->type is the requested type (TOK_AUTO: by content). It may take the file's memory, leaving
 * it empty. On failure nothing is left to free.
 */

#include "tok/formats/table.h"

/* By the file's content. ERR_USAGE if o->type cannot read that. */
int tok_engine_open(const struct tok_options *o, struct buf *file, struct tok_engine *ret,
                    struct tok_info *info, struct err *e);

/* By one format; `file` is NULL if the format has none. */
int format_engine_open(const struct format *f, const struct tok_options *o, struct buf *file,
                       struct tok_engine *ret, struct tok_info *info, struct err *e);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_FORMATS_FORMATS_H
#define TOK_FORMATS_FORMATS_H

/*
 * Tokenizer files into engines. An opener fills `ret`, and of `info` the type, the sizes and the
 * ids; o->type is the one asked for (TOK_AUTO for whatever the file calls for). The file's memory
 * may be taken, leaving it empty. On failure nothing is left to free.
 */

#include "tok/formats/table.h"

/* As the content calls for. ERR_USAGE when that is not what o->type reads. */
int tok_engine_open(const struct tok_options *o, struct buf *file, struct tok_engine *ret,
                    struct tok_info *info, struct err *e);

/* As one format; `file` is NULL where the format has none. */
int format_engine_open(const struct format *f, const struct tok_options *o, struct buf *file,
                       struct tok_engine *ret, struct tok_info *info, struct err *e);

#endif

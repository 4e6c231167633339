/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_FORMATS_FORMATS_H
#define TOK_FORMATS_FORMATS_H

/*
 * Tokenizer files into engines. An opener fills `ret`, and of `info` the type, the sizes and the
 * ids; o->type is the one asked for (TOK_AUTO for whatever the file calls for). `p` is the file's
 * content and is not kept. On failure nothing is left to free.
 */

#include "base/core/buf.h"
#include "base/core/err.h"
#include "tok/core/engine.h"

typedef int engine_open(const struct tok_options *o, const char *p, size_t n,
                        struct tok_engine *ret, struct tok_info *info, struct err *e);

engine_open ws_engine_open, gpt2_engine_open, tiktoken_engine_open, bert_engine_open,
    hf_engine_open;

/* The same for a file whose memory the engine may take, leaving it empty. */
int hf_engine_take(const struct tok_options *o, struct buf *file, struct tok_engine *ret,
                   struct tok_info *info, struct err *e);
int null_engine_open(const struct tok_options *o, struct tok_engine *ret, struct tok_info *info,
                     struct err *e);

/* The opener that the content calls for; the file's memory may be taken. ERR_USAGE when the content
 * is not what o->type reads. */
int tok_engine_open(const struct tok_options *o, struct buf *file, struct tok_engine *ret,
                    struct tok_info *info, struct err *e);

#endif

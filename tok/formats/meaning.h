/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_FORMATS_MEANING_H
#define TOK_FORMATS_MEANING_H

/*
 * What a tokenizer does, whatever its files are: a line of fields, "model=BPE size=50257
 * tokens=0123456789abcdef ...", equal for two tokenizers of which no text has different ids or
 * another end (tok/FORMAT.md). Fields that differ tell what may be different; a digest is the first
 * 16 digits of an XXH3-128.
 */

#include "base/core/buf.h"
#include "tok/core/engine.h"
#include "tok/pipeline/pipeline.h"

/* A line that is being made: pipe_open consumes a spec, and ids are known only after it. */
struct meaning {
    struct buf text;
    struct pipe_token *token; /* copies; their texts are the engine's */
    size_t ntokens;
    bool normalizes;
};

/* Notes what a spec that was read does; merges are reduced to those that apply (pipe_open does the
 * same) unless `all`: some may be left out at random. */
void meaning_of_spec(struct meaning *m, struct pipe_spec *s, bool all);

/* The same for a SentencePiece model that could be opened. */
void meaning_of_sp(struct meaning *m, const struct tok_options *o, const char *p, size_t n);

/* Completes info->meaning by what the open tokenizer says. NULL: an engine with ids and tokens
 * only, of the format `name`. Frees the line. */
void meaning_end(struct meaning *m, const char *name, const struct tok_engine *g,
                 struct tok_info *info);
void meaning_finish(struct meaning *m);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_PIPELINE_OPEN_TEXT_H
#define TOK_PIPELINE_OPEN_TEXT_H

/*
 * A text of any length without a known split point, in memory that does not grow with it: for
 * byte-level tokenizers whose pre-tokenizer is a scanner, or splits by patterns, and that have no
 * normalizer. Pre-tokens go to the model as far as they are sure (tok/pretok/scan_open.h,
 * split_open.h), and one that does not end goes through a stream of merges (tok/bpe/stream.h).
 *
 * Also for tokenizers that split raw text into segments, up to the last split point between any
 * characters. What follows it is kept, but for WordPiece and WordLevel: of a word that is unknown,
 * whatever follows, and of text that normalizes to nothing, the middle is removed.
 */

#include "tok/pipeline/pipeline_internal.h"

struct pipe_open;

bool pipe_can_open(const struct pipe *p);
struct pipe_open *pipe_open_create(void);
void pipe_open_destroy(struct pipe_open *o); /* accepts NULL */

/* As encode_part of struct tok_engine: takes all n bytes. A failure ends the text. */
int pipe_encode_open(const void *state, void *scratch, const char *text, size_t n, bool last,
                     struct tok_ids *ids, struct tok_tally *tally, struct err *e);

#endif

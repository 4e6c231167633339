/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_SP_DECODE_H
#define TOK_SP_DECODE_H

/*
 * Ids of a SentencePiece model to text, as SentencePieceProcessor::Decode of 0.1.97: marks become
 * spaces, but for the first one of a text (under add_dummy_prefix) or all of its first ones (under
 * remove_extra_whitespaces); control pieces are nothing, the unknown piece is its surface, bytes
 * are characters again, those that make none U+FFFD each.
 *
 * Immutable and shared by threads.
 */

#include "base/core/buf.h"
#include "tok/sp/model.h"

struct sp_decoder;

/* NULL for a model with a denormalizer, whose texts go through rules once more. Does not need `m`
 * later. */
struct sp_decoder *sp_decoder_create(const struct sp_model *m);
void sp_decoder_destroy(struct sp_decoder *d);

/* Appends one text. Ids are inside the vocabulary. */
void sp_decode_ids(const struct sp_decoder *d, const int32_t *id, size_t n, struct buf *text);

#endif

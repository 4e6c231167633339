/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_SP_DECODE_H
#define TOK_SP_DECODE_H

/*
 * Ids of a SentencePiece model to text, as SentencePieceProcessor::Decode of 0.1.97: marks become
 * spaces, except the first one of a text (add_dummy_prefix) or all leading ones
 * (remove_extra_whitespaces); control pieces are dropped, the unknown piece becomes its surface,
 * byte pieces become characters, each invalid one U+FFFD.
 *
 * Immutable and shared by threads.
 */

#include "base/core/buf.h"
#include "tok/sp/model.h"

struct sp_decoder;

/* NULL for a model with a denormalizer, whose rules apply to the decoded text. `m` may be freed
 * afterwards. */
struct sp_decoder *sp_decoder_create(const struct sp_model *m);
void sp_decoder_destroy(struct sp_decoder *d);

/* Appends the text of one list of ids, which must be inside the vocabulary. */
void sp_decode_ids(const struct sp_decoder *d, const int32_t *id, size_t n, struct buf *text);

#endif

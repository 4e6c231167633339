/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_SP_SEGMENT_H
#define TOK_SP_SEGMENT_H

/*
 * SentencePiece models of byte pairs, characters and words: a text in any parts, its ids out as
 * soon as they are settled, exactly those that libsentencepiece 0.1.97 gives for the whole text.
 *
 * The text is cut where no piece reaches across (tok/bpe/split_point.h) and the parts are encoded
 * one by one, most of them out of a cache by their bytes. Where the normalizer leaves the text as
 * it is (inert_chars.h), the cuts are found in the text itself and the parts are cached as they
 * stand there; all else goes through the normalizer first (normalize.h). Memory grows only with the
 * longest part, and with the whole text for the few models that must see it (merge.h).
 *
 * The tables are shared by threads, a text's state belongs to one.
 */

#include "tok/sp/merge.h"
#include "tok/sp/normalize.h"
#include "tok/core/engine.h"

struct sp_native;
struct sp_native_state;

/*
 * One for each model; `m` must outlive it. NULL for unigram, and for models whose
 * user-defined pieces are not all UTF-8.
 */
struct sp_native *sp_native_create(const struct sp_model *m);
/* From now on merges are left out at random (byte pairs only); before any text. */
void sp_native_drop(struct sp_native *c, double probability);
void sp_native_destroy(struct sp_native *c);

/* Destroyed before it. */
struct sp_native_state *sp_native_state_create(const struct sp_native *c);
void sp_native_state_destroy(struct sp_native_state *s);

/*
 * The next bytes of a text; appends the ids that are settled. With `last` all are, and the state is
 * ready for another text; after a failure, too. ERR_DATA if the text turns into a control piece.
 */
int sp_native_put(const struct sp_native *c, struct sp_native_state *s, const char *text, size_t n,
                  bool last, struct tok_ids *ids, struct err *e);

/*
 * One text for several threads. The last place at < n where any text may be cut that holds
 * text[0 .. n), 0 if there is none; a state for what follows a cut; the end of what stands before
 * one. Of two unknown pieces where parts meet one goes, unless the model falls back to bytes.
 */
size_t sp_native_cut(const struct sp_native *c, const char *text, size_t n);
void sp_native_begin_at_cut(struct sp_native_state *s);
int sp_native_end_at_cut(const struct sp_native *c, struct sp_native_state *s, struct tok_ids *ids,
                         struct err *e);

/* Forgets a text that was not ended. */
void sp_native_reset(struct sp_native_state *s);

/* The random numbers of the texts to come. */
void sp_native_key(struct sp_native_state *s, uint64_t key);

/* Bytes that were no UTF-8 since the last call. */
uint64_t sp_native_take_invalid(struct sp_native_state *s);

/* Bytes that wait for what follows. */
size_t sp_native_waiting(const struct sp_native_state *s);

#endif

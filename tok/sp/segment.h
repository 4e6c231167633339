/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_SP_SEGMENT_H
#define TOK_SP_SEGMENT_H

/*
 * SentencePiece's BPE, character and word models: takes a text in any parts and appends ids as soon
 * as they are final, exactly those that libsentencepiece 0.1.97 gives for the whole text.
 *
 * The text is split where no piece spans the position (tok/bpe/split_point.h) and the segments are
 * encoded one by one, most of them from a cache by their bytes. Where the normalizer leaves the
 * text alone (inert_chars.h), split points are found in the raw text and raw segments are cached;
 * everything else is normalized first (normalize.h). Memory grows only with the longest segment,
 * and with the whole text for the few models that must see it (merge.h).
 *
 * The tables are shared by threads, a text's state belongs to one.
 */

#include "tok/sp/merge.h"
#include "tok/sp/normalize.h"
#include "tok/core/engine.h"

struct sp_native;
struct sp_native_state;

/*
 * One per model; `m` must outlive it. NULL for unigram, and for models with user-defined pieces
 * that are not UTF-8.
 */
struct sp_native *sp_native_create(const struct sp_model *m);
/* From now on leaves out merges at random (BPE only); call before any text. */
void sp_native_drop(struct sp_native *c, double probability);
void sp_native_destroy(struct sp_native *c);

/* Destroy it before `c`. */
struct sp_native_state *sp_native_state_create(const struct sp_native *c);
void sp_native_state_destroy(struct sp_native_state *s);

/*
 * Takes the next bytes of a text; appends the ids that are final. With `last` all are, and the
 * state is ready for another text; also after a failure. ERR_DATA if the text becomes a control
 * piece.
 */
int sp_native_put(const struct sp_native *c, struct sp_native_state *s, const char *text, size_t n,
                  bool last, struct tok_ids *ids, struct err *e);

/*
 * One text for several threads: the last split point at < n of any text that begins with
 * text[0 .. n), 0 if there is none; a state for what follows a split point (`unknown`: and the
 * unknown piece); the end of what precedes one. Of two unknown pieces that meet there one is
 * dropped, unless the model has byte fallback.
 */
size_t sp_native_cut(const struct sp_native *c, const char *text, size_t n);
void sp_native_begin_at_cut(struct sp_native_state *s, bool unknown);
int sp_native_end_at_cut(const struct sp_native *c, struct sp_native_state *s, struct tok_ids *ids,
                         struct err *e);

/* Discards an unfinished text. */
void sp_native_reset(struct sp_native_state *s);

/* The key of the random numbers for the next texts. */
void sp_native_key(struct sp_native_state *s, uint64_t key);

/* Invalid UTF-8 bytes since the last call. */
uint64_t sp_native_take_invalid(struct sp_native_state *s);

/* Bytes and symbols of long segments looked at or moved, since the last call. */
uint64_t sp_native_take_steps(struct sp_native_state *s);

/* Bytes held until more text follows. */
size_t sp_native_waiting(const struct sp_native_state *s);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_SP_UNIGRAM_H
#define TOK_SP_UNIGRAM_H

/*
 * SentencePiece's unigram model: text to ids exactly as sentencepiece 0.2.2 gives them
 * (Model::EncodeOptimized and the byte fallback of PopulateSentencePieceText), as a stream.
 *
 * The library adds up a path's scores in 32-bit floats from the text's first byte on, so its choice
 * at any place depends on all that stands before; and where the best sum at a place is beyond
 * 100,000 it takes it from all sums from there on. Here the same sums are carried along, and ids
 * leave as soon as every path that may still win goes through the same place. So memory does not
 * grow with the text, and the ids are those of the whole.
 *
 * Where no piece reaches across two places, what stands between them is a segment (mostly a word)
 * whose ids are kept and found again: they hold for every sum before it that is small enough for
 * rounding not to matter, which is known for each; else the ways through it are compared anew.
 *
 * The tables are shared by threads, a text's state belongs to one.
 */

#include <stdbool.h>

#include "tok/core/engine.h"
#include "tok/sp/model.h"
#include "tok/sp/normalize.h"
#include "tok/text/trie.h"

struct unigram;

/* One for each model; `m` must outlive it. NULL if the model is of a kind that is left to the
 * library. */
struct unigram *unigram_create(const struct sp_model *m);
void unigram_destroy(struct unigram *u);

struct unigram_state;
/* It serves one model, and is destroyed before it. */
struct unigram_state *unigram_state_create(void);
void unigram_state_destroy(struct unigram_state *s);

/* The way of processors without AVX-512, before the first text; for tests. */
void unigram_state_plain(struct unigram_state *s);

/*
 * The next bytes of a text; appends the ids that are settled. With `last` all are, and the state is
 * ready for another text.
 */
void unigram_put(const struct unigram *u, struct unigram_state *s, const char *text, size_t n,
                 bool last, struct tok_ids *ids);

/* Forgets a text that was not ended. */
void unigram_reset(struct unigram_state *s);

/*
 * Parts of one text for several threads: the largest cut below n of text that begins at a
 * character, 0 if there is none. unigram_look appends what can be told of text between two cuts, or
 * behind the last, without the sum before it: most of the work, in no order. Then one part after
 * another: unigram_begin_sum for what stands before it, unigram_put_looked for its text and what
 * was found (`last`: nothing follows), unigram_ended for the sum behind it. Of a text's first part
 * nothing is found before.
 */
size_t unigram_cut(const struct unigram *u, const char *text, size_t n);
void unigram_look(const struct unigram *u, struct unigram_state *s, const char *text, size_t n,
                  struct tok_ids *ret);
void unigram_begin_sum(struct unigram_state *s, float from, bool at_cut);
void unigram_put_looked(const struct unigram *u, struct unigram_state *s, const char *text,
                        size_t n, const struct tok_ids *looked, bool last, struct tok_ids *ids);
float unigram_ended(const struct unigram_state *s);

/* Bytes that were no UTF-8 since the last call. */
uint64_t unigram_take_invalid(struct unigram_state *s);

#endif
